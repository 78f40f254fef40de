"""Training: parity with a plain loop, what is kept and when it stops, and bad input."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from plain_training import by_hand, same, weights
from r2et.data import Data, Origin, Split, load
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.models import MLP, HingeMLP, SiameseCNN, SiameseGCN, TableMLP
from r2et.train import Fit, Recipe, fit, recipe, select
from r2et.train.defaults import table_network, usual_epochs
from training_data import small

ONE = {"epochs": 1, "progress": False}
QUICK = {"epochs": 2, "progress": False}
FIT = Fit(nn.Identity(), [], {})  # of the right type, and no more


def test_vanilla_is_the_plain_loop_bit_by_bit():
    torch.manual_seed(3)
    model = MLP(8)
    untouched = [w.clone() for w in weights(model)]
    found = fit(model, small(), "vanilla", epochs=3, progress=False).model
    assert all(torch.equal(a, b) for a, b in zip(untouched, weights(model), strict=True))
    assert same(found, by_hand(model, small(), 3))


def test_repeats_under_a_seed_and_leaves_torchs_numbers_alone():
    data = small()
    before = torch.get_rng_state()
    runs = [fit(None, data, "r2et-ball", seed=s, **QUICK).model for s in (0, 0, 1)]
    assert torch.equal(before, torch.get_rng_state())
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def test_history_and_record():
    found = fit(None, small(), "r2et", epochs=3, progress=False)
    assert [entry["epoch"] for entry in found.history] == [1, 2, 3]
    for entry in found.history:
        assert 0.5 < entry["auc"] <= 1
        assert 0 <= entry["thickness_probability"] <= 1
        assert entry["loss"] > 0
    record = found.record
    assert record["data"] == "small"
    assert record["name"] == "r2et"
    assert "R2ET(" in record["recipe"]
    assert record["k"] == 3
    assert record["epoch_kept"] == 3
    assert not found.model.training


@pytest.mark.slow
def test_r2et_ball_makes_explanations_stabler_at_equal_auc():
    from r2et.attack import StrongAttack
    from r2et.region import L2

    data = small(rows=1200)
    stable = {}
    for name in ("vanilla", "r2et-ball"):
        found = fit(None, data, name, radius=0.5, epochs=60, progress=False)
        result = StrongAttack(L2(0.5), budget="fast")(
            found.model, Gradient(), data.test.x[:100], k=3
        )
        stable[name] = (float(result.precision.mean()), found.record["auc"])
    assert stable["r2et-ball"][0] > stable["vanilla"][0] + 0.05
    assert stable["r2et-ball"][1] > stable["vanilla"][1] - 0.01


def test_what_is_kept():
    data = small()
    last = fit(None, data, "vanilla", epochs=6, keep="last", progress=False)
    assert last.record["epoch_kept"] == 6
    aucs = [entry["auc"] for entry in last.history]
    best = fit(None, data, "vanilla", epochs=6, keep="best", progress=False)
    # Of equal AUCs the lower log-loss.
    ranked = sorted(last.history, key=lambda entry: (-entry["auc"], entry["log_loss"]))
    assert best.record["epoch_kept"] == ranked[0]["epoch"]
    chosen = fit(None, data, "vanilla", epochs=6, progress=False)
    assert same(chosen.model, best.model)  # what a table gets where nobody says otherwise
    bar = sorted(aucs)[3]
    above = fit(None, data, "vanilla", epochs=6, keep="above", threshold=bar, progress=False)
    assert above.record["epoch_kept"] == max(i + 1 for i, a in enumerate(aucs) if a >= bar)
    assert above.record["threshold_met"]
    with pytest.warns(UserWarning, match=r"no epoch reached the validation AUC 2\.0"):
        none = fit(None, data, "vanilla", epochs=6, keep="above", threshold=2.0, progress=False)
    assert none.record["auc"] == best.record["auc"]
    assert not none.record["threshold_met"]
    ones = dataclasses.replace(data, val=Split(data.val.x, torch.ones_like(data.val.y)))
    with pytest.raises(InputError, match=r"data.val.y must be of two classes or more for an AUC"):
        fit(None, ones, "vanilla", keep="best", **QUICK)


def test_no_epoch_is_kept_from_before_the_penalty_is_whole():
    """Eight epochs, half of them warm-up: the best are the unpenalised first ones."""
    torch.manual_seed(0)
    data, chosen = small(), recipe("est-h", weight=3e4)
    start = fit(MLP(8), data, "vanilla", epochs=100, progress=False).model
    found = fit(start, data, chosen, epochs=8, progress=False)
    aucs = [entry["auc"] for entry in found.history]
    assert max(aucs[:3]) > max(aucs[3:])  # otherwise this shows nothing
    ready = {i + 1: a for i, a in enumerate(aucs) if i >= 3}
    near = [epoch for epoch, a in ready.items() if a >= max(ready.values()) - 0.002]
    assert found.record["epoch_kept"] == max(near)
    still = recipe("est-h", patience=1, lr=1e-12)
    assert fit(None, data, still, epochs=20, progress=False).record["epochs_done"] == 11
    unweighed = recipe("est-h", patience=1, lr=1e-12, weight=0.0)
    assert fit(None, data, unweighed, epochs=20, progress=False).record["epochs_done"] == 2


def test_the_network_for_tables_starts_at_a_logistic_regression():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    data = small()
    start = table_network(data, recipe("r2et"))  # without one it may start elsewhere
    assert type(start) is TableMLP
    scaler = StandardScaler().fit(data.train.x)
    model = LogisticRegression(C=0.03).fit(scaler.transform(data.train.x), data.train.y)
    odds = torch.from_numpy(model.decision_function(scaler.transform(data.val.x))).float()
    rest = start.straight(data.val.x) * 0.05
    torch.testing.assert_close(rest[:, 1] - rest[:, 0], odds, rtol=1e-3, atol=1e-3)
    proved = table_network(data, recipe("certified"))
    assert type(proved) is HingeMLP  # whose proofs are better
    assert proved.settings["width"] == 16
    rest = torch.nn.functional.linear(data.val.x, proved.first.weight[-2:], proved.first.bias[-2:])
    torch.testing.assert_close(0.6 * (rest[:, 1] - rest[:, 0]), odds, rtol=1e-3, atol=2e-3)
    assert type(table_network(data, recipe("certified"), (5, 4))) is MLP
    assert type(table_network(data, recipe("r2et-reasons"))) is MLP
    assert type(table_network(data, recipe("sp"))) is MLP
    assert table_network(data, recipe("wd"), (5, 4)).settings["widths"] == [5, 4]
    found = fit(None, data, "vanilla", epochs=1, progress=False)
    assert type(found.model) is TableMLP
    three = small(classes=3)
    assert fit(None, three, "vanilla", **QUICK).model(three.val.x).shape[1] == 3


def test_hinges_are_trained_with_a_falling_learning_rate_and_the_papers_network_as_ever():
    data = small(rows=300)

    def schedule(model, **changes):
        chosen = recipe("certified", batch=105, **changes)
        record = fit(model, data, chosen, k=2, keep="last", **ONE).record
        return record["config"]["recipe"].get("cool_down", 0.0)

    assert schedule(None) == 0.7
    assert schedule(None, cool_down=0.2) == 0.2
    assert schedule(MLP(8)) == 0.0
    hinges = table_network(data, recipe("certified"))
    lengths = {rows: usual_epochs(hinges, rows, 256) for rows in (100, 700, 3500, 10**4, 10**6)}
    assert lengths == {100: 10, 700: 21, 3500: 108, 10**4: 38, 10**6: 10}
    lengths = {rows: usual_epochs(MLP(8), rows, 256) for rows in (100, 3500, 10**6)}
    assert lengths == {100: 200, 3500: 200, 10**6: 10}


def test_patience():
    found = fit(None, small(), recipe("vanilla", patience=2, lr=1e-12), epochs=50, progress=False)
    assert found.record["epochs_done"] == 3
    assert found.record["stopped"] == "no better validation AUC in 2 epochs"


def test_retraining_preserves_the_first_ranking_and_stops_when_it_is_lost():
    data = small(rows=600)
    vanilla = fit(None, data, "vanilla", epochs=30, progress=False).model
    gentle = fit(vanilla, data, recipe("r2et-nh", lr=1e-4), retrain=True, progress=False)
    assert gentle.record["epochs_done"] == 10
    assert all(entry["agreement"] >= 0.9 for entry in gentle.history)
    wild = fit(
        vanilla, data, recipe("r2et-nh", weight=100.0, lr=0.05), retrain=True, progress=False
    )
    assert wild.record["stopped"]
    assert wild.record["epochs_done"] < 10
    kept = wild.record["epoch_kept"]
    assert kept == wild.record["epochs_done"] - 1 or (
        kept == -1 and wild.record["epochs_done"] == 1
    )
    if kept == -1:
        assert same(wild.model, vanilla)


@pytest.mark.slow
def test_selection_is_the_papers():
    data = small(rows=600)
    fits = [
        fit(None, data, recipe("r2et-ball", weight=w), epochs=10, progress=False)
        for w in (0.0, 0.03, 30.0)
    ]
    found = select(fits, data, vanilla=fits[0], rows=60, progress=False)
    assert found.met
    assert found.candidates[0]["threshold"] == pytest.approx(fits[0].record["auc"] - 0.01)
    able = [c["precision"] for c in found.candidates if c["met"]]
    assert found.candidates[found.index]["precision"] == max(able)
    assert found.fit is fits[found.index]
    nobody = select(fits, data, threshold=1.1, rows=20, progress=False)
    assert not nobody.met
    assert nobody.index == max(range(3), key=lambda i: nobody.candidates[i]["auc"])


def test_linear_and_softplus_recipes_change_the_network():
    data = small()
    line = fit(None, data, "linear", **QUICK).model
    assert [type(m) for m in line.layers] == [nn.Linear]
    soft = fit(MLP(8), data, "sp", **QUICK).model
    assert not any(isinstance(m, nn.LeakyReLU) for m in soft.modules())


def test_cool_down_brings_the_steps_down_to_0(monkeypatch):
    seen, step = [], torch.optim.Adam.step

    def noting(self, *args, **kwargs):
        seen.append(self.param_groups[0]["lr"])
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", noting)
    chosen = Recipe("cooling", cool_down=0.5, batch=100, lr=0.2)
    fit(None, small(rows=400), chosen, epochs=2, progress=False)
    assert seen == pytest.approx([0.2, 0.2, 0.2, 0.2, 0.2, 0.15, 0.1, 0.05])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: fit(None, d, "r2et-bal"), "(did you mean r2et-ball?), got r2et-bal."),
        (lambda d: fit(None, d, 7), "recipe: name must be one of vanilla"),
        (
            lambda _: fit(None, "adult", "wd"),
            "fit: data must be a Data (see load, load_table), got adult",
        ),
        (lambda d: fit("net", d, "wd"), "fit: model must be None or a torch.nn.Module, got str."),
        (lambda d: fit(None, d, "wd", k=8), "fit: k must be in 1..7 for 8 features, got 8."),
        (lambda d: fit(None, d, "wd", radius=0), "fit: radius must be positive and finite, got 0."),
        (lambda d: fit(None, d, "wd", epochs=0), "fit: epochs must be None or a positive"),
        (lambda d: fit(None, d, "wd", epochs=1.5), "fit: epochs must be a whole number, got 1.5."),
        (lambda d: fit(None, d, "wd", agree="yes"), "fit: agree must be a number, got yes."),
        (lambda d: fit(None, d, "wd", save_every=-1), "fit: save_every must be 0 seconds or more"),
        (
            lambda d: fit(None, d, "wd", keep="above", threshold=float("nan")),
            "fit: threshold must be a number, got nan.",
        ),
        (lambda d: fit(None, d, "wd", out=""), "fit: out must be a folder's name"),
        (lambda _: fit(MLP(8, classes=1), small(classes=3), "wd"), "of at most 2 classes"),
        (lambda d: fit(MLP(8).double(), d, "wd"), "fit: model must be a callable that takes x"),
        (lambda d: fit(MLP(7), d, "wd"), "MLP: x must be rows of shape (B, 7)"),
        (
            lambda d: fit(MLP(8).requires_grad_(False), d, "r2et"),
            "fit: model must be one with weights that require a gradient, got none.",
        ),
        (lambda d: fit(None, with_y(d, d.train.y.float()), "wd"), "data.train.y must be an int64"),
        (
            lambda d: fit(None, with_y(d, d.train.y - 1), "wd"),
            "data.train.y must be classes from 0",
        ),
        (lambda d: fit(None, with_y(d, d.train.y[:9]), "wd"), "data.train.y must be an int64"),
        (lambda _: recipe("r2et-ball", radius=2.0), "recipe: radius must be given to fit, not"),
        (lambda d: fit(None, d, "wd", seed=-1), "fit: seed must be in 0..2^32 - 1, got -1."),
        (lambda d: fit(None, d, "wd", keep="first"), "fit: keep must be last, best or above"),
        (lambda d: fit(None, d, "wd", keep="above"), "fit: threshold must be given with keep='abo"),
        (lambda d: fit(None, d, "wd", explainer=1), "fit: explainer must be None or an Explainer"),
        (lambda d: fit(None, d, "wd", fabric=1), "fit: fabric must be a lightning_fabric.Fabric"),
        (lambda _: recipe("r2et", wieght=1), "recipe: a change must be one of adaptive"),
        (lambda _: recipe("r2et", weight=-1), "recipe: weight must be 0 or more, got -1."),
        (lambda _: recipe("r2et", every=0), "recipe: every must be a positive whole number"),
        (lambda _: recipe("r2et", l1=-1.0), "R2ET: l1 must be 0 or a positive number, got -1.0."),
        (lambda _: recipe("wd", l1=1.0), "recipe: a change must be one of adaptive"),
        (lambda d: select([], d, threshold=0.5), "select: fits must be one or more results of fit"),
        (lambda d: select([FIT], d, threshold="a"), "select: threshold must be None or a number"),
        (lambda d: select([FIT], d, attack="er"), "select: attack must be None or an Attack"),
    ],
)
def test_bad_input(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        call(small())
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())  # nothing is written by what is refused


def with_y(data: Data, y: torch.Tensor) -> Data:
    return dataclasses.replace(data, train=Split(data.train.x, y))


def test_numpy_numbers_are_numbers():
    found = fit(None, small(), "wd", k=np.int64(2), epochs=np.int64(1), radius=np.float32(0.5))
    assert (found.record["k"], found.record["epochs"]) == (2, 1)


def test_a_model_that_works_in_place_leaves_the_data_alone():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = MLP(8)

        def forward(self, x):
            return self.inner(x.sub_(0.5))

    data = small()
    before = data.train.x.clone()
    fit(InPlace(), data, recipe("r2et", every=1), **QUICK)
    assert torch.equal(data.train.x, before)


def test_one_class_only():
    data = small()
    ones = Split(data.train.x, torch.ones_like(data.train.y))
    with pytest.raises(InputError, match=r"data.train.y must be of two classes or more, got only"):
        fit(None, dataclasses.replace(data, train=ones), "vanilla")


def test_pairs_and_graphs_train_end_to_end():
    torch.manual_seed(0)
    x, y = torch.rand(24, 2, 28, 28), torch.randint(0, 2, (24,))
    part = Split(x, y)
    digits = Data("pairs", part, part, part, (), (), 50, Origin("made here"), ("other", "same"))
    assert len(fit(SiameseCNN(), digits, recipe("r2et", batch=12), **QUICK).history) == 2
    pytest.importorskip("torch_geometric")
    x = torch.rand(24, 2, 10)
    part = Split(x, y)
    graphs = Data("graphs", part, part, part, (), (), 3, Origin("made here"), ("other", "same"))
    from r2et.explain import GradientTimesInput

    explainer = GradientTimesInput(of="probability")
    found = fit(SiameseGCN(5), graphs, recipe("r2et", batch=12), explainer=explainer, **QUICK)
    assert len(found.history) == 2


def test_adult_is_learned():
    found = fit(None, load("adult"), "vanilla", epochs=2, progress=False)
    assert found.record["auc"] > 0.86


class Checkpointed(nn.Module):
    """A network that computes its middle twice to save memory."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        inner = self.first(x).relu()
        if self.training:
            inner = checkpoint(self.middle, inner, use_reentrant=True)
        else:
            inner = self.middle(inner)
        return self.last(inner.relu())


def test_a_network_with_reentrant_checkpoints_is_trained():
    torch.manual_seed(0)
    network = Checkpointed()
    done = fit(network, small(), "vanilla", epochs=2, progress=False, baselines=False)
    assert not torch.equal(done.model.middle.weight, network.middle.weight)
