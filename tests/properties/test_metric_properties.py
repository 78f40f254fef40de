"""Metrics of random predictions, against counting by hand."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from drawn import SEEDS, networks, unless_dead
from nets import randn
from r2et.explain import Gradient
from r2et.metrics import (
    auc,
    bootstrap_interval,
    faithfulness,
    paired_test,
    pareto_front,
    share_interval,
)

NUMBERS = st.floats(-1e6, 1e6)


class Given(nn.Module):
    """The input is the log-odds of class 1."""

    def forward(self, x):
        return x[:, :1]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([-2.0, -0.5, 0.0, 0.5, 3.0])), min_size=1)
)
def test_auc_counts_pairs(rows):
    y, odds = torch.tensor([r[0] for r in rows]), torch.tensor([r[1] for r in rows])
    ones, zeros = odds[y == 1].tolist(), odds[y == 0].tolist()
    area = auc(Given(), torch.stack([odds, odds], 1), y)
    if not ones or not zeros:
        assert area is None
        return
    wins = sum((a > b) + (a == b) / 2 for a in ones for b in zeros)
    assert math.isclose(area, wins / (len(ones) * len(zeros)), abs_tol=1e-9)


@given(st.data())
def test_faithfulness_is_made_of_shares_and_differences_of_probabilities(data):
    n = data.draw(st.integers(2, 6))
    model, x = data.draw(networks(n)), randn(3, n, seed=data.draw(SEEDS))
    with unless_dead():
        measured = faithfulness(model, Gradient(), x)
    for values in measured:
        assert values.shape == (3,)
        assert values.isfinite().all()
    assert ((measured.dffot > 0) & (measured.dffot <= 1)).all()
    assert (measured.comprehensiveness.abs() <= 1).all()
    assert (measured.sufficiency.abs() <= 1).all()


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.sampled_from([0.5, 0.9, 0.95]))
def test_intervals_of_means_lie_among_the_values(values, level):
    low, high = bootstrap_interval(values, level, samples=50)
    assert min(values) <= low <= high <= max(values)
    assert (low, high) == bootstrap_interval(values[::-1], level, samples=50)


@given(st.integers(1, 200), st.data())
def test_intervals_of_shares_hold_the_share(rows, data):
    count = data.draw(st.integers(0, rows))
    low, high = share_interval(count, rows)
    assert 0 <= low <= count / rows <= high <= 1
    wider = share_interval(count, rows, 0.99)
    assert wider.low <= low
    assert high <= wider.high


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=20))
def test_paired_tests_are_antisymmetric(pairs):
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    one, other = paired_test(a, b), paired_test(b, a)
    assert 0 <= one.p_value <= 1
    assert math.isclose(one.p_value, other.p_value, abs_tol=1e-12)
    assert one.difference == -other.difference


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=10))
def test_the_front_is_what_nothing_beats(points):
    front = [points[i] for i in pareto_front(points)]
    beaten = [p for p in points if any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in points)]
    assert {*front} == {*points} - {*beaten}
