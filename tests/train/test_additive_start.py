"""Where bins of a few columns say more than lines, or may, a network for a table starts there."""

import dataclasses

import pandas as pd
import torch

from r2et.data import load_table
from r2et.metrics import auc_of_logits, split_auc
from r2et.models import TableMLP
from r2et.train import fit, recipe
from r2et.train.additive_start import additive_start
from r2et.train.baselines import logistic_regression
from r2et.train.defaults import START_C, table_network


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
    for parameter in network.linears[-1].parameters():
        torch.nn.init.zeros_(parameter)
    torch.testing.assert_close(
        network(data.test.x).double(),
        start.logits(network.encoded(data.test.x)),
        atol=1e-4,
        rtol=1e-4,
    )


def test_training_goes_on_from_there():
    data = table(bumps=True)
    done = fit(None, data, "vanilla", epochs=3, progress=False, baselines=False)
    assert done.model.settings["additive"]
    assert split_auc(done.model, data.test) > 0.95


def test_where_rows_cannot_tell_it_starts_halfway():
    data = table(bumps=False)
    network = table_network(data, recipe("vanilla"))
    assert network.settings["additive"]
    halfway, linear = additive_start(network, data, linear_of(data)), linear_of(data)
    inside = network.encoded(data.test.x)
    logits = 2 * halfway.logits(inside) - linear.logits(data.test.x)
    aucs = [auc_of_logits(z, data.test.y) for z in (logits, linear.logits(data.test.x))]
    assert abs(aucs[0] - aucs[1]) < 0.02
    # What is beside the line is sparse, as the regression on the bins is.
    bins = torch.ones(len(network.encoding), dtype=torch.bool)
    bins[network.alone[0]] = False
    assert 0 < int((halfway.weight[1, bins] != 0).sum()) < 0.2 * int(bins.sum())


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
