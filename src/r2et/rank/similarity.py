"""How alike two explanations are, and how alike the explanations of different rows."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.checks import check_k, check_same_shape, check_scores
from r2et.rank.order import mask_of


def precision_at_k(scores: Tensor, scores_adv: Tensor, k: int) -> Tensor:
    """P@k: the share of the clean top k that is still there (B.1.4). Two (B, n) -> (B,) in 0..1."""
    _check("precision_at_k", scores, scores_adv)
    check_k("precision_at_k", k, scores.shape[1])
    both = mask_of(scores, k) & mask_of(scores_adv, k)
    return both.sum(1).to(scores.dtype) / k


def pearson(scores: Tensor, scores_adv: Tensor) -> Tensor:
    """Pearson's correlation of two explanations: (B,) in -1..1, NaN where one is constant."""
    _check("pearson", scores, scores_adv)
    a, b = _centred(scores), _centred(scores_adv)
    cosine: Tensor = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))
    # Asked of the scores: the mean of equal numbers may differ from them by rounding.
    constant = (scores.amax(1) == scores.amin(1)) | (scores_adv.amax(1) == scores_adv.amin(1))
    return torch.where(constant, torch.nan, cosine.clamp(-1, 1)).to(scores.dtype)


def mse(scores: Tensor, scores_adv: Tensor) -> Tensor:
    """Mean squared difference of two explanations: (B,) float64, where tiny squares survive."""
    _check("mse", scores, scores_adv)
    return (scores.double() - scores_adv.double()).square().mean(1)


def distinct_top_k(scores: Tensor, k: int) -> int:
    """Individuality: how many different top-k sets the rows have, 1..B.

    One set for everybody is as stable as an explanation can be, and tells nobody anything.
    """
    return len(_set_sizes("distinct_top_k", scores, k))


def largest_top_k_share(scores: Tensor, k: int) -> float:
    """Individuality: the share of rows that have the commonest top-k set, in (0, 1]."""
    return int(_set_sizes("largest_top_k_share", scores, k).max()) / len(scores)


def effective_top_k(scores: Tensor, k: int) -> float:
    """Individuality: exp of the entropy of the rows' top-k sets, 1..B.

    As many equally frequent sets would be as varied; rare sets hardly count.
    """
    share = _set_sizes("effective_top_k", scores, k).double() / len(scores)
    return float(torch.special.entr(share).sum().exp())


def _set_sizes(where: str, scores: Tensor, k: int) -> Tensor:
    check_scores(where, scores)
    check_k(where, k, scores.shape[1])
    counts: Tensor = torch.unique(mask_of(scores, k), dim=0, return_counts=True)[1]
    return counts


def _centred(scores: Tensor) -> Tensor:
    """(B, n) float64 of mean 0, up to a factor per row: squares neither overflow nor underflow."""
    values = scores.double()
    values = values / values.abs().amax(1, keepdim=True)
    return values - values.mean(1, keepdim=True)


def _check(where: str, scores: Tensor, scores_adv: Tensor) -> None:
    check_scores(where, scores)
    check_scores(where, scores_adv, "scores_adv")
    check_same_shape(where, scores_adv, scores, "scores_adv", "scores")
