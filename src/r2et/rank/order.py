"""Rankings of features. Ties go to the lower index, here and so everywhere."""

from __future__ import annotations

from torch import Tensor

from r2et.checks import check_k, check_scores


def ranking(scores: Tensor) -> Tensor:
    """Features from the highest score to the lowest: (B, n) -> (B, n) indices."""
    check_scores("ranking", scores)
    return scores.detach().sort(dim=1, descending=True, stable=True).indices


def top_k(scores: Tensor, k: int) -> Tensor:
    """The k features a person looks at, best first: (B, n) -> (B, k) indices."""
    check_scores("top_k", scores)
    check_k("top_k", k, scores.shape[1])
    return ranking(scores)[:, :k]


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """(B, n) bool, true for the k highest."""
    chosen = top_k(scores, k)
    mask = scores.new_zeros(scores.shape).bool()
    return mask.scatter(1, chosen, True)
