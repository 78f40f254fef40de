"""Wide gaps between the reasons a person is given and all else, wherever the row may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from r2et.errors import require
from r2et.explain import Explainer, IntegratedGradients
from r2et.penalty.base import RankingPenalty, check_positive
from r2et.penalty.explained_batch import ExplainedBatch
from r2et.penalty.ranking import relative
from r2et.region import Linf
from r2et.region.base import Region


@final
@dataclass(frozen=True, kw_only=True)
class ReasonGaps(RankingPenalty):
    """Hinge on the smallest gap of relative contributions, at x and at a point beyond.

    max(0, hinge - g(x)) + max(0, hinge - g(x')), x' a random extreme point of the region, g the
    least by which the reasons of x, its k largest positive contributions c / mean |c|, are above
    the others and above 0; where they are fewer than k, also the least by which the others are
    below 0. Where both terms are 0 the reasons are the same at x and x', with a margin.

    Args:
        k: how many reasons a person is given.
        toward: the class whose reasons are told; None for the one predicted.
        explainer: contributions, signed; `groups` makes one of each column's features.
        region: the changes for which reasons are to stay.
        reach: how many times as far as the region training looks.
        hinge: a gap of this many mean contributions is wide enough.
    """

    explainer: Explainer = field(
        default=IntegratedGradients(points=4, rule="gauss_legendre", reduce="signed")
    )
    k: int = 4
    toward: int | None = None
    region: Region = field(default=Linf(0.02))
    reach: float = 2.0
    hinge: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        where = "ReasonGaps"
        is_valid = isinstance(self.region, Region)
        require(is_valid, where, "region", "Feasible, L2 or Linf", self.region)
        signed = self.explainer.reduce == "signed"
        require(signed, where, "explainer", "one with reduce='signed'", self.explainer)
        check_positive(where, hinge=self.hinge, reach=self.reach)
        is_valid = self.toward is None or (type(self.toward) is int and self.toward >= 0)
        require(is_valid, where, "toward", "None or the number of a class", self.toward)

    @property
    def random(self) -> bool:
        return True

    @property
    def of_reasons(self) -> bool:
        return True

    def rows(self, batch: ExplainedBatch) -> Tensor:
        if self.toward is not None and batch.given_target is None:
            count = len(batch.x)
            batch.given_target = torch.full((count,), self.toward, device=batch.x.device)
        return super().rows(batch)

    def ranked_rows(self, batch: ExplainedBatch) -> Tensor:
        here = relative(batch.scores)
        moved = self.region.scaled(self.reach).extreme(batch.x.detach(), batch.noise)
        there = relative(batch.explainer.reduced(batch.raw_at(moved)))
        reasons = named(here.detach(), self.k)
        gaps = (reason_gap(scores, reasons, self.k) for scores in (here, there))
        return sum((self.hinge - gap).clamp(min=0) for gap in gaps)  # type: ignore[return-value]


def named(scores: Tensor, k: int) -> Tensor:
    """(B, n) bool: the k largest scores, those of them that are positive."""
    top = scores.topk(k, 1).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter(1, top, True) & (scores > 0)


def reason_gap(scores: Tensor, reasons: Tensor, k: int) -> Tensor:
    """(B,) how far scores (B, n) are from other reasons than these (B, n); negative beyond."""
    least = scores.masked_fill(~reasons, torch.inf).amin(1)
    most = scores.masked_fill(reasons, -torch.inf).amax(1)
    count = reasons.sum(1)
    above = least - most.clamp(min=0)
    # Fewer than k: another one comes as soon as it is above 0.
    alone = torch.minimum(least, -most)
    return torch.where(count < k, alone, above)
