"""Figures: what is computed for them, what is stored, and that a picture comes of it."""

import math
from dataclasses import replace

import pytest
from PIL import Image

from bench_run import GRID
from r2et.bench.draw import correlation, draw, front
from r2et.bench.figures import PICTURES
from r2et.bench.panel import Panel
from r2et.bench.run import Runner, run_figure
from r2et.errors import InputError

ROWS = 6


def some(figure):
    """Made-up panels of a figure."""
    flips = {"first_flip_rows": [1, 2, 3, -1, 5, 6]}
    names = ("adversarial_rows", "hessian_rows", "gaussian_rows", "gaussian_least_rows")
    steps = {**flips, **{n: [0.1 * i for i in range(ROWS)] for n in names}}
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
    }[figure]
    failed = Panel(figure, "adult", "ssr", failed="ssr is for tables")
    return [Panel(figure, "adult", r, values, ("record",)) for r in ("vanilla", "r2et")] + [failed]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_every_figure(name, tmp_path):
    panels = some(name)
    png, pdf = draw(name, PICTURES[name].title, panels, tmp_path)
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


def test_the_front():
    points = [(1.0, 5.0), (2.0, 3.0), (3.0, 4.0), (4.0, 1.0)]
    assert front(points, low=True) == [(1.0, 5.0), (2.0, 3.0), (4.0, 1.0)]
    assert front(points, low=False) == [(4.0, 1.0), (3.0, 4.0), (1.0, 5.0)]


def test_a_file_that_is_no_panel():
    with pytest.raises(InputError, match="bench: a panel must be a file of r2et bench, got"):
        Panel.from_json("{}", "f.json")


def test_figures_measured_on_a_small_table(tmp_path):
    grid = replace(GRID, recipes=("vanilla",), seeds=1)
    for name in ("figure2", "figure7", "figure8", "lengths"):
        found = run_figure(name, grid, Runner(tmp_path, "here"))
        assert [f.suffix for f in found.files] == [".png", ".pdf"]
        text = (tmp_path / "claims" / name / "adult-vanilla.json").read_text()
        panel = Panel.from_json(text, name)
        assert panel.failed is None
        assert all((tmp_path / "records" / f"{r}.json").exists() for r in panel.records)
    assert len(list((tmp_path / "records").glob("*-train-*"))) == 1  # trained once for all
    assert panel.values["epochs"] == [1]
    best, last = panel.values["er"][0][0], panel.values["er_last"][0][0]
    assert 0 < best <= last  # the attack's last point is no better than its best
