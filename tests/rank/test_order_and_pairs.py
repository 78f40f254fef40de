"""Rankings, ties, pair sets, gaps."""

import itertools

import pytest
import torch

from nets import randn
from r2et.errors import InputError
from r2et.rank import gap, gap_sum, pair_gap, pairs, ranking, top_k, top_k_mask

F64 = torch.float64


def by_hand(row):
    """Python's sort is stable: the lower index comes first among equals."""
    return sorted(range(len(row)), key=lambda i: -row[i])


@pytest.mark.parametrize("n", [2, 5, 17, 300])
def test_ties_go_to_the_lower_index(n):
    scores = (randn(20, n) * 2).round()  # many ties
    scores[0] = 0
    scores[1, ::2], scores[1, 1::2] = 0.0, -0.0
    ranked = ranking(scores)
    for row, order in zip(scores.tolist(), ranked.tolist(), strict=True):
        assert order == by_hand(row)
    for k in {1, n // 2, n - 1}:
        assert torch.equal(top_k(scores, k), ranked[:, :k])
        assert torch.equal(top_k_mask(scores, k).sum(1), torch.full((20,), k))
        assert top_k_mask(scores, k).gather(1, top_k(scores, k)).all()


@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 1), (7, 3), (7, 6), (28, 8)])
def test_all_pairs(n, k):
    expected = [(i, j) for i in range(k) for j in range(k, n)]
    assert [tuple(p) for p in pairs(n, k).tolist()] == expected


def test_closest_pairs_nest_around_the_border():
    assert pairs(10, 4, "closest").tolist() == [[3, 4], [2, 5], [1, 6], [0, 7]]
    assert pairs(10, 4, "closest", 2).tolist() == [[3, 4], [2, 5]]
    assert pairs(5, 4, "closest").tolist() == [[3, 4]]
    # What the paper asks of them: k' distinct pairs of minimal gap, the smallest first.
    scores = randn(6, 10, dtype=F64)
    gaps = pair_gap(scores, ranking(scores), pairs(10, 4, "closest"))
    assert torch.equal(gaps[:, 0], gap(scores, ranking(scores), 4).flatten(1).amin(1))
    assert (gaps.diff(dim=1) > 0).all()


def test_anchor_pairs_hold_the_border_feature():
    assert pairs(10, 4, "anchor", 2).tolist() == [[2, 3], [1, 3], [3, 4], [3, 5]]
    assert pairs(10, 4, "anchor").tolist() == [
        *([2, 3], [1, 3], [0, 3]),
        *([3, 4], [3, 5], [3, 6], [3, 7]),
    ]
    assert pairs(3, 1, "anchor").tolist() == [[0, 1]]
    assert pairs(3, 2, "anchor").tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 1), (7, 3), (7, 6), (28, 8)])
def test_the_sum_over_pairs_needs_no_pairs(n, k):
    clean, moved = randn(9, n, dtype=F64), randn(9, n, seed=1, dtype=F64)
    order = ranking(clean)
    loop = torch.zeros(9, dtype=F64)
    for b, i, j in itertools.product(range(9), range(k), range(k, n)):
        loop[b] += moved[b, order[b, i]] - moved[b, order[b, j]]
    torch.testing.assert_close(gap_sum(moved, order, k), loop)
    torch.testing.assert_close(gap(moved, order, k).sum((1, 2)), loop)
    torch.testing.assert_close(pair_gap(moved, order, pairs(n, k)).sum(1), loop)
    assert (gap(clean, order, k) >= 0).all()


def test_permuting_features_permutes_the_ranking_and_keeps_the_gaps():
    scores = randn(5, 9, dtype=F64)
    shuffle = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    assert torch.equal(shuffle[ranking(scores[:, shuffle])], ranking(scores))
    moved = scores[:, shuffle]
    torch.testing.assert_close(gap(moved, ranking(moved), 3), gap(scores, ranking(scores), 3))


def test_gaps_scale_with_the_scores_and_can_be_differentiated():
    scores = randn(3, 6, dtype=F64).requires_grad_()
    order = ranking(scores)
    torch.testing.assert_close(gap(7 * scores, order, 2), 7 * gap(scores, order, 2))
    for function in (gap, gap_sum):
        assert torch.autograd.gradcheck(lambda s, f=function: f(s, order, 2), scores)


SCORES = randn(3, 6)
ORDER = ranking(SCORES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_k(SCORES, 0), "top_k: k must be in 1..5 for 6 features, got 0."),
        (lambda: top_k(SCORES, 6), "top_k: k must be in 1..5 for 6 features, got 6."),
        (lambda: top_k(SCORES, 2.0), "top_k: k must be a whole number, got 2.0."),
        (lambda: top_k(SCORES, True), "top_k: k must be a whole number, got True."),
        (lambda: gap(SCORES, ORDER, 9), "gap: k must be in 1..5 for 6 features, got 9."),
        (lambda: gap_sum(SCORES, ORDER, 0), "gap_sum: k must be in 1..5 for 6 features, got 0."),
        (
            lambda: gap(SCORES, ORDER[:, :4], 2),
            "gap: order must be of the shape of scores, (3, 6), got int64 tensor of shape (3, 4)",
        ),
        (
            lambda: ranking(SCORES[0]),
            "ranking: scores must be a batch of shape (B, features, ...), got float32 tensor",
        ),
        (lambda: ranking(SCORES[None]), "ranking: scores must be of shape (B, n), got float32"),
        (lambda: ranking(SCORES / 0), "ranking: scores must be finite, got NaN or infinity in 3"),
        (lambda: ranking(ORDER), "ranking: scores must be a floating-point tensor"),
        (lambda: pairs(6, 2, "some"), "pairs: kind must be one of all, anchor, closest, got some."),
        (lambda: pairs(6, 2, "all", 3), "pairs: count must be None for all pairs, got 3."),
        (
            lambda: pairs(6, 2, "closest", 3),
            "pairs: count must be in 1..2 for k = 2 of 6 features, got 3.",
        ),
        (
            lambda: pair_gap(SCORES, ORDER, ORDER),
            "pair_gap: places must be a tensor of",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
