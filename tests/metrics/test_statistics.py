"""Tests and intervals against scipy, by hand, and by how often they hold."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, bootstrap, ttest_rel

import r2et.metrics.statistics
from nets import randn
from r2et.errors import InputError
from r2et.metrics import bootstrap_interval, paired_test, share_interval


def test_paired_test_by_hand():
    # Differences 1, 2, 3: mean 2, standard deviation 1, so t = 2 sqrt(3). With two degrees of
    # freedom p = 1 - t / sqrt(t^2 + 2).
    found = paired_test([2.0, 4, 6], [1.0, 2, 3])
    assert found.difference == 2
    assert found.statistic == pytest.approx(2 * math.sqrt(3))
    assert found.p_value == pytest.approx(1 - math.sqrt(12 / 14))
    assert not found.significant
    assert paired_test([2.0, 4, 6], [1.0, 2, 3], level=0.1).significant


@pytest.mark.parametrize("rows", [2, 5, 40])
@pytest.mark.parametrize("shift", [0.0, 0.6])
def test_paired_test_is_scipys(rows, shift):
    a, b = randn(rows).double() + shift, randn(rows, seed=1).double()
    expected = ttest_rel(a.numpy(), b.numpy())
    found = paired_test(a, b)
    assert found[1:3] == pytest.approx((expected.statistic, expected.pvalue))
    assert found.significant == (expected.pvalue < 0.05)
    other = paired_test(b.numpy(), a.tolist())
    assert other[:3] == pytest.approx((-found.difference, -found.statistic, found.p_value))


def test_differences_without_spread():
    assert paired_test([1.0, 2, 3], [1.0, 2, 3]) == (0, 0, 1, False)
    assert paired_test([2.0, 3, 4], [1.0, 2, 3]) == (1, math.inf, 0, True)
    assert paired_test([1.0, 2, 3], [2.0, 3, 4]) == (-1, -math.inf, 0, True)


def test_interval_is_scipys():
    values = randn(50).double().numpy()
    expected = bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, random_state=1
    ).confidence_interval
    assert bootstrap_interval(values, samples=20_000) == pytest.approx(tuple(expected), abs=0.01)


def test_interval_by_hand():
    # The mean of two draws from {0, 1} is 0, 1/2, 1 with probability 1/4, 1/2, 1/4.
    assert bootstrap_interval([0.0, 1.0]) == (0, 1)
    assert bootstrap_interval([1.0, 0.0], level=0.4) == (0.5, 0.5)
    for values in ([0.1], [0.1] * 7, torch.full((10,), 0.7, dtype=torch.float64)):
        assert bootstrap_interval(values) == (float(values[0]), float(values[0]))
    assert bootstrap_interval(torch.tensor([True, True])) == (1, 1)


def test_share_interval_is_scipys_and_by_hand():
    for count, rows in ((0, 1), (1, 1), (0, 32), (7, 30), (199, 200), (5000, 10000)):
        expected = binomtest(count, rows).proportion_ci(0.95, method="exact")
        assert share_interval(count, rows) == pytest.approx(tuple(expected))
    assert share_interval(0, 4, 0.5) == pytest.approx((0, 1 - 0.25**0.25))  # (1 - p)^4 = 1 / 4
    assert share_interval(4, 4, 0.5) == pytest.approx((0.25**0.25, 1))


def test_interval_repeats_and_follows_its_values():
    values = randn(30).double()
    found = bootstrap_interval(values)
    assert bootstrap_interval(values) == found
    assert bootstrap_interval(values.flip(0)) == found
    assert bootstrap_interval(values, seed=1) != found
    assert bootstrap_interval(3 * values + 1) == pytest.approx([3 * v + 1 for v in found])
    narrow = bootstrap_interval(values, level=0.5)
    assert found.low < narrow.low < values.mean() < narrow.high < found.high


def test_interval_in_blocks_is_the_same(monkeypatch):
    values = randn(30).double()
    found = bootstrap_interval(values, samples=101)
    for draws in (1, 64, 1000):
        monkeypatch.setattr(r2et.metrics.statistics, "DRAWS", draws)
        assert bootstrap_interval(values, samples=101) == found


def test_interval_holds_the_mean_as_often_as_it_says():
    random = np.random.default_rng(0)
    trials = random.exponential(size=(300, 60))
    found = [bootstrap_interval(row, level=0.9, samples=300) for row in trials]
    share = np.mean([low <= 1 <= high for low, high in found])
    assert 0.82 < share < 0.94  # 300 trials; skewed values cost some coverage


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: paired_test([1.0], [2.0]),
            "paired_test: a must be at least 2 numbers, one per row, got shape (1,).",
        ),
        (
            lambda: paired_test([1.0, 2], [2.0, 3, 4]),
            "paired_test: b must be as long as a, 2 values, got 3 values.",
        ),
        (
            lambda: paired_test([1.0, 2], "ab"),
            "paired_test: b must be at least 2 numbers, one per row, got ab.",
        ),
        (
            lambda: paired_test([1.0, 2], [1.0, 2], level=5),
            "paired_test: level must be above 0 and below 1, got 5.",
        ),
        (
            lambda: bootstrap_interval([]),
            "bootstrap_interval: values must be at least 1 number, one per row, got shape (0,).",
        ),
        (
            lambda: bootstrap_interval(torch.ones(2, 3)),
            "bootstrap_interval: values must be at least 1 number, one per row, got shape (2, 3).",
        ),
        (
            lambda: bootstrap_interval([1.0, math.inf, 2]),
            "bootstrap_interval: values must be finite, got NaN or infinity in 1 of 3 rows, "
            "first in row 1.",
        ),
        (
            lambda: share_interval(3, 2),
            "share_interval: count must be a whole number in 0..2, got 3.",
        ),
        (
            lambda: share_interval(0, 0),
            "share_interval: rows must be a positive whole number, got 0.",
        ),
        (
            lambda: bootstrap_interval([1.0], level=1),
            "bootstrap_interval: level must be above 0 and below 1, got 1.",
        ),
        (
            lambda: bootstrap_interval([1.0], samples=0),
            "bootstrap_interval: samples must be a positive whole number, got 0.",
        ),
        (
            lambda: bootstrap_interval([1.0], seed=-1),
            "bootstrap_interval: seed must be a whole number, 0 or more, got -1.",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
