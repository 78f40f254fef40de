"""Proofs for the changes a table row could really have.

Every way to switch labels is listed; around the row so switched the numbers move in a box, in which
the clean row's top k must hold. Whole numbers and steps are in the box, and so are values between
them: what is proved holds for more than the region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from r2et.certify.base import ScoreIntervals
from r2et.certify.bounds.domain import box_ball
from r2et.certify.bounds.interval_bounds import Ball
from r2et.certify.bounds.pairwise_bounds import PairwiseBounds
from r2et.certify.bounds.per_feature_bounds import PerFeatureBounds
from r2et.certify.problem import CertificationProblem
from r2et.region import Feasible

Bounds: TypeAlias = PairwiseBounds | PerFeatureBounds


@dataclass(frozen=True)
class FeasibleProof:
    """What is proved of rows in a Feasible.

    problem: the rows and their clean top k.
    x: (B, n) in the model's precision.
    most: ways to switch labels that are certified one by one.
    bounds: what is known about scores over balls.
    rows_at_once: how many rows of a problem are bounded together.
    """

    problem: CertificationProblem
    region: Feasible
    x: Tensor
    most: int
    bounds: Callable[[CertificationProblem, Ball], Bounds]
    rows_at_once: Callable[[CertificationProblem], int]

    @property
    def too_many(self) -> bool:
        """Whether labels can be switched in more ways than are certified."""
        return self.region.ways > self.most

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.too_many:
            return ()
        ways = f"labels can be switched in {self.region.ways} ways"
        return (f"Nothing is proved: {ways}, more than the {self.most} that are certified.",)

    def radius(self) -> Tensor:
        """(B,) 1 where the top k is proved for every change, else 0."""
        proved = torch.zeros(len(self.x), dtype=torch.float64, device=self.x.device)
        if self.too_many:
            return proved
        open_rows = torch.arange(len(self.x), device=self.x.device)
        for way in range(self.region.ways):
            if not len(open_rows):
                break
            parts = [
                bounds.border(part.top, _side(bounds)) > least
                for part, bounds, least in self._bounded(open_rows, way)
            ]
            open_rows = open_rows[torch.cat(parts)]
        proved[open_rows] = 1.0
        return proved

    def stays(self, radius: Tensor, rows: Tensor) -> Tensor:
        """(A, C) bool: which of the top k stay in it for every change; for radii up to 1."""
        stays = self.problem.top[rows] & (radius <= 1)[:, None]
        if self.too_many:
            return torch.zeros_like(stays)
        for above, part in self._above(rows):
            stays = stays & part.stays(above)
        return stays

    def precision(self, radius: float) -> Tensor:
        """(B,) the share of the top k that is left by every change; of 0 the row itself."""
        share = torch.zeros(len(self.x), dtype=torch.float64, device=self.x.device)
        if radius == 0:
            return torch.ones_like(share)
        if radius > 1 or self.too_many:
            return share
        rows, k = torch.arange(len(self.x), device=self.x.device), self.problem.ranked.shape[1]
        share = torch.ones_like(share)
        for above, part in self._above(rows):
            share = torch.minimum(share, part.share(above, k))
        return share.clamp(0, 1)

    def intervals(self) -> ScoreIntervals:
        """What each score lies between, and which stay above which, for every change."""
        rows, known = torch.arange(len(self.x), device=self.x.device), None
        for way in range(self.region.ways):
            parts = []
            for _, bounds, least in self._bounded(rows, way):
                above = bounds.above(_side(bounds), least)
                parts.append(ScoreIntervals(*bounds.interval(), above))
            here = ScoreIntervals(*(torch.cat(column) for column in zip(*parts, strict=True)))
            known = here if known is None else known.joined(here)
        assert known is not None
        return known

    def _above(self, rows: Tensor) -> Iterator[tuple[Tensor, CertificationProblem]]:
        """For each way to switch labels, (A, C, C) bool, which score stays above which."""
        with torch.inference_mode(False), torch.no_grad():
            for way in range(self.region.ways):
                bounded = self._bounded(rows, way)
                parts = [bounds.above(_side(bounds), least) for _, bounds, least in bounded]
                yield torch.cat(parts), self.problem.rows(rows)

    def _bounded(
        self, rows: Tensor, way: int
    ) -> Iterator[tuple[CertificationProblem, Bounds, Tensor]]:
        """Rows with their labels switched in one way: bounds over the box of their numbers."""
        size = self.rows_at_once(self.problem)
        for some in torch.split(rows, size):
            x = self.x[some]
            number = torch.full((1, len(x)), way, device=x.device)
            switched, (low, high) = self.region.nth(x, number)[0], self.region.limits(x)
            moves = low != high
            low = torch.where(moves, low, switched).double()
            high = torch.where(moves, high, switched).double()
            ball = box_ball(low, high, self.problem.unit)
            part = replace(self.problem.rows(some), x=ball.x)
            bounds = self.bounds(part, ball)
            yield part, bounds, part.visible(*bounds.interval(), ball.reach)


def _side(bounds: Bounds) -> Tensor:
    """(B, C) signs of the scores in the middle of the box, which the clean row's need not be."""
    low, high = bounds.interval()
    return torch.where(low + high < 0, -1.0, 1.0).to(low)
