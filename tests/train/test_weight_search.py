"""A weight found by what it may cost: against trainings by hand, and bad input."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
import torch

from r2et.data import Split
from r2et.errors import InputError, R2ETError
from r2et.explain import Gradient
from r2et.metrics import auc_of_logits, split_auc
from r2et.models import MLP
from r2et.train import fit, recipe, weight_search
from r2et.train.trial_measures import auc_drop, stability
from r2et.train.weight_search import _weights, fit_within
from training_data import small

QUICK = {"k": 3, "epochs": 4, "progress": False, "baselines": False}
LONGER = {**QUICK, "epochs": 20}


def est_h(weight):
    return recipe("est-h", weight=weight, lr=0.05)


def by_weight(model, *_, **__):
    """In the place of proof and attack, which have tests of their own: the flatter the stabler."""
    size = sum(float(p.detach().square().sum()) for p in model.parameters())
    return {"proved": None, "attacked": 100 / (100 + size), "distinct": 3}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(weight_search, "stability", by_weight)


@pytest.fixture
def searched(tmp_path):
    """A search that has a choice: no network without curvature tells two quarters from two."""
    made = small(rows=200)
    parts = [Split(p.x, ((p.x[:, 0] - 0.5) * (p.x[:, 1] - 0.5) > 0).long()) for p in made.parts]
    data = dataclasses.replace(made, train=parts[0], val=parts[1], test=parts[2])
    torch.manual_seed(0)
    start = fit(MLP(8), data, "vanilla", epochs=150, progress=False, baselines=False).model
    found = fit(start, data, est_h(1.0), max_auc_drop=0.05, out=tmp_path, **LONGER)
    return tmp_path, data, start, found


def test_the_model_is_that_of_the_weight_found_and_keeps_the_budget(searched):
    out, data, start, found = searched
    search = found.search
    assert search.met
    plain, chosen = (fit(start, data, est_h(w), **LONGER) for w in (0.0, search.chosen))
    for a, b in zip(chosen.model.parameters(), found.model.parameters(), strict=True):
        assert torch.equal(a, b)
    aucs = [split_auc(done.model, data.val) for done in (plain, chosen)]
    drops = {trial.weight: trial.drop for trial in search.trials}
    assert drops[search.chosen] == pytest.approx(aucs[0] - aucs[1], abs=1e-9)
    assert drops[search.chosen] <= 0.05 < max(drops.values())  # something was refused
    allowed = {t.weight: t.stability for t in search.trials if t.weight and t.met}
    # Of those that are as stable as any up to 0.02, the lightest.
    tied = [weight for weight, value in allowed.items() if value >= max(allowed.values()) - 0.02]
    assert search.chosen == min(tied)
    assert len(allowed) > 1

    record = json.loads((out / "fit.json").read_text())
    assert record["search"]["chosen"] == search.chosen
    text = str(search)
    assert text.count("<- chosen") == 1
    assert "plain trainings" in text
    stamps = {p: p.stat().st_mtime_ns for p in out.glob("search/*/checkpoint.pt")}
    assert len(stamps) == len(search.trials)
    again = fit(start, data, est_h(1.0), max_auc_drop=0.05, out=out, **LONGER)
    assert again.search == search
    assert {p: p.stat().st_mtime_ns for p in out.glob("search/*/checkpoint.pt")} == stamps


def test_a_budget_that_no_weight_meets_is_said_with_the_best(monkeypatch):
    monkeypatch.setattr(weight_search, "auc_drop", lambda *_: (0.2, 0.01))
    with pytest.warns(UserWarning, match=r"no weight down to 3.9e-05 keeps the validation AUC"):
        found = fit(MLP(8), small(), "est-h", max_auc_drop=0.01, **QUICK)
    assert not found.search.met
    penalised = [t for t in found.search.trials if t.weight]
    assert found.search.chosen == max(penalised, key=lambda t: t.auc).weight
    assert "NOT within" in str(found.search)


def test_a_validation_part_that_is_too_small_is_said_with_the_interval(monkeypatch):
    monkeypatch.setattr(weight_search, "auc_drop", lambda *_: (0.001, 0.02))
    expected = (
        r"too small to measure a drop of 0\.005: .* is \+0\.0010 within -0\.0190 to \+0\.0210"
    )
    with pytest.warns(UserWarning, match=expected):
        fit(MLP(8), small(), "est-h", max_auc_drop=0.005, **QUICK)


def test_a_validation_part_of_a_few_rows_is_said():
    data = small()
    few = torch.cat(
        [(data.val.y == label).nonzero()[:count, 0] for label, count in ((0, 7), (1, 5))]
    )
    data = dataclasses.replace(data, val=Split(data.val.x[few], data.val.y[few]))
    with pytest.warns(UserWarning, match=r"drop of 0\.005: it has 5 of one class, and 10 are the"):
        fit(MLP(8), data, "est-h", max_auc_drop=0.005, **QUICK)


def test_of_equally_stable_weights_the_lightest_is_taken(monkeypatch):
    everything = {"proved": 1.0, "attacked": 1.0, "distinct": 1}
    monkeypatch.setattr(weight_search, "stability", lambda *_, **__: everything)
    monkeypatch.setattr(weight_search, "auc_drop", lambda *_: (0.0, 0.001))
    found = fit(MLP(8), small(), "est-h", max_auc_drop=0.01, **QUICK)
    weights = [t.weight for t in found.search.trials if t.weight]
    assert found.search.chosen == min(weights) < max(weights)


def test_almost_as_stable_is_as_stable(monkeypatch):
    shares = iter([0.5, 0.9, 0.975, 0.985, 0.995, 1.0])
    monkeypatch.setattr(
        weight_search,
        "stability",
        lambda *_, **__: {"proved": next(shares), "attacked": None, "distinct": 1},
    )
    monkeypatch.setattr(weight_search, "auc_drop", lambda *_: (0.0, 0.001))
    found = fit(MLP(8), small(), est_h(1.0), max_auc_drop=0.01, **QUICK)
    assert [t.proved for t in found.search.trials] == [0.5, 0.9, 0.975, 0.985, 0.995, 1.0]
    assert found.search.chosen == 4.0**2  # 0.985: within 0.02 of all


def test_no_heavier_weight_is_tried_where_none_is_asked_for(monkeypatch):
    monkeypatch.setattr(weight_search, "auc_drop", lambda *_: (0.0, 0.001))
    found = fit(MLP(8), small(), est_h(1.0), max_auc_drop=0.01, heavier=False, **QUICK)
    assert [t.weight for t in found.search.trials] == [0.0, 1.0]
    assert found.search.chosen == 1.0
    for half_width, trainings in ((0.0196, 2), (0.0194, 5)):  # one standard error is 0.01 or less
        drops = iter([(0.0, 0.001), (0.02, half_width), *[(0.0, 0.001)] * 3])
        monkeypatch.setattr(weight_search, "auc_drop", lambda *_, of=drops: next(of))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="fit: the validation part is too small")
            found = fit(MLP(8), small(), est_h(1.0), max_auc_drop=0.01, heavier=False, **QUICK)
        assert len(found.search.trials) == trainings
        said = "within a standard error of a drop of 0.01 of weight 0" in str(found.search)
        assert said is (trainings == 2)
    assert max(t.weight for t in found.search.trials) == 1.0
    assert 0.0 < found.search.chosen < 1.0


def test_where_stability_is_not_known_the_own_weight_is_the_heaviest_tried(monkeypatch):
    unknown = {"proved": None, "attacked": None, "distinct": None}
    monkeypatch.setattr(weight_search, "stability", lambda *_, **__: unknown)
    drops = iter([(0.0, 0.001)] * 2)
    monkeypatch.setattr(weight_search, "auc_drop", lambda *_: next(drops))
    found = fit(MLP(8), small(), est_h(1.0), max_auc_drop=0.01, **QUICK)
    assert [t.weight for t in found.search.trials] == [0.0, 1.0]
    assert found.search.chosen == 1.0
    drops = iter([(0.0, 0.001), (0.02, 0.001), (0.02, 0.001), *[(0.0, 0.001)] * 3])
    found = fit(MLP(8), small(), est_h(1.0), max_auc_drop=0.01, **QUICK)
    assert found.search.chosen == max(t.weight for t in found.search.trials if t.met) < 1.0


def breaks_above(limit):
    """In the place of fit: whose loss is no number at larger weights."""

    def training(model, data, chosen, **settings):
        if chosen.weight > limit:
            raise R2ETError("fit: the loss is nan.")
        return fit(model, data, chosen, **settings)

    return training


def test_a_weight_that_breaks_the_training_is_too_heavy():
    settings = {"out": None, "resume": True, "radius": 0.3, "explainer": None, **QUICK}
    torch.manual_seed(0)
    found = fit_within(breaks_above(0.5), MLP(8), small(), est_h(1.0), 0.9, **settings)
    broken = [t for t in found.search.trials if t.weight > 0.5]
    assert broken
    assert all((t.auc, t.met) == (0.0, False) for t in broken)
    assert found.search.met
    assert 0 < found.search.chosen <= 0.5


def test_weights_that_all_break_the_training_are_refused():
    settings = {"out": None, "resume": True, "radius": 0.3, "explainer": None, **QUICK}
    with pytest.raises(InputError, match=r"^fit: weight must be below 0\.0039 .* got 1\.0"):
        fit_within(breaks_above(0.0), MLP(8), small(), est_h(1.0), 0.9, **settings)


def test_what_is_proved_and_attacked_of_a_linear_model_is_everything():
    data = small()
    measured = stability(MLP(8, ()).eval(), data, Gradient(), 3, 0.3, of_reasons=False)
    assert measured == {"proved": 1.0, "attacked": 1.0, "distinct": 1}


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (3.0, [1, 4, 2, 8**0.5]),  # up until it fails, then halves in logarithms
        (0.2, [1, 1 / 4, 1 / 16, 1 / 8, 2**-2.5]),
        (1e9, [1, 4, 16, 64, 256]),
        (1e-9, [1, 1 / 4, 1 / 16, 1 / 64, 1 / 256]),
    ],
)
def test_where_it_looks(threshold, expected):
    tried = []

    def met(weight):
        if weight not in tried:
            tried.append(weight)
        return weight <= threshold

    list(_weights(1.0, met))
    assert tried == pytest.approx(expected)


def test_the_interval_of_a_drop_covers_it():
    """Two models of known quality, on many draws of rows."""
    random = np.random.default_rng(0)

    def draw(rows):
        y = random.integers(2, size=rows)
        signal = y + random.normal(size=rows)
        pair = [
            torch.from_numpy(np.stack([0 * signal, signal + s * random.normal(size=rows)], 1))
            for s in (0.1, 1.0)
        ]
        return *pair, torch.from_numpy(y)

    before, after, y = draw(50_000)
    truth, _ = auc_drop(before, after, y)
    assert truth == pytest.approx(auc_of_logits(before, y) - auc_of_logits(after, y))
    drops = [auc_drop(*draw(300)) for _ in range(200)]
    covered = sum(abs(drop - truth) < half for drop, half in drops)
    assert 180 <= covered < 200  # 95 % of 200
    assert 0 < truth < 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"recipe": "vanilla"}, "fit: max_auc_drop must be left out for vanilla, which has no"),
        ({"recipe": "at"}, "fit: max_auc_drop must be left out for at, which has no weight"),
        ({"max_auc_drop": -0.1}, "fit: max_auc_drop must be None or a number in [0, 0.5), got"),
        ({"max_auc_drop": "a lot"}, "fit: max_auc_drop must be None or a number in [0, 0.5), got"),
        ({"keep": "last"}, "fit: keep must be left out with max_auc_drop, got last."),
        ({"retrain": True}, "fit: retrain must be left out with max_auc_drop, got True."),
    ],
)
def test_bad_input(call, message):
    asked = {"recipe": "est-h", "max_auc_drop": 0.01, **call}
    with pytest.raises(InputError) as caught:
        fit(None, small(), asked.pop("recipe"), **asked)
    assert str(caught.value).startswith(message)


def test_one_class_and_a_folder_of_something_else(tmp_path):
    data = small()
    ones = dataclasses.replace(data, val=Split(data.val.x, torch.ones_like(data.val.y)))
    with pytest.raises(InputError, match=r"data.val.y must be of two classes or more"):
        fit(None, ones, "est-h", max_auc_drop=0.01)
    fit(None, data, "vanilla", out=tmp_path, epochs=1, progress=False)
    with pytest.raises(InputError, match=r"with a training of a given weight"):
        fit(None, data, "est-h", max_auc_drop=0.01, out=tmp_path)
