"""Where boosting knows more than the network begins with, the network learns from it, too."""

import importlib
from dataclasses import replace

import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch.nn.functional import one_hot

from r2et.data import load_table
from r2et.metrics import auc_of_logits
from r2et.models import MLP
from r2et.train import fit, recipe
from r2et.train.defaults import table_network
from r2et.train.loop import Loop
from r2et.train.teacher import SETTINGS, SHARE, teacher_shares

FIT = importlib.import_module("r2et.train.fit")  # r2et.train.fit is the function, too
QUIET = {"progress": False, "baselines": False}


def table(kind, rows=1200, classes=2, seed=0):
    """Ten columns: two decide together ("both"), or one does by its size ("line")."""
    numbers = torch.Generator().manual_seed(seed)
    values = torch.rand(rows, 10, generator=numbers)
    high = (values > 0.5).float()
    score = {"both": 2 * (high[:, 0] * high[:, 1] + (1 - high[:, 0]) * high[:, 2]) - 1}
    score["line"] = 2 * values[:, 0] - 1
    labels = (torch.rand(rows, generator=numbers) < (2 * score[kind]).sigmoid()).long()
    if classes > 2:
        labels += (values[:, 4] > 0.5).long()
    frame = pd.DataFrame(values.numpy(), columns=[f"c{i}" for i in range(10)])
    return load_table(frame.assign(y=labels.numpy()), "y", seed=seed)


def taught(data, weights=None, seed=0):
    network = table_network(data, recipe("vanilla"), weights=weights)
    return teacher_shares(network, data, seed, weights)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_teacher_speaks_of_rows_that_it_was_not_shown(classes):
    data = table("both", classes=classes)
    shares = taught(data)
    assert shares.shape == (len(data.train.y), classes)
    torch.testing.assert_close(shares.sum(1), torch.ones(len(shares)))
    labels = one_hot(data.train.y, classes).float()
    told = (shares - 0.4 * labels) / 0.6
    assert SHARE == 0.6
    assert bool(((told > 0) & (told < 1)).all())
    # Better than chance, and nowhere near what it says of rows that it knows.
    x, y = data.train.x.double().numpy(), data.train.y
    known = HistGradientBoostingClassifier(**SETTINGS, random_state=0).fit(x, y.numpy())
    by_heart = auc_of_logits(torch.from_numpy(known.predict_proba(x)).log(), y)
    assert 0.65 < auc_of_logits(told.log(), y) < by_heart - 0.05


def test_equal_rows_do_not_teach_each_other():
    data = table("both", rows=500)
    train = data.train
    thrice = replace(data, train=train._replace(x=train.x.repeat(3, 1), y=train.y.repeat(3)))
    network = table_network(data, recipe("vanilla"))
    told = (teacher_shares(network, thrice, seed=0) - 0.4 * one_hot(thrice.train.y, 2)) / 0.6
    assert 0.6 < auc_of_logits(told.log(), thrice.train.y) < 0.9


def test_the_teacher_goes_by_seed_and_weights():
    data = table("both")
    network = table_network(data, recipe("vanilla"))
    usual = teacher_shares(network, data, seed=0)
    assert not torch.equal(teacher_shares(network, data, seed=1), usual)
    heavy = teacher_shares(network, data, 0, 1.0 + 9.0 * data.train.y)
    assert float((heavy - usual)[:, 1].mean()) > 0.03


def test_none_where_the_network_begins_with_more():
    assert taught(table("line")) is None


def test_none_where_rows_are_too_few_to_tell():
    data = table("both", rows=60)
    assert taught(data) is None
    data = table("both")
    network = table_network(data, recipe("vanilla"))
    for part in ("train", "val"):
        few = torch.zeros_like(getattr(data, part).y)
        few[:9] = 1
        alone = replace(data, **{part: getattr(data, part)._replace(y=few)})
        assert teacher_shares(network, alone, seed=0) is None


