"""The statistical side (A.5): risks of a ranking under random changes, and what bounds them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from r2et.checks import check_k, check_scores
from r2et.errors import require
from r2et.rank import gap, ranking


class RankingRisk(NamedTuple):
    """Risks of each row, (B,) float64, all means over the m = k (n - k) pairs.

    true: share of pairs that samples order the other way (49), and low, high around it by
    Hoeffding's inequality. empirical: the same at x, 0 by definition (50). surrogate_true,
    surrogate: the ramp loss of the gaps (52, 53). margin: share of pairs with a gap below u at x.
    tail: the chance that the true risk exceeds the margin risk by epsilon, as (54) states it.
    """

    true: Tensor
    low: Tensor
    high: Tensor
    empirical: Tensor
    surrogate_true: Tensor
    surrogate: Tensor
    margin: Tensor
    tail: float


def ramp(z: Tensor, u: float) -> Tensor:
    """phi_u(z): 1 below 0, 0 above u, straight in between (51)."""
    return (1 - z / u).clamp(0, 1)


def ranking_risk_bound(
    scores: Tensor,
    samples: Tensor,
    k: int,
    *,
    u: float,
    epsilon: float = 0.1,
    chromatic: int | None = None,
    confidence: float = 0.95,
) -> RankingRisk:
    """The risks of A.5 from scores (B, n) at x and (S, B, n) at samples around it.

    chromatic: chi, the chromatic number of the dependency graph of the pairs, at most 1 + m, which
    is taken where it is not known; then tail = 2 exp(-2 m epsilon^2 / chi) is above 1 for every
    epsilon below 0.58, and says nothing. The interval low..high needs no such graph: samples are
    independent, so the mean over S of a share in 0..1 is within sqrt(log(2 / a) / 2 S) of its
    expectation with probability 1 - a.
    """
    where = "ranking_risk_bound"
    check_scores(where, scores)
    check_k(where, k, scores.shape[1])
    is_valid = (
        isinstance(samples, Tensor) and samples.ndim == 3 and samples.shape[1:] == scores.shape
    )
    require(
        is_valid, where, "samples", f"of shape (S, {scores.shape[0]}, {scores.shape[1]})", samples
    )
    require(len(samples) > 0, where, "samples", "at least one", samples)
    for name, value in (("u", u), ("epsilon", epsilon)):
        is_valid = isinstance(value, int | float) and 0 < value < math.inf
        require(is_valid, where, name, "positive and finite", value)
    is_valid = isinstance(confidence, float) and 0 < confidence < 1
    require(is_valid, where, "confidence", "in (0, 1)", confidence)
    m = k * (scores.shape[1] - k)
    chi = 1 + m if chromatic is None else chromatic
    require(type(chi) is int and 1 <= chi <= 1 + m, where, "chromatic", f"in 1..{1 + m}", chromatic)
    order = ranking(scores)
    here = gap(scores.double(), order, k).flatten(1)
    wrong, loss = torch.zeros_like(here[:, 0]), torch.zeros_like(here[:, 0])
    for one in samples:
        there = gap(one.double(), order, k).flatten(1)
        wrong += (there < 0).double().mean(1)
        loss += ramp(there, u).mean(1)
    true = wrong / len(samples)
    near = math.sqrt(math.log(2 / (1 - confidence)) / (2 * len(samples)))
    return RankingRisk(
        true,
        (true - near).clamp(min=0),
        (true + near).clamp(max=1),
        (here < 0).double().mean(1),
        loss / len(samples),
        ramp(here, u).mean(1),
        (here < u).double().mean(1),
        2 * math.exp(-2 * m * epsilon**2 / chi),
    )
