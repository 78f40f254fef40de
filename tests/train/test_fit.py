"""Training: parity with a plain loop, what is kept and when it stops, and bad input."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from nets import ResidualNet
from r2et.data import Data, Origin, Split, load
from r2et.errors import InputError
from r2et.explain import Concept, Gradient
from r2et.models import MLP, HingeMLP, SiameseCNN, SiameseGCN, TableMLP
from r2et.penalty import R2ET, AdversarialTraining, BallR2ET
from r2et.train import RECIPES, Fit, Recipe, fit, recipe, select
from r2et.train.defaults import table_network, usual_epochs
from r2et.train.distributed import SingleProcess
from r2et.train.runtime import mixed
from r2et.train.step import TrainingStep, alike_in_both_modes
from training_data import small

ONE = {"epochs": 1, "progress": False}
QUICK = {"epochs": 2, "progress": False}
FIT = Fit(nn.Identity(), [], {})  # of the right type, and no more


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [p.detach() for p in model.parameters()]


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(weights(a), weights(b), strict=True))


def by_hand(model: nn.Module, data: Data, epochs: int, batch: int = 256) -> nn.Module:
    """A plain PyTorch loop over the same batches."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        numbers = torch.Generator().manual_seed(mixed(0, epoch, -1))
        for rows in torch.randperm(len(data.train.y), generator=numbers).split(batch):
            optimizer.zero_grad()
            cross_entropy(model(data.train.x[rows]), data.train.y[rows]).backward()
            optimizer.step()
    return model


def test_vanilla_is_the_plain_loop_bit_by_bit():
    torch.manual_seed(3)
    model = MLP(8)
    untouched = [w.clone() for w in weights(model)]
    found = fit(model, small(), "vanilla", epochs=3, progress=False).model
    assert all(torch.equal(a, b) for a, b in zip(untouched, weights(model), strict=True))
    assert same(found, by_hand(model, small(), 3))


@pytest.mark.parametrize("name", [n for n, r in RECIPES.items() if r.penalty is not None])
def test_weight_0_is_plain_training_bit_by_bit(name):
    torch.manual_seed(3)
    model, data = MLP(8), small()
    chosen = recipe(name, weight=0.0)
    plain = fit(model, data, recipe("vanilla", cool_down=chosen.cool_down), **QUICK).model
    assert same(fit(model, data, chosen, **QUICK).model, plain)
    if name != "at":  # there the penalty is the loss
        assert not same(fit(model, data, recipe(name, weight=0.5), **QUICK).model, plain)


def test_both_factors_0_is_plain_training_bit_by_bit():
    torch.manual_seed(3)
    model, data = MLP(8), small()
    plain = fit(model, data, "vanilla", **QUICK).model
    for name in ("r2et", "r2et-ball"):
        nothing = recipe(name, l1=0.0, l2=0.0)
        assert same(fit(model, data, nothing, **QUICK).model, plain)


def test_the_penalty_counts_as_in_a_loop_by_hand():
    """One step of fit against loss + weight * penalty, written out."""
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    chosen = recipe("r2et", weight=0.7, every=1, batch=64)
    found = fit(model, data, chosen, epochs=1, progress=False).model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = data.train
    numbers = torch.Generator().manual_seed(mixed(0, 0, -1))
    rows = torch.randperm(64, generator=numbers)
    loss = cross_entropy(model(x[rows]), y[rows])
    (loss + 0.7 * R2ET(k=3)(model, x[rows]).mean()).backward()
    optimizer.step()
    for a, b in zip(weights(found), weights(model), strict=True):
        torch.testing.assert_close(a, b)


def test_adaptive_weight_scales_the_penalty_to_the_loss():
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    chosen = recipe("r2et-nh", weight=0.5, every=1, batch=64, adaptive=True)
    found = fit(model, data, chosen, epochs=1, progress=False).model
    x, y = data.train
    rows = torch.randperm(64, generator=torch.Generator().manual_seed(mixed(0, 0, -1)))
    loss = cross_entropy(model(x[rows]), y[rows])
    penalty = R2ET(k=3, l2=0.0)(model, x[rows]).mean()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    factor = 0.5 * abs((loss.item() + 1) / penalty.item())
    (loss + factor * penalty).backward()
    optimizer.step()
    for a, b in zip(weights(found), weights(model), strict=True):
        torch.testing.assert_close(a, b)


