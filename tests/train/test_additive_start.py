"""Where bins of a few columns say more than lines, or may, a network for a table starts there."""

import dataclasses

import pandas as pd
import pytest
import torch
from torch.nn.functional import cross_entropy

from r2et.data import load_table
from r2et.metrics import auc_of_logits, split_auc
from r2et.models import TableMLP
from r2et.train import fit, recipe
from r2et.train.additive_start import additive_start
from r2et.train.baselines import START_C, logistic_regression
from r2et.train.defaults import linear_start, table_network


def table(bumps, rows=1500, classes=2):
    """Thirty columns of which one decides: by being in the middle (bumps), or by its size."""
    numbers = torch.Generator().manual_seed(0)
    values = torch.rand(rows, 30, generator=numbers)
    middle = ((values[:, 3] - 0.5).abs() < 0.25).float() if bumps else values[:, 3]
    labels = (torch.rand(rows, generator=numbers) < (8 * (middle - 0.5)).sigmoid()).long()
    if classes > 2:
        labels += (values[:, 4] > 0.5).long()
    frame = pd.DataFrame(values.numpy(), columns=[f"c{i}" for i in range(30)])
    return load_table(frame.assign(y=labels.numpy()), "y")


def linear_of(data):
    return logistic_regression(data.train.x, data.train.y, c=START_C)


def test_a_bump_is_found_and_the_network_starts_there():
    data = table(bumps=True)
    network = table_network(data, recipe("vanilla"))
    assert network.settings["additive"]
    start = additive_start(network, data, linear_of(data))
    assert auc_of_logits(start.logits(network.encoded(data.test.x)), data.test.y) > 0.95
    assert auc_of_logits(linear_of(data).logits(data.test.x), data.test.y) < 0.6
    # Few of the numbers that a row is encoded as count, and the bumpy column's the most.
    weight = start.weight[1].abs()
    assert int((weight > 0).sum()) < 0.2 * len(weight)
    column = (network.encoding.abs() @ network.column)[int(weight.argmax())]
    assert data.names[int(column.argmax())] == "c3"
    # With its hidden units silent the network is this model.
    torch.testing.assert_close(
        silent(network)(data.test.x).double(),
        start.logits(network.encoded(data.test.x)),
        atol=1e-4,
        rtol=1e-4,
    )


def test_outliers_have_no_say_where_ranks_tell_more(monkeypatch):
    """Ten columns whose tails hide that half of the rows are above the others."""
    numbers = torch.Generator().manual_seed(0)
    size = torch.randn(1500, 10, generator=numbers)
    labels = (torch.rand(1500, generator=numbers) < size.sum(1).sigmoid()).long()
    frame = pd.DataFrame((2 * size).exp().numpy(), columns=[f"c{i}" for i in range(10)])
    data = load_table(frame.assign(y=labels.numpy()), "y")
    monkeypatch.setattr("r2et.train.additive_start.auc_drop", lambda *_: (-0.1, 0.05))
    network = silent(table_network(data, recipe("vanilla")))
    assert network.settings["additive"]
    assert split_auc(network, data.test) > 0.88
    assert auc_of_logits(linear_of(data).logits(data.test.x), data.test.y) < 0.8
    # Rows that count for nothing say nothing here, either.
    weights = (torch.arange(len(data.train.y)) % 3 > 0).float()
    lies = torch.where(weights > 0, data.train.y, 1 - data.train.y)
    lying = dataclasses.replace(data, train=data.train._replace(y=lies))
    starts = [table_network(d, recipe("vanilla"), weights=weights) for d in (data, lying)]
    torch.testing.assert_close(starts[0].straight.weight, starts[1].straight.weight)


def test_training_goes_on_from_there():
    data = table(bumps=True)
    done = fit(None, data, "vanilla", epochs=3, progress=False, baselines=False)
    assert done.model.settings["additive"]
    assert split_auc(done.model, data.test) > 0.95


def silent(network):
    """The network, its hidden units without a say."""
    for parameter in network.linears[-1].parameters():
        torch.nn.init.zeros_(parameter)
    return network