def test_none_of_rows_that_are_nearly_all_alike():
    """Four kinds of rows cannot be in five folds."""
    data = table("both")
    kinds = replace(
        data,
        train=data.train._replace(x=(data.train.x[:, [0]] > 0.5).float().expand_as(data.train.x)),
    )
    network = table_network(data, recipe("vanilla"))
    assert teacher_shares(network, kinds, seed=0) is None


def test_none_of_many_rows(monkeypatch):
    data = table("both")
    monkeypatch.setattr("r2et.train.teacher.NUMBERS", data.train.x.numel() - 1)
    assert taught(data) is None
    monkeypatch.setattr("r2et.train.teacher.NUMBERS", data.train.x.numel())
    assert taught(data) is not None


def test_rows_of_weight_0_neither_teach_nor_are_taught():
    data = table("both")
    weights = torch.ones(len(data.train.y))
    weights[::3] = 0
    shares = taught(data, weights)
    assert bool((shares[::3] == one_hot(data.train.y, 2)[::3]).all())
    lies = data.train.y.clone()
    lies[::3] = 1 - lies[::3]
    lying = replace(data, train=data.train._replace(y=lies))
    network = table_network(data, recipe("vanilla"), weights=weights)
    others = teacher_shares(network, lying, 0, weights)
    kept = weights > 0
    assert torch.equal(others[kept], teacher_shares(network, data, 0, weights)[kept])


def test_a_network_learns_from_it_by_default():
    data = table("both")
    told = fit(None, data, "vanilla", epochs=2, **QUIET).record["config"]
    assert len(told["teacher"]) == 64
    given = MLP(data.train.x.shape[1])
    for model, name in ((given, "vanilla"), (None, "r2et-ball"), (None, "linear")):
        record = fit(model, data, name, epochs=2, **QUIET).record
        assert "teacher" not in record["config"]


@pytest.mark.parametrize("weighted", [False, True])
def test_each_rows_loss_is_by_its_own_shares(weighted, monkeypatch):
    """Two networks: one learns what a teacher says, the other from rows that are so labelled."""
    data = table("both", rows=600)
    other = torch.randint(0, 2, data.train.y.shape, generator=torch.Generator().manual_seed(1))
    weights = 0.5 + torch.rand(len(other), generator=torch.Generator().manual_seed(2))
    asked = {"epochs": 2, "keep": "last", "sample_weight": weights if weighted else None, **QUIET}
    start = table_network(data, recipe("vanilla"))
    monkeypatch.setattr(FIT, "_network", lambda *_: start)
    monkeypatch.setattr(FIT, "teacher_shares", lambda *_, **__: one_hot(other, 2).float())
    told = fit(None, data, "vanilla", **asked).model.state_dict()
    start = table_network(data, recipe("vanilla"))
    monkeypatch.setattr(FIT, "teacher_shares", lambda *_, **__: None)
    labelled = replace(data, train=data.train._replace(y=other))
    for name, weight in fit(None, labelled, "vanilla", **asked).model.state_dict().items():
        torch.testing.assert_close(told[name], weight, atol=1e-4, rtol=1e-3)


def test_a_stopped_training_goes_on_with_the_same_teacher(tmp_path, monkeypatch):
    data = table("both")
    whole = fit(None, data, "vanilla", epochs=4, **QUIET)

    step, seen = Loop._step, []

    def some(loop, batch, total):
        seen.append(1)
        if len(seen) == 9:
            raise KeyboardInterrupt
        return step(loop, batch, total)

    monkeypatch.setattr(Loop, "_step", some)
    with pytest.raises(KeyboardInterrupt):
        fit(None, data, "vanilla", epochs=4, out=tmp_path, save_every=0.0, **QUIET)
    monkeypatch.undo()
    later = fit(None, data, "vanilla", epochs=4, out=tmp_path, **QUIET)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, later.model.state_dict()[name]), name