def test_dropout_and_batch_norm_train_with_penalties():
    """Explanations are those of the deployed model, and leave its statistics alone."""
    torch.manual_seed(0)
    x, y = torch.randn(64, 1, 4, 4), torch.randint(0, 3, (64,))
    part = Split(x, y)
    data = Data("noise", part, part, part, (), (), 4, Origin("made here"), ("a", "b", "c"))
    model = ResidualNet(1, nn.ReLU)
    plain = fit(model, data, "vanilla", **QUICK).model
    again = fit(model, data, recipe("r2et", weight=0.0), **QUICK).model
    assert same(plain, again)
    assert torch.equal(plain.norm.running_mean, again.norm.running_mean)
    assert not same(plain, fit(model, data, recipe("r2et", weight=1.0), **QUICK).model)
    concepts = fit(model, data, recipe("r2et", every=1), explainer=Concept(), k=2, **QUICK)
    assert not same(plain, concepts.model)


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
    data, chosen = small(), recipe("est-h", weight=300.0)
    start = fit(MLP(8), data, "vanilla", epochs=30, progress=False).model
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
    start = table_network(data, recipe("vanilla"))
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


def test_warm_up_grows_the_radius_from_0():
    seen = []

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Radius(BallR2ET.__mro__[1]):  # the abstract base: BallR2ET itself is final
        radius: float = 1.0

        def ranked_rows(self, view):
            seen.append(self.radius)
            return view.scores.sum(1) * 0

    chosen = Recipe("noting", Radius(), warm_up=0.5, batch=100)
    fit(None, small(rows=400), chosen, radius=2.0, epochs=2, progress=False)
    assert seen == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0])


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


def test_one_pass_serves_loss_and_penalty_only_where_modes_agree():
    torch.manual_seed(0)
    x = torch.rand(32, 8)
    drop = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    assert alike_in_both_modes(MLP(8), x)
    assert not alike_in_both_modes(drop, x)
    assert drop.training
    # The penalty of a dropout network is that of the deployed one: it has no random part.
    data = small(rows=64)
    one_step = recipe("r2et-nh", weight=1.0, every=1, batch=64)
    found = fit(drop, data, one_step, epochs=1, progress=False).history[0]["penalty"]
    rows = R2ET(k=3, l2=0.0)(drop.eval(), data.train.x)
    assert found == pytest.approx(float(rows.detach().mean()), rel=1e-4)


def test_a_penalty_on_every_nth_batch_is_n_times_as_heavy():
    """With plain gradient descent, four batches of one kind must move as far either way."""
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    seen = {}
    for every in (1, 4):
        totals = []

        class Noted(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = copy.deepcopy(model)

            def forward(self, x):
                return self.inner(x)

        chosen = recipe("r2et-nh", weight=0.5, every=every, batch=64, warm_up=0.0).prepared(3, 1.0)
        step = TrainingStep(Noted(), chosen, SingleProcess(torch.device("cpu")), shared=True)
        for index in range(4):
            x, y = data.train
            part = step(x.clone(), y, 1.0, index % every == 0, 1.0, None, None, None)
            totals.append(part.total.item() - part.loss.item())
        seen[every] = sum(totals)
    assert seen[4] == pytest.approx(seen[1], rel=1e-5)
    assert seen[1] != 0


def test_the_weight_warms_up():
    data = small(rows=64)
    chosen = recipe("r2et-nh", weight=1.0, every=1, batch=64, warm_up=1.0)
    plain = fit(None, data, "vanilla", epochs=1, progress=False).model
    full = fit(None, data, recipe(chosen, warm_up=0.0), epochs=2, progress=False).model
    warm = fit(None, data, chosen, epochs=2, progress=False).model
    assert not same(full, warm)
    assert not same(plain, warm)


def test_adversarial_training_stands_in_the_place_of_the_loss():
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    chosen = recipe("at", batch=64)
    found = fit(model, data, chosen, radius=0.2, epochs=1, progress=False).model
    x, y = data.train
    rows = torch.randperm(64, generator=torch.Generator().manual_seed(mixed(0, 0, -1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    AdversarialTraining(k=3, radius=0.2)(model, x[rows], y[rows]).mean().backward()
    optimizer.step()
    for a, b in zip(weights(found), weights(model), strict=True):
        torch.testing.assert_close(a, b)


def test_a_retraining_is_given_the_first_ranking():
    seen = []

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Order(BallR2ET.__mro__[1]):
        def ranked_rows(self, view):
            seen.append(view.top(3))
            return view.scores.sum(1)

    data = small(rows=64)
    model = fit(None, data, "vanilla", epochs=3, progress=False).model
    chosen = Recipe("order", Order(), 5.0, batch=16, lr=0.05)
    moved = fit(model, data, chosen, retrain=True, agree=0.0, epochs=1, keep="last", progress=False)
    rows = torch.randperm(64, generator=torch.Generator().manual_seed(mixed(0, 0, -1)))
    first = Gradient()(model, data.train.x[rows]).topk(3, 1).indices
    assert torch.equal(torch.cat(seen), first)
    assert moved.history[0]["agreement"] < 1  # by now its own ranking is another


def test_what_the_caller_holds_in_eval_mode_stays_so():
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8)
    model = nn.Sequential(nn.Linear(8, 8), norm, nn.Linear(8, 2))
    norm.eval()
    found = fit(model, small(), "vanilla", **QUICK).model
    assert torch.equal(found[1].running_mean, norm.running_mean)


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
