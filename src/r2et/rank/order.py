"""Rankings of features. Ties go to the lower index, here and so everywhere."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.checks import check_k, check_scores


def ranking(scores: Tensor) -> Tensor:
    """Features from the highest score to the lowest: (B, n) -> (B, n) indices."""
    check_scores("ranking", scores)
    return _sorted(scores)


def top_k(scores: Tensor, k: int) -> Tensor:
    """The k features a person looks at, best first: (B, n) -> (B, k) indices."""
    check_scores("top_k", scores)
    check_k("top_k", k, scores.shape[1])
    return _sorted(scores)[:, :k]


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """(B, n) bool, true for the k highest."""
    check_scores("top_k_mask", scores)
    check_k("top_k_mask", k, scores.shape[1])
    return mask_of(scores, k)


def mask_of(scores: Tensor, k: int) -> Tensor:
    """top_k_mask of scores that were checked before."""
    scores = scores.detach()
    # Down to the k-th score: cheaper than a sort, which only rows with ties at that place need.
    mask = scores >= scores.topk(k, dim=1, sorted=False).values.amin(1, keepdim=True)
    tied = mask.sum(1) > k
    if bool(tied.any()):
        ordered = _sorted(scores[tied])[:, :k]
        mask[tied] = torch.zeros_like(mask[tied]).scatter(1, ordered, True)
    return mask


def _sorted(scores: Tensor) -> Tensor:
    return scores.detach().sort(dim=1, descending=True, stable=True).indices
