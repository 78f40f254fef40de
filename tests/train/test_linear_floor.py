"""A network made for a table is never returned where it is clearly below logistic regression."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from r2et.certify import IntervalCertifier
from r2et.data import load_table
from r2et.explain import Gradient
from r2et.metrics import split_auc
from r2et.models import MLP, HingeMLP, TableMLP, smooth
from r2et.models.weights import copied_weights
from r2et.train import fit, linear_floor, recipe
from r2et.train.baselines import START_C, logistic_regression
from r2et.train.defaults import scheduled, table_network, usual_epochs
from r2et.train.linear_floor import keep_above, linear_weights
from r2et.train.loop import State
from r2et.train.run import train


def table(rows=400):
    """Two columns that decide, and six of noise that a network can learn by heart."""
    numbers = torch.Generator().manual_seed(0)
    values = torch.randn(rows, 8, generator=numbers)
    odds = 1.5 * values[:, 0] + values[:, 1]
    labels = torch.rand(rows, generator=numbers) < odds.sigmoid()
    frame = pd.DataFrame(values.numpy(), columns=[f"c{i}" for i in range(8)])
    return load_table(frame.assign(y=labels.numpy().astype(int)), "y")


HEAVY = recipe("certified", weight=1e3, lr=0.5)
QUICK = {"k": 2, "radius": 0.1, "epochs": 6, "progress": False, "baselines": False}


def test_the_logistic_regression_is_kept_where_training_ruins_it(tmp_path):
    data = table()
    with pytest.warns(
        UserWarning, match=r"logistic regression .* AUC 0\.\d+ to 0\.\d+: that is what is kept"
    ):
        done = fit(None, data, HEAVY, out=tmp_path, **QUICK)
    linear = table_network(data, HEAVY)
    linear.load_state_dict(linear_weights(linear, data, None))
    torch.testing.assert_close(done.model(data.test.x), linear(data.test.x))
    assert done.record["epoch_kept"] == 0
    assert done.record["auc"] == split_auc(linear, data.val)
    scores = Gradient()(done.model, data.test.x)
    torch.testing.assert_close(scores, scores[:1].expand_as(scores))
    radius = IntervalCertifier(limit=1.0)(done.model, Gradient(), data.test.x, k=2).radius
    assert bool((radius >= 0.99).all())
    with pytest.warns(UserWarning, match="logistic regression"):  # nothing is trained again
        again = fit(None, data, HEAVY, out=tmp_path, **QUICK)
    assert torch.equal(again.model(data.test.x), done.model(data.test.x))


def test_what_is_as_good_or_was_given_stays():
    data = table()
    assert fit(None, data, "certified", **QUICK).record["epoch_kept"] > 0
    assert fit(MLP(8), data, HEAVY, **QUICK).record["epoch_kept"] > 0
    assert fit(HingeMLP(8), data, HEAVY, **QUICK).record["epoch_kept"] > 0
    assert fit(None, data, HEAVY, keep="last", **QUICK).record["epoch_kept"] == 6
    for other in (MLP(8, activation="tanh"), MLP(8, ()), MLP(8, (1,)), smooth(MLP(8), 1.0)):
        assert linear_weights(other, data, None) is None


@pytest.mark.parametrize("widths", [(2,), (32,), (9, 4)])
def test_an_mlp_carries_a_logistic_regression_and_its_proof(widths):
    data = table()
    network = MLP(8, widths).double().eval()
    network.load_state_dict(linear_weights(network, data, None))
    x = torch.cat([data.test.x, data.test.x + 0.9, data.test.x - 0.9]).double()
    expected = logistic_regression(data.train.x, data.train.y, c=START_C).logits(x)
    torch.testing.assert_close(network(x), expected)
    radius = IntervalCertifier(limit=0.9)(network, Gradient(), data.test.x.double(), k=2).radius
    assert bool((radius >= 0.89).all())


@pytest.mark.parametrize("name", ["certified-reasons", "r2et-reasons", "r2et-ball"])
def test_every_penalised_recipe_has_the_floor(name, tmp_path):
    data = table(rows=1000)
    ruined = recipe(name, loss_weight=0.0, lr=3.0)
    settings = {"k": 2, "epochs": 6, "progress": False, "baselines": False}
    with pytest.warns(UserWarning, match="that is what is kept"):
        done = fit(None, data, ruined, **settings)
    linear = logistic_regression(data.train.x, data.train.y, c=START_C)
    odds = linear.logits(data.test.x).diff(dim=1)
    torch.testing.assert_close(
        done.model(data.test.x).diff(dim=1).double(), odds, atol=1e-4, rtol=1e-4
    )
    with pytest.warns(UserWarning, match="that is what is kept"):
        run = train(data, ruined, tmp_path, k=2, epochs=6, baselines=False)
    assert run.report.distinct_top_k == 1


@pytest.mark.parametrize(
    ("network", "drop", "kept"),
    [
        (MLP(8), (0.03, 0.04), True),
        (MLP(8), (0.03, 0.08), False),
        (MLP(8), (0.009, 0.002), False),  # sure, and cheap
        (HingeMLP(8), (0.03, 0.04), False),
        (HingeMLP(8), (0.009, 0.002), True),
    ],
)
def test_what_does_not_begin_there_gives_way_to_one_standard_error(
    network, drop, kept, monkeypatch
):
    monkeypatch.setattr(linear_floor, "auc_drop", lambda *_: drop)
    own = copied_weights(network)
    loop = SimpleNamespace(model=network, data=table(), kept=own, state=State(kept_epoch=4))
    if kept:
        with pytest.warns(UserWarning, match="that is what is kept"):
            assert keep_above(loop, copied_weights(network))
    else:
        assert not keep_above(loop, copied_weights(network))
    assert loop.state.kept_epoch == (0 if kept else 4)


@pytest.mark.parametrize(("positives", "kept"), [(9, False), (10, True)])
def test_few_validation_rows_of_a_class_say_nothing(positives, kept, monkeypatch):
    monkeypatch.setattr(linear_floor, "auc_drop", lambda *_: (0.4, 0.001))
    data, network = table(), HingeMLP(8)
    y = torch.zeros_like(data.val.y)
    y[:positives] = 1
    few = SimpleNamespace(val=data.val._replace(y=y))
    loop = SimpleNamespace(model=network, data=few, kept=copied_weights(network), state=State())
    if kept:
        with pytest.warns(UserWarning, match="that is what is kept"):
            assert keep_above(loop, copied_weights(network))
    else:
        assert not keep_above(loop, copied_weights(network))


def test_a_table_network_without_a_penalty_is_trained_briefly():
    network = TableMLP.fitted(table().train.x)
    assert scheduled(recipe("vanilla"), network).cool_down == 0.9
    assert scheduled(recipe("vanilla", cool_down=0.2), network).cool_down == 0.2
    assert scheduled(recipe("r2et"), network).cool_down == 0
    assert scheduled(recipe("vanilla"), MLP(8)).cool_down == 0
    lengths = {rows: usual_epochs(network, rows, 256, plain=True) for rows in (100, 700, 10**4)}
    assert lengths == {100: 10, 700: 21, 10**4: 25}
    assert usual_epochs(network, 3500, 256) == usual_epochs(MLP(8), 3500, 256) == 200