def test_where_rows_cannot_tell_the_network_is_the_mean_of_both(monkeypatch):
    data = table(bumps=True)
    ends = {}
    for gain in (0.1, 0.0, -0.1):
        monkeypatch.setattr(
            "r2et.train.additive_start.auc_drop", lambda *_, gain=gain: (gain, 0.05)
        )
        network = silent(table_network(data, recipe("vanilla")))
        ends[gain] = network(data.test.x).detach().double().diff(dim=1)
    torch.testing.assert_close(ends[0.0], (ends[0.1] + ends[-0.1]) / 2, atol=1e-3, rtol=1e-3)
    assert float((ends[0.1] - ends[-0.1]).abs().median()) > 0.5  # of which the mean tells much


def test_where_bins_are_clearly_worse_it_starts_at_the_line(monkeypatch):
    monkeypatch.setattr("r2et.train.additive_start.auc_drop", lambda *_: (-0.02, 0.01))
    assert not table_network(table(bumps=False), recipe("vanilla")).settings["additive"]


def test_penalties_few_rows_and_more_classes_stay_with_logistic_regression():
    assert not table_network(table(bumps=True), recipe("r2et")).settings["additive"]
    assert not table_network(table(bumps=True, rows=100), recipe("vanilla")).settings["additive"]
    many = table(bumps=True, classes=3)
    assert not table_network(many, recipe("vanilla")).settings["additive"]


def test_rows_of_weight_0_are_as_if_they_were_not_there():
    data = table(bumps=True)
    network = TableMLP.fitted(data.train.x, additive=True)
    half = len(data.train.y) // 2
    weights = (torch.arange(len(data.train.y)) < half).double()
    weighed = additive_start(network, data, linear_of(data), weights)
    few = data.train._replace(x=data.train.x[:half], y=data.train.y[:half])
    fewer = dataclasses.replace(data, train=few)
    alone = additive_start(network, fewer, linear_of(data))
    torch.testing.assert_close(weighed.weight, alone.weight, atol=0.05, rtol=0.05)
    plain = additive_start(network, data, linear_of(data))
    assert float((plain.weight - alone.weight).abs().max()) > 0.1


def test_rows_sorted_by_class_and_classes_that_rows_lack(monkeypatch):
    data = table(bumps=True)
    order = data.train.y.argsort()
    by_class = data.train._replace(x=data.train.x[order], y=data.train.y[order])
    monkeypatch.setattr("r2et.train.additive_start.NUMBERS", 300_000)
    network = TableMLP.fitted(data.train.x, additive=True)
    start = additive_start(network, dataclasses.replace(data, train=by_class), linear_of(data))
    assert auc_of_logits(start.logits(network.encoded(data.test.x)), data.test.y) > 0.9
    one = data.train._replace(y=torch.zeros_like(data.train.y))
    assert additive_start(network, dataclasses.replace(data, train=one), linear_of(data)) is None
    more = data.val._replace(y=data.val.y + 1)
    assert additive_start(network, dataclasses.replace(data, val=more), linear_of(data)) is None


@pytest.mark.parametrize("name", ["vanilla", "r2et", "certified"])
def test_an_intercept_far_from_0_is_kept(name):
    """Forty columns that say a little each: the line is -40 where all of them are 0."""
    numbers = torch.Generator().manual_seed(1)
    values = torch.randn(1200, 40, generator=numbers)
    labels = (torch.rand(1200, generator=numbers) < values.sum(1).sigmoid()).long()
    frame = pd.DataFrame(values.numpy(), columns=[f"c{i}" for i in range(40)])
    data = load_table(frame.assign(y=labels.numpy()), "y")
    assert float(linear_of(data).bias[1]) < -20
    network = table_network(data, recipe(name))
    with torch.no_grad():
        loss = float(cross_entropy(network(data.test.x), data.test.y))
    assert loss < 1.2 * float(cross_entropy(linear_of(data).logits(data.test.x), data.test.y))


def test_a_class_without_training_rows_is_unlikely_and_not_out_of_reach():
    data = table(bumps=False, classes=3)
    few = dataclasses.replace(
        data, train=type(data.train)(*(part[data.train.y < 2] for part in data.train))
    )
    start = linear_start(few, 3)
    shares = start.logits(few.train.x).softmax(1)[:, 2]
    assert 1e-7 < float(shares.mean()) < 1e-3
