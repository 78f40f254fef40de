"""Figures: what is computed for them, what is stored, and that a picture comes of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from bench_run import GRID
from r2et.bench.figure_layout import draw, remarks
from r2et.bench.figure_measurements import on_the_way
from r2et.bench.figure_plans import FIGURES
from r2et.bench.figure_statistics import correlation, correlation_sentences, spearman
from r2et.bench.panel import Panel
from r2et.bench.plots import constrained, front, maps, spread, trade_off
from r2et.bench.registry import find_benchmark
from r2et.bench.run import Runner, run_figure
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.rank import precision_at_k, thickness

ROWS = 6


def some(figure):
    """Made-up panels of a figure."""
    flips = {"first_flip_rows": [1, 2, 3, -1, 5, 6]}
    names = ("adversarial_rows", "hessian_rows", "gaussian_rows", "gaussian_least_rows")
    seed = {**flips, **{n: [0.1 * i for i in range(ROWS)] for n in names}}
    steps = {"way_points": 201, "seeds": [seed, seed]}
    shown = [{"row": 0, "precision": 0.5, "before": [0.1] * 16, "after": [0.2] * 16}]
    point = {"attack": "er", "constraint": "gda", "share": 1.0, "precision": 0.5}
    values = {
        "figure2": steps,
        "figure4": steps,
        "figure3": {"shown": shown, "shape": [1, 4, 4]},
        "figure5": {"shown": shown, "shape": [1, 4, 4]},
        "figure6": {"points": [{**point, "sensitivity": s} for s in (0.0, 0.1)]},
        "figure7": {"auc": [0.8, 0.9], "auc_attacked": [0.8], "er": [0.5], "strong": [0.4]},
        "figure8": {"sorted_rows": [1.0, 0.5, 0.1]},
        "figure9": {"counts": [1, 2], "precision": [[0.5, 0.6], [0.7, 0.8]]},
        "lengths": {n: [[0.5, 0.6], [0.7, 0.8]] for n in ("auc", "er", "er_last")}
        | {"epochs": [1, 2]},
        "length-search": {n: [[0.5, 0.6], [0.7, 0.8]] for n in ("auc", "er_last")}
        | {"epochs": [1, 2], "papers": 0.6, "papers_auc": 0.5, "nearest": 1},
        "budget-search": {
            "budgets": [0.1, 0.2],
            "er_last": [[0.5], [0.4]],
            "papers": 0.6,
            "nearest_budget": 0.1,
        },
    }[figure.removesuffix("-papers")]
    failed = Panel(figure, "adult", "ssr", failed="ssr is for tables")
    return [Panel(figure, "adult", r, values, ("record",)) for r in ("vanilla", "r2et")] + [failed]


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_of_every_figure(name, tmp_path):
    panels = some(name)
    png, pdf = draw(name, FIGURES[name].title, panels, tmp_path)
    with Image.open(png) as picture:
        assert min(picture.size) > 200
        assert picture.convert("L").getextrema()[0] < 100  # something is drawn
    assert pdf.read_bytes().startswith(b"%PDF")
    for panel in panels:
        assert Panel.from_json(panel.to_json(), "here") == panel


def test_correlation_of_rows_that_flip():
    assert correlation([1, 2, 3, -1], [0.1, 0.2, 0.3, 9.0]) == (pytest.approx(1.0), 3)
    assert correlation([3, 2, 1], [0.1, 0.2, 0.3])[0] == pytest.approx(-1.0)
    assert math.isnan(correlation([1, 1, 1], [0.1, 0.2, 0.3])[0])
    assert math.isnan(correlation([-1, -1], [0.1, 0.2])[0])


def test_rows_that_never_flip_count_as_the_last():
    steps, thick = [1, 2, 3, -1, -1], [0.1, 0.2, 0.3, 1.0, 0.9]
    assert correlation(steps, thick, every=True) == (pytest.approx(0.975, abs=1e-3), 5)
    assert correlation(steps, [9, 9.1, 9.2, 0.1, 0.2], every=True)[0] < 0 < 1
    # in whatever order, and as ties: the two ranks in between are shared
    one, other = (correlation(steps, [0.1, 0.2, 0.3, *two], every=True)[0] for two in PAIR)
    assert one == other


PAIR = ((0.8, 0.9), (0.9, 0.8))


def test_spearman_is_the_mean_and_the_range_over_seeds():
    flips = {"first_flip_rows": [1, 2, 3, 4]}
    up, down = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]
    each = [{**flips, "adversarial_rows": values} for values in (up, down)]
    panel = Panel("figure4", "adult", "r2et", {"way_points": 201, "seeds": each})
    assert spearman(panel, "adversarial_rows") == "0.00 (-1.00 to 1.00)"


def test_thickness_on_the_way_sees_every_swap():
    """However late a row's top k changes: the end of the way is one of the points.

    On a piecewise-linear network scores are constant between kinks, and swap at once.
    """
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
    ).double()
    explainer, k = Gradient(of="probability"), 3
    x = torch.randn(200, 6, dtype=torch.float64)
    scores = explainer.at(network, x)
    # The first point of a way out at which the top k has changed: late swaps only.
    for share in torch.linspace(0, 1, 400)[1:]:
        x_adv = x + share * (x.flip(0) - x)
        kept = precision_at_k(scores(x), scores(x_adv), k)
        if (kept < 1).float().mean() > 0.3:
            break
    fine_way = on_the_way(network, explainer, x, x_adv, k, "probability")
    assert (kept < 1).sum() > 50
    assert (fine_way[kept < 1] < 1).all()
    coarse = thickness(
        network,
        x,
        k,
        explainer=explainer,
        kind="probability",
        distribution="adversarial",
        x_adv=x_adv,
    )
    assert (coarse[kept < 1] == 1).any()  # which ten points do not see
    fine = thickness(
        network,
        x,
        k,
        explainer=explainer,
        kind="probability",
        distribution="adversarial",
        x_adv=x_adv,
        points=4001,
    )
    assert torch.allclose(fine_way, fine, atol=0.01)


def test_the_gap_on_the_way_is_the_mean_gap():
    """Point by point: the mean of the top k's scores less the others', in the order at x."""
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(5, 9), torch.nn.Tanh(), torch.nn.Linear(9, 2))
    network.double()
    x, x_adv = torch.randn(2, 7, 5, dtype=torch.float64)
    gap = on_the_way(network, Gradient(), x, x_adv, 2, "gap")
    for row in range(7):
        scores = Gradient().at(network, x[row : row + 1])
        order = scores(x[row : row + 1])[0].argsort(descending=True)
        shares = [(i + 0.5) / 200 for i in range(200)] + [1.0]
        ways = [scores(x[row : row + 1] + t * (x_adv - x)[row : row + 1])[0] for t in shares]
        gaps = [float(at[order[:2]].mean() - at[order[2:]].mean()) for at in ways]
        assert float(gap[row]) == pytest.approx(sum(gaps) / 201)


def test_a_figure_that_is_cut_shows_what_was_there(tmp_path):
    """The time is up before the second seed: the picture is that of the first."""
    grid = replace(GRID, recipes=("vanilla",), seeds=1)
    run_figure("figure8", grid, Runner(tmp_path, "serial"))
    before = (tmp_path / "figure8.png").read_bytes()
    for path in (tmp_path / "records").glob("*-sorted-*"):
        path.unlink()
    cut = run_figure("figure8", grid, Runner(tmp_path, "serial", budget=-1.0))
    assert (tmp_path / "figure8.png").read_bytes() == before
    assert "not begun within the budget" in cut.notes[0]


def test_the_front():
    points = [(1.0, 5.0), (2.0, 3.0), (3.0, 4.0), (4.0, 1.0)]
    assert front(points, low=True) == [(1.0, 5.0), (2.0, 3.0), (4.0, 1.0)]
    assert front(points, low=False) == [(4.0, 1.0), (3.0, 4.0), (1.0, 5.0)]


def drawn(how, shown, name):
    """What a drawing puts on its axes, by label; the last of those with the same."""
    axes = Figure().add_subplot()
    how(axes, shown, name)
    return axes, dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))


def placed(recipe, auc, er, unreliable=()):
    """A panel of Figure 7."""
    values = {"auc": [auc], "auc_attacked": [auc - 0.1], "er": [er]}
    return Panel("figure7", "adult", recipe, values, unreliable=unreliable)


def test_the_front_is_without_those_that_do_not_count():
    panels = [
        placed("r2et", 0.9, 0.5),
        placed("wd", 0.7, 0.8),
        placed("sp", 0.95, 0.95, ("its AUC fell",)),
        placed("linear", 0.96, 1.0),
    ]
    axes, marks = drawn(trade_off, panels, "er auc")
    assert np.allclose(marks["Pareto front of all"].get_xydata(), [(0.9, 50), (0.7, 80)])
    hollow = marks["AUC too low, off the fronts"]
    assert np.allclose(hollow.get_offsets(), [(0.95, 95)])
    assert np.allclose(hollow.get_facecolor(), 1)
    assert sorted(text.get_text() for text in axes.texts) == ["linear", "r2et", "sp", "wd"]
    assert remarks("figure7", panels) == ["unreliable, drawn hollow: adult sp (its AUC fell)"]
    _, marks = drawn(trade_off, panels, "er auc_attacked")
    assert np.allclose(marks["Pareto front of all"].get_xydata(), [(0.8, 50), (0.6, 80)])


def test_the_papers_methods_have_a_front_of_their_own():
    panels = [placed("r2et", 0.9, 0.5), placed("wd", 0.7, 0.8), placed("certified", 0.95, 1.0)]
    _, marks = drawn(trade_off, panels, "er auc")
    assert np.allclose(marks["Pareto front of all"].get_xydata(), [(0.95, 100)])
    theirs = marks["Pareto front of the papers' methods"]
    assert np.allclose(theirs.get_xydata(), [(0.9, 50), (0.7, 80)])


def test_labels_are_spread():
    assert spread([0.2, 0.9], 0.1) == pytest.approx([0.2, 0.9])  # far apart: left alone
    assert spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert spread([1.0, 1.0, 0.0], 0.1) == pytest.approx([0.9, 1.0, 0.0])
    heights = np.random.default_rng(0).random(12)
    placed = np.array(spread(list(heights), 0.08))
    assert np.diff(np.sort(placed)).min() >= 0.08 - 1e-9
    assert placed.min() >= 0
    assert placed.max() <= 1 + 1e-9
    assert (placed.argsort() == heights.argsort()).all()


@pytest.mark.parametrize(
    ("shape", "sides"), [([2, 1, 4, 5], (4, 5)), ([3, 4, 5], (4, 5)), ([20], (1, 20))]
)
def test_maps_mark_the_top_k(shape, sides):
    k = find_benchmark("adult").k
    before, after = list(range(20)), [30, *range(1, 12), None, *range(13, 20)]
    shown = [{"row": 0, "precision": 0.75, "before": before, "after": after}]
    panel = Panel("figure3", "adult", "wd", {"shown": shown, "shape": shape})
    wanted = {"before 0": range(20 - k, 20), "after 0": [0, *range(13, 20)]}
    for name, top in wanted.items():
        axes, marks = drawn(maps, panel, name)
        others, best = (image.get_array() for image in axes.images)
        assert best.shape == others.shape == sides
        assert list(np.flatnonzero(~best.mask)) == list(top)
        assert (best.mask != others.mask).all()
        lost = np.asarray(marks[f"driven from the top {k} by the attack"].get_offsets())
        assert lost.tolist() == ([[12 % sides[1], 12 // sides[1]]] if name == "after 0" else [])


def test_the_asterisk_is_on_the_best_attack_that_keeps_predictions():
    attacks = [("gda", 0.5, 0.5, 0.01), ("qp", 1.0, 0.4, 0.02), ("none", 1.0, 0.1, 0.3)]
    names = ("constraint", "share", "precision", "sensitivity")
    points = [{"attack": "er", **dict(zip(names, p, strict=True))} for p in attacks]
    _, marks = drawn(constrained, Panel("figure6", "adult", "wd", {"points": points}), "er")
    best = marks["least P@k at 2 % sensitivity or less"].get_offsets()
    assert np.allclose(best, [(2, 40)])
    assert {"constraint gda", "constraint qp", "step size x 0.5", "step size x 1"} <= set(marks)


def test_only_the_ends_asked_for(tmp_path):
    files = draw("figure2", "Figure 2", some("figure2"), tmp_path, ends=("png",))
    assert files == [tmp_path / "figure2.png"] == list(tmp_path.iterdir())


def test_where_all_failed_the_reason_is_drawn(tmp_path):
    draw("figure7", "Figure 7", some("figure7")[-1:], tmp_path, ends=("png",))
    assert remarks("figure7", some("figure7")) == ["adult, ssr: ssr is for tables"]
    with Image.open(tmp_path / "figure7.png") as picture:
        assert picture.convert("L").getextrema()[0] < 100


def test_correlations_of_all_quantities_are_told():
    (sentence,) = correlation_sentences(some("figure2")[:1])
    assert sentence.startswith("figure2, adult, vanilla: Spearman")
    assert sentence.count("thickness") == 3


def test_a_file_that_is_no_panel():
    with pytest.raises(InputError, match="bench: a panel must be a file of r2et bench, got"):
        Panel.from_json("{}", "f.json")


@pytest.mark.slow
def test_figures_measured_on_a_small_table(tmp_path):
    grid = replace(GRID, recipes=("vanilla",), seeds=1)
    for name in ("figure2", "figure7", "figure8", "lengths"):
        outcome = run_figure(name, grid, Runner(tmp_path, "here"))
        assert [f.suffix for f in outcome.files] == [".png", ".pdf"]
        text = (tmp_path / "claims" / name / "adult-vanilla.json").read_text()
        panel = Panel.from_json(text, name)
        assert panel.failed is None
        assert all((tmp_path / "records" / f"{r}.json").exists() for r in panel.records)
    assert len(list((tmp_path / "records").glob("*-train-*"))) == 1  # trained once for all
    assert panel.values["epochs"] == [1]
    best, last = panel.values["er"][0][0], panel.values["er_last"][0][0]
    assert 0 < best <= last  # the attack's last point is no better than its best
