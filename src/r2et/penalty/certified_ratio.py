"""The radius of Prop. 4.5, estimated, as a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from r2et.errors import require
from r2et.penalty.base import RankingPenalty, check_positive
from r2et.penalty.curvature import jacobian, unit, warn_if_flat
from r2et.penalty.explained_batch import ExplainedBatch


@final
@dataclass(frozen=True, kw_only=True)
class CertifiedRatio(RankingPenalty):
    """CL: -min over pairs of h(x, i, j) / max over x' of ||H_i(x') - H_j(x')|| (Prop. 4.5).

    The maximum is taken over x and a few random points of the ball, so this is an estimate and
    proves nothing (see r2et.certify for what does). n backward passes for each point: for tables,
    and for a short retraining.

    Args:
        k: how many features are to stay above the rest.
        explainer: the explanation that is to hold still.
        radius: of the ball.
        samples: random points beside x.
        cap: a radius beyond this is large enough.
    """

    radius: float = 1.0
    samples: int = 1
    cap: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("CertifiedRatio", radius=self.radius, cap=self.cap)
        is_valid = type(self.samples) is int and self.samples >= 0
        require(is_valid, "CertifiedRatio", "samples", "a whole number from 0 on", self.samples)

    @property
    def random(self) -> bool:
        return self.samples > 0

    def ranked_rows(self, batch: ExplainedBatch) -> Tensor:
        k, order = self.k, batch.top(batch.scores.shape[1])
        squares = self._squared_distances(batch, order)
        warn_if_flat(batch.where, squares.amax((1, 2)).clamp(min=0))
        # Kept above 0, where the root has no slope.
        steepest = squares.clamp(min=torch.finfo(squares.dtype).eps ** 2).sqrt()
        ranked = batch.scores.gather(1, order)
        gaps = ranked[:, :k, None] - ranked[:, None, k:]
        ratio = gaps / steepest
        return -ratio.amin((1, 2)).clamp(max=self.cap)

    def _squared_distances(self, batch: ExplainedBatch, order: Tensor) -> Tensor:
        """Largest ||H_i - H_j||^2 seen, up to rounding, H the scores' Jacobian: (B, k, n - k)."""
        largest = None
        for index in range(self.samples + 1):
            there = batch if index == 0 else self._elsewhere(batch, index)
            rows = jacobian(there.scores, there.x)
            rows = rows.gather(1, order[:, :, None].expand_as(rows))
            salient, other = rows[:, : self.k], rows[:, self.k :]
            # ||a - b||^2 = ||a||^2 + ||b||^2 - 2 a.b
            square = (
                salient.square().sum(2)[:, :, None]
                + other.square().sum(2)[:, None]
                - 2 * salient @ other.transpose(1, 2)
            )
            largest = square if largest is None else torch.maximum(largest, square)
        assert largest is not None
        return largest

    def _elsewhere(self, batch: ExplainedBatch, index: int) -> ExplainedBatch:
        moves = batch.noise.flatten(1)
        moves = torch.roll(moves, index - 1, dims=1).view_as(batch.x)  # other directions, no draws
        points = batch.x.detach() + self.radius * unit(moves)
        return ExplainedBatch(batch.where, batch.explainer, batch.model, points, batch.target)
