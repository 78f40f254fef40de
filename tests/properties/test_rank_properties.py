"""Rankings of any scores, with ties, against lists and sets of Python's."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drawn import scores
from r2et.errors import InputError
from r2et.rank import (
    distinct_top_k,
    effective_top_k,
    gap,
    gap_sum,
    largest_top_k_share,
    mse,
    pair_gap,
    pairs,
    pearson,
    precision_at_k,
    ranking,
    thickness_bounds,
    top_k,
    top_k_mask,
)


def by_hand(row):
    """Best first, ties to the lower index."""
    values = row.tolist()
    return sorted(range(len(values)), key=lambda i: (-values[i], i))


@given(scores(2))
def test_rankings_are_those_of_sorted_lists(drawn):
    (a, b), k = drawn
    orders = [by_hand(row) for row in a]
    assert ranking(a).tolist() == orders
    assert top_k(a, k).tolist() == [order[:k] for order in orders]
    sets = [set(order[:k]) for order in orders]
    masks = top_k_mask(a, k)
    assert [set(mask.nonzero().flatten().tolist()) for mask in masks] == sets
    others = [set(by_hand(row)[:k]) for row in b]
    shares = [len(one & other) / k for one, other in zip(sets, others, strict=True)]
    torch.testing.assert_close(precision_at_k(a, b, k), torch.tensor(shares, dtype=a.dtype))
    assert torch.equal(precision_at_k(a, b, k), precision_at_k(b, a, k))
    counts = Counter(map(frozenset, sets))
    assert distinct_top_k(a, k) == len(counts)
    assert largest_top_k_share(a, k) == max(counts.values()) / len(a)
    entropy = -sum(c / len(a) * math.log(c / len(a)) for c in counts.values())
    assert math.isclose(effective_top_k(a, k), math.exp(entropy), rel_tol=1e-9)


@given(scores(1, wide=True))
def test_any_finite_scores_are_ranked(drawn):
    (a,), k = drawn
    assert ranking(a).tolist() == [by_hand(row) for row in a]
    assert (precision_at_k(a, a, k) == 1).all()


@given(scores(2))
def test_gaps_are_differences_in_the_clean_order(drawn):
    (a, b), k = drawn
    order = ranking(a)
    gaps = gap(b, order, k)
    n = a.shape[1]
    assert gaps.shape == (len(a), k, n - k)
    for row, places in enumerate(order.tolist()):
        for i in range(k):
            for j in range(k, n):
                assert gaps[row, i, j - k] == b[row, places[i]] - b[row, places[j]]
    torch.testing.assert_close(gap_sum(b, order, k), gaps.sum((1, 2)))
    assert torch.equal(pair_gap(b, order, pairs(n, k)), gaps.flatten(1))
    # All positive: intact. The other way round ties may go either way.
    assert (precision_at_k(a, b, k)[(gaps > 0).all(2).all(1)] == 1).all()


@given(st.integers(2, 12), st.data())
def test_pairs_hold_a_salient_feature_or_the_border(n, data):
    k = data.draw(st.integers(1, n - 1))
    closest, anchor = pairs(n, k, "closest").tolist(), pairs(n, k, "anchor").tolist()
    assert closest[0] == [k - 1, k]
    assert all(0 <= i < k <= j < n for i, j in closest)
    assert all(0 <= i < j < n and k - 1 in (i, j) for i, j in anchor)
    assert len({tuple(pair) for pair in anchor}) == len(anchor)


@given(scores(2, wide=True))
def test_correlations_of_any_finite_scores(drawn):
    (a, b), _ = drawn
    correlation = pearson(a, b)
    constant = torch.tensor(
        [len({*p}) == 1 or len({*q}) == 1 for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    )
    assert torch.equal(correlation.isnan(), constant)
    assert (correlation[~constant].abs() <= 1).all()
    whole = ~(a == a[:, :1]).all(1)
    same = pearson(a, a)[whole]
    torch.testing.assert_close(same, torch.ones_like(same), atol=1e-6, rtol=0)
    assert (mse(a, a) == 0).all()
    assert (mse(a, b) >= 0).all()


@given(scores(1), st.sampled_from([0.0, 0.5, 2.0]), st.sampled_from([0.0, 0.1, 3.0]))
def test_bounds_of_thickness_lie_around_the_gap(drawn, radius, most):
    (a,), k = drawn
    bounds = thickness_bounds(a, k, radius, torch.full_like(a, most))
    clean = gap(a, ranking(a), k)
    assert (bounds.lower <= clean).all()
    assert (clean <= bounds.upper).all()
    torch.testing.assert_close(
        bounds.upper - bounds.lower, torch.full_like(clean, 2 * radius * most)
    )


@given(scores(1), st.one_of(st.integers(-3, 20), st.floats(), st.none(), st.booleans(), st.text()))
def test_a_k_that_is_none_is_refused(drawn, k):
    (a,), _ = drawn
    n = a.shape[1]
    if type(k) is int and 0 < k < n:
        assert top_k(a, k).shape == (len(a), k)
        return
    for function in (top_k, top_k_mask, distinct_top_k):
        with pytest.raises(InputError, match=": k must be "):
            function(a, k)
