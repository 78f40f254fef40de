"""What a gradient attack makes small: functions of scores (B, n), one number per row.

Each is small where the clean top k have lost their places.
"""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.attack.problem import AttackProblem


def gap_sum(scores: Tensor, problem: AttackProblem) -> Tensor:
    """Sum over all pairs of h(x', i, j), the papers' ERAttack."""
    k, n = problem.k, scores.shape[1]
    return (torch.where(problem.top, float(n - k), -float(k)) * scores).sum(1)


def similarity(scores: Tensor, problem: AttackProblem) -> Tensor:
    """-||I(x') - I(x)||^2, the MSE attack."""
    return -(scores - problem.scores).square().sum(1)


def top_mass(scores: Tensor, problem: AttackProblem) -> Tensor:
    """Sum of the scores of the clean top k (after Ghorbani et al. 2019)."""
    return (scores * problem.top).sum(1)


def top_share(scores: Tensor, problem: AttackProblem) -> Tensor:
    """The clean top k's share of all absolute scores: `top_mass`, free of scale."""
    size = scores.abs()
    return (size * problem.top).sum(1) / size.sum(1).clamp(min=torch.finfo(scores.dtype).tiny)


def border_gap(scores: Tensor, problem: AttackProblem) -> Tensor:
    """The smallest gap of all pairs, over the mean absolute score; negative once a pair flips."""
    lowest = scores.masked_fill(~problem.top, torch.inf).amin(1)
    highest = scores.masked_fill(problem.top, -torch.inf).amax(1)
    return (lowest - highest) / _scale(scores)


def soft_precision(scores: Tensor, problem: AttackProblem) -> Tensor:
    """P@k with its steps made soft: how many of the clean top k lie above the k-th score.

    The border, between the k-th and the next score of now, is a constant for the gradient.
    """
    ordered = scores.detach().sort(dim=1, descending=True).values
    border = (ordered[:, problem.k - 1] + ordered[:, problem.k]) / 2
    spread = _scale(scores)
    inside = torch.sigmoid((scores - border[:, None]) / (0.25 * spread[:, None]))
    return (inside * problem.top).sum(1) - (inside * ~problem.top).sum(1)


def _scale(scores: Tensor) -> Tensor:
    """Mean absolute score of each row, a constant."""
    return scores.detach().abs().mean(1).clamp(min=torch.finfo(scores.dtype).tiny)
