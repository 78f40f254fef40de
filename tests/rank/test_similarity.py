"""Comparisons of explanations, by hand and against other libraries."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from nets import randn
from r2et.errors import InputError
from r2et.rank import (
    distinct_top_k,
    effective_top_k,
    largest_top_k_share,
    mse,
    pearson,
    precision_at_k,
)


def test_precision_by_hand():
    clean = torch.tensor([[9.0, 8, 7, 1, 2], [1, 1, 1, 1, 1], [5, 4, 3, 2, 1]])
    moved = torch.tensor([[9.0, 1, 7, 8, 2], [1, 1, 1, 1, 2], [1, 2, 3, 4, 5]])
    expected = torch.tensor([2 / 3, 2 / 3, 1 / 3])
    torch.testing.assert_close(precision_at_k(clean, moved, 3), expected)
    assert torch.equal(precision_at_k(clean, 3 * clean, 2), torch.ones(3))


@pytest.mark.parametrize("k", [1, 4, 11])
def test_precision_is_the_overlap_of_sets(k):
    clean, moved = (randn(50, 12, seed=s).mul(2).round() for s in (0, 1))
    for row, (a, b) in enumerate(zip(clean.tolist(), moved.tolist(), strict=True)):
        sets = [set(sorted(range(12), key=lambda i, v=v: -v[i])[:k]) for v in (a, b)]
        assert precision_at_k(clean, moved, k)[row] == pytest.approx(len(sets[0] & sets[1]) / k)
    shuffle = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    apart = (clean + 1e-3 * randn(50, 12, seed=2), moved + 1e-3 * randn(50, 12, seed=3))
    there = precision_at_k(*apart, k)
    assert torch.equal(precision_at_k(*(s[:, shuffle] for s in apart), k), there)
    assert torch.equal(precision_at_k(*reversed(apart), k), there)


def test_pearson_equals_scipys_and_survives_tiny_scores():
    a, b = randn(6, 20), randn(6, 20, seed=1)
    expected = [pearsonr(u, v).statistic for u, v in zip(a.numpy(), b.numpy(), strict=True)]
    np.testing.assert_allclose(pearson(a, b), expected, atol=1e-6)
    torch.testing.assert_close(pearson(a * 1e-25, b * 1e-25), pearson(a, b))
    for n in (3, 7, 10):
        constant = torch.full((1, n), 0.1, dtype=torch.float64)
        assert pearson(constant, randn(1, n).double()).isnan().all()
        assert pearson(randn(1, n).double(), constant).isnan().all()


def test_mse_by_hand():
    errors = mse(torch.tensor([[1.0, 2], [0, 0]]), torch.tensor([[1.0, 4], [3, 4]]))
    assert errors.tolist() == [2.0, 12.5]
    tiny = mse(torch.full((1, 2), 1e-25), torch.zeros(1, 2))
    assert tiny.item() == pytest.approx(1e-50, rel=1e-6)


def test_individuality():
    scores = torch.tensor([[3.0, 2, 1, 0], [2, 3, 1, 0], [0, 1, 2, 3], [3, 0, 2, 0]])
    assert distinct_top_k(scores, 2) == 3  # the first two rows share {0, 1}
    assert largest_top_k_share(scores, 2) == 0.5
    assert distinct_top_k(scores[:1].repeat(9, 1), 2) == 1
    assert largest_top_k_share(scores[:1].repeat(9, 1), 2) == 1.0
    # Entropy of a half and two quarters: 1.5 bits.
    assert effective_top_k(scores, 2) == pytest.approx(2**1.5)
    assert effective_top_k(scores[1:], 2) == pytest.approx(3)
    assert effective_top_k(scores[:1].repeat(9, 1), 2) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: precision_at_k(randn(2, 3), randn(2, 4), 1),
            "precision_at_k: scores_adv must be of the shape of scores, (2, 3), got float32 tensor",
        ),
        (lambda: pearson(randn(2, 3), randn(3)), "pearson: scores_adv must be a batch of shape"),
        (lambda: mse(randn(0, 3), randn(0, 3)), "mse: scores must be a batch of at least one row"),
        (lambda: distinct_top_k(randn(2, 3), 3), "distinct_top_k: k must be in 1..2"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
