"""Pictures, digits and brain networks in the papers' regime: configs, copies, budgets."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save as format_weights
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from r2et.bench.augmentation import MOST_SHIFT, augmented, flipped_and_shifted
from r2et.bench.benchmark_config import BenchmarkConfig, changes
from r2et.bench.grid import Grid, inapplicable, select_trainings
from r2et.bench.measure_task import MeasureTask
from r2et.bench.networks import papers_network
from r2et.bench.papers_regime import BUDGETS, EDGE_DEVIATIONS
from r2et.bench.regime_searches import nearest_budget
from r2et.bench.registry import find_benchmark
from r2et.bench.table_measurements import MEASUREMENTS, pair_features
from r2et.bench.train_task import TrainTask
from r2et.data import Data, Origin, Split
from r2et.errors import InputError
from r2et.explain import Concept
from r2et.models.weights import copied_weights
from r2et.train import RECIPES, recipe
from real_data import real


def pictures(count=6, side=8, channels=2):
    x = torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(1))
    part = Split(x, torch.arange(count) % 2)
    return Data("made", part, part, part, (), (), 5, Origin("made here"))


def test_every_copy_is_the_picture_flipped_or_not_and_shifted():
    """Each is found again by trying all of them, pixel by pixel."""
    x = pictures(count=20, side=12).train.x
    copies = flipped_and_shifted(x, torch.Generator().manual_seed(0))
    assert copies.shape == x.shape
    found = []
    inner = slice(MOST_SHIFT, -MOST_SHIFT)
    for one, copy in zip(x, copies, strict=True):
        for flip in (False, True):
            base = one.flip(2) if flip else one
            for down in range(-MOST_SHIFT, MOST_SHIFT + 1):
                for right in range(-MOST_SHIFT, MOST_SHIFT + 1):
                    moved = torch.roll(base, (down, right), (1, 2))  # the same but at the border
                    if torch.equal(moved[:, inner, inner], copy[:, inner, inner]):
                        found.append((flip, down, right))
    assert len(found) == len(x)
    assert {flip for flip, _, _ in found} == {False, True}
    assert len(set(found)) > 10


def test_what_moves_in_is_the_border():
    x = torch.zeros(30, 1, 6, 6)
    x[..., -1] = 1.0  # the right column alone
    copies = flipped_and_shifted(x, torch.Generator().manual_seed(0))
    assert set(copies.unique().tolist()) <= {0.0, 1.0}
    assert copies.flatten(1).sum(1).max() > 6  # shifted to the left, it is wider
    assert torch.equal(copies[:, :, :1].expand_as(copies), copies)  # alike from top to bottom


def test_copies_come_after_the_pictures_with_their_classes():
    data = pictures()
    more = augmented(data, 3)
    assert torch.equal(more.train.x[:6], data.train.x)
    assert torch.equal(more.train.y, data.train.y.repeat(4))
    assert torch.equal(augmented(data, 3).train.x, more.train.x)  # the same each time
    assert more.val is data.val
    with pytest.raises(InputError, match=r"bench: augment must be 0 where x is no picture, got"):
        augmented(replace(data, train=Split(data.train.x.flatten(1), data.train.y)), 1)


def test_a_training_from_scratch_sees_copies_and_a_retraining_does_not(monkeypatch):
    own = replace(find_benchmark("cifar10-10k"), augment=2)
    monkeypatch.setattr(type(own), "load", lambda _: pictures())
    assert len(own.load_to_train(False).train.y) == 18
    assert len(own.load_to_train(True).train.y) == 6
    scratch = TrainTask("cifar10-10k", "vanilla").config()
    again = TrainTask("cifar10-10k", "r2et", retrain=True).config()
    assert (scratch["augment"], "augment" in again) == (3, False)
    assert "augment" not in TrainTask("cifar10-10k", "vanilla", regime="papers").config()


@pytest.mark.parametrize("regime", ["long", "papers"])
def test_pictures_are_retrained_from_one_vanilla(regime):
    own = find_benchmark("cifar10-10k", regime)
    grid = Grid(("cifar10-10k",), ("r2et",), seeds=1, regime=regime)
    (choice,) = next(select_trainings(grid, "cifar10-10k", "r2et"))
    *held, free = choice.tried
    for measure in choice.tried:
        assert measure.of.retrain
        assert measure.of.needs == (TrainTask("cifar10-10k", "vanilla", regime=regime),)
    for measure in held:
        assert measure.of.asked_epochs == own.retrain_epochs == 1
        assert dict(measure.of.changes)["agree"] == 0.0  # held by its AUC alone
    (ball, _) = own.candidates["r2et-ball"]  # the papers' penalties have what ours has
    alike = ("epochs", "every", "free", "rho", "cool_down", "warm_up")
    assert {name: dict(free.of.changes)[name] for name in alike} == {
        name: dict(ball)[name] for name in alike
    }
    for tried in own.candidates["r2et-ball"]:
        task = TrainTask("cifar10-10k", "r2et-ball", tried, retrain=True, regime=regime)
        assert dict(tried)["l1"] == 0.0
        assert not task.held
        assert task.settings(recipe("r2et-ball")).lr == own.lr  # whole steps
        assert task.config()["free"]
    assert not grid.train("cifar10-10k", "vanilla", retrain=True).retrain
    assert inapplicable(own, "sp", retrain=True) is None  # its softplus starts from Vanilla, too
    assert (own.width, own.train_rows) == ((16,), None)


def test_scans_have_the_papers_512_concepts():
    own = find_benchmark("oct-kermany-64", "papers")
    assert (own.k, own.width) == (50, (64,))
    one = Split(torch.rand(2, 1, 64, 64), torch.tensor([0, 3]))
    data = Data("made", one, one, one, (), (), 50, Origin("made here"))
    model = papers_network(data, own.width).eval()
    assert Concept()(model, one.x).shape == (2, 512)


def test_a_budget_is_in_units_of_the_data():
    for name in ("adhd-frontal", "abide"):
        own = find_benchmark(name, "papers")
        assert own.region.radius == pytest.approx(BUDGETS[name] * EDGE_DEVIATIONS[name], abs=1e-4)
        assert own.attack("er").region.radius == own.region.radius
        assert find_benchmark(name).region == own.region
    assert find_benchmark("bp").region.radius == 0.2  # the papers' own data, by their budget


def test_the_deviations_are_the_datas():
    data = real("adhd-frontal")
    assert float(data.train.x.std()) == pytest.approx(EDGE_DEVIATIONS["adhd-frontal"], abs=5e-4)


def test_a_radius_of_its_own_is_another_measurement():
    task = TrainTask("adhd-frontal", "vanilla", regime="papers")
    settings = MEASUREMENTS["er"].settings(task.benchmark, radius=0.1)
    assert settings["attack"].region.radius == 0.1
    assert settings["attack"].step_size == pytest.approx(0.02)
    assert MeasureTask(task, "er", (("radius", 0.1),)).reported() is None


def test_the_nearest_budget():
    values = {"budgets": [0.1, 0.2, 0.5], "er_last": [[0.9], [0.6, 0.7], [0.2]], "papers": 0.694}
    values["sensitivity"] = [[0.0], [0.05, 0.1], [0.2]]
    assert nearest_budget(values) == 0.2
    # Where predictions are lost, rows count as unmoved: near to the papers' for no good reason.
    values |= {"er_last": [[0.9], [0.6, 0.6], [0.69]]}
    assert nearest_budget(values) == 0.2
    values["sensitivity"] = [[0.5], [0.5, 0.5], [0.5]]
    assert nearest_budget(values) == 0.5


def test_edges_alone_by_hand():
    """Pairs whose first edge is alike or not: another fit on the same rows says the same."""
    numbers = torch.Generator().manual_seed(0)
    x = torch.randn(300, 2, 5, generator=numbers)
    y = ((x[:, 0, 0] - x[:, 1, 0]).abs() < 0.8).long()
    parts = [Split(x[a:b], y[a:b]) for a, b in ((0, 150), (150, 220), (220, 300))]
    data = Data("made", *parts, (), (), 2, Origin("made here"))
    measured = MEASUREMENTS["edges"](find_benchmark("adhd-frontal"), None, data)
    features = pair_features(x)
    assert features.shape == (300, 10)
    assert torch.equal(torch.tensor(features), torch.tensor(pair_features(x.flip(1))))
    line = LogisticRegression(C=measured["strength"], max_iter=300).fit(features[:150], y[:150])
    by_hand = roc_auc_score(y[220:], line.predict_proba(features[220:])[:, 1])
    assert measured["auc"] == pytest.approx(by_hand)
    assert measured["auc"] > 0.8


def test_all_recipes_that_are_not_for_tables_are_tried():
    for name in ("mnist", "cifar10-10k", "oct-kermany-64", "adhd-frontal", "abide"):
        own = find_benchmark(name, "papers")
        assert {"vanilla", "wd", "sp", "at", "est-h", "r2et", "r2et-mm"} <= set(own.candidates)
        assert set(own.candidates) <= set(RECIPES)
        assert own.attack("er").keep == ("last_kept" if name == "oct-kermany-64" else "last")
        assert own.slack >= 0.005


def test_a_retraining_that_is_not_held_starts_at_vanilla_and_goes_its_own_way(monkeypatch):
    """Above the threshold, with batch normalisation at rest, and told so to fit."""
    told = {}

    def noted(model, _data, _recipe, **asked):
        told.update(asked, model=copied_weights(model), modes=modes(model))
        raise KeyboardInterrupt

    def modes(model):
        return {type(m).__name__: m.training for m in model.modules()}

    monkeypatch.setattr(BenchmarkConfig, "load", lambda _: pictures(channels=3))
    monkeypatch.setattr("r2et.bench.train_task.fit", noted)
    for free in (True, False):
        settings = changes(free=True) if free else changes(agree=0.0)
        task = TrainTask("cifar10-10k", "r2et", settings, retrain=True)
        vanilla = task.benchmark.network(pictures(channels=3), seed=7)
        record = SimpleNamespace(measured={"auc_validation": 0.9}, name="vanilla")
        start = SimpleNamespace(record=record, network=format_weights(copied_weights(vanilla)))
        with pytest.raises(KeyboardInterrupt):
            task.do((start,))
        torch.testing.assert_close(told["model"], copied_weights(vanilla))
        assert told["modes"]["BatchNorm2d"] != free
        assert told["modes"]["Conv2d"]
        assert (told["retrain"], told["keep"]) == ((False, "above") if free else (True, "last"))
        assert told["threshold"] == (pytest.approx(0.89) if free else None)
        assert (told["check_every"] is None) == free
