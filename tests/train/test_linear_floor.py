"""A network that starts at a logistic regression is never returned where it is clearly below it."""

import pandas as pd
import pytest
import torch

from r2et.certify import IntervalCertifier
from r2et.data import load_table
from r2et.explain import Gradient
from r2et.metrics import split_auc
from r2et.models import MLP, HingeMLP, TableMLP
from r2et.train import fit, recipe
from r2et.train.defaults import scheduled, table_network, usual_epochs
from r2et.train.linear_floor import linear_weights


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
    linear.load_state_dict(linear_weights(linear))
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
    assert linear_weights(MLP(8)) is None


def test_a_table_network_without_a_penalty_is_trained_briefly():
    network = TableMLP.fitted(table().train.x)
    assert scheduled(recipe("vanilla"), network).cool_down == 0.9
    assert scheduled(recipe("vanilla", cool_down=0.2), network).cool_down == 0.2
    assert scheduled(recipe("r2et"), network).cool_down == 0
    assert scheduled(recipe("vanilla"), MLP(8)).cool_down == 0
    lengths = {rows: usual_epochs(network, rows, 256, plain=True) for rows in (100, 700, 10**4)}
    assert lengths == {100: 10, 700: 21, 10**4: 25}
    assert usual_epochs(network, 3500, 256) == usual_epochs(MLP(8), 3500, 256) == 200
