"""Metrics over batches say what they say of all rows at once."""

import pickle

import pytest
import torch

from r2et.errors import InputError, R2ETError
from r2et.metrics import (
    RunningIndividuality,
    RunningMean,
    changed_predictions,
    distinct_top_k,
    effective_top_k,
    largest_top_k_share,
    mse,
    pearson,
    precision_at_k,
    sensitivity,
)
from r2et.models import MLP

A, B = torch.rand(2, 50, 6, generator=torch.Generator().manual_seed(0))
SIZES = (20, 29, 1)


@pytest.mark.parametrize(
    ("metric", "settings"), [(precision_at_k, {"k": 2}), (pearson, {}), (mse, {})]
)
def test_a_mean_over_batches(metric, settings):
    running = RunningMean(metric, **settings)
    for a, b in zip(A.split(SIZES), B.split(SIZES), strict=True):
        assert running(a, b) == pytest.approx(float(metric(a, b, **settings).mean()))
    assert running.rows == 50
    assert running.compute() == pytest.approx(float(metric(A, B, **settings).double().mean()))
    running.reset()
    running.update(A[:5], B[:5])
    assert running.compute() == pytest.approx(float(metric(A[:5], B[:5], **settings).mean()))


def test_sensitivity_over_batches():
    torch.manual_seed(0)
    model = MLP(6)
    running = RunningMean(changed_predictions)
    for a, b in zip(A.split(7), B.split(7), strict=True):
        running.update(model, a, b)
    assert 0 < running.compute() == pytest.approx(sensitivity(model, A, B))


def test_individuality_over_batches_and_processes():
    halves = [RunningIndividuality(2) for _ in range(2)]
    for number, part in enumerate(A.split(SIZES)):
        halves[number % 2].update(part)
    first, second = (pickle.loads(pickle.dumps(half)) for half in halves)
    first.merge(second)
    found = first.compute()
    assert found.distinct == distinct_top_k(A, 2)
    assert found.effective == pytest.approx(effective_top_k(A, 2))
    assert found.largest_share == pytest.approx(largest_top_k_share(A, 2))
    assert RunningIndividuality(2)(A[:1]) == (1, 1.0, 1.0)


def test_bad_input():
    with pytest.raises(R2ETError, match="RunningMean: update must be called before compute, got 0"):
        RunningMean(mse).compute()
    with pytest.raises(InputError, match="metric must be one that gives a value per row"):
        RunningMean(lambda a, b: (a - b).sum()).update(A, B)
    with pytest.raises(InputError, match="metric must be a function, got mse"):
        RunningMean("mse")
    with pytest.raises(InputError, match="other must be a mean of the same metric"):
        RunningMean(mse).merge(RunningMean(pearson))
    with pytest.raises(InputError, match="k must be 2 in both, got 3"):
        RunningIndividuality(2).merge(RunningIndividuality(3))
    with pytest.raises(InputError, match="k must be"):
        RunningIndividuality(6).update(A)
