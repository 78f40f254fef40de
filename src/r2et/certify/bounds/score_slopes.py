"""How scores move with the change of x: their slopes, and norms of what pairs of them leave."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Norm, dual_norm

# Above this many entries (pairs * directions) sums of absolute values are not formed pair by pair.
TABLE_NUMBERS = 2**24


class ScoreSlopes:
    """A = U N' + moved, the slopes of scores by the change of x: (B, n, C).

    source: U (B, n, H), of what scores are a linear function of; None for 0.
    matrix: N (C, H) for all rows, or (B, C, H).
    moved: (B, n, C) beside it; None for 0.

    In l2, ||A_i - s A_j||^2 is a quadratic form of U'U (H, H): where units are fewer than scores, A
    itself is never formed.
    """

    def __init__(
        self, source: Tensor | None, matrix: Tensor, moved: Tensor | None, norm: Norm
    ) -> None:
        self.source, self.matrix, self.moved, self.norm = source, matrix, moved, norm
        few = matrix.shape[-1] < matrix.shape[-2]
        self.factored = moved is None and norm == "l2" and few

    @cached_property
    def dense(self) -> Tensor:
        """A (B, n, C)."""
        if self.source is None:
            assert self.moved is not None
            return self.moved
        own = self.source @ self.matrix.transpose(-1, -2)
        return own if self.moved is None else own + self.moved

    @cached_property
    def norms(self) -> Tensor:
        """(B, C) an upper bound of ||A_i||, in the dual norm."""
        if not self.factored:
            return dual_norm(self.dense, self.norm) * (1 + 1e-13)
        return (self._squares.clamp(min=0) + self._lost).sqrt()

    def apart(self, i: Tensor) -> tuple[Tensor, Tensor]:
        """(B, p, C) each: upper bounds of ||A_i - A_j|| and ||A_i + A_j||, i (B, p), all j."""
        if self.norm == "linf":
            return self._sums_apart(i)
        gram = self._gram(i)
        total = _of(self._squares, i) + self._squares[:, None]
        lost = _of(self._lost, i) + self._lost[:, None]
        near, far = total - 2 * gram, total + 2 * gram
        return (near.clamp(min=0) + lost).sqrt(), (far.clamp(min=0) + lost).sqrt()

    def _sums_apart(self, i: Tensor) -> tuple[Tensor, Tensor]:
        slopes = self.dense
        if i.shape[1] * slopes.shape[1] * slopes.shape[2] <= TABLE_NUMBERS:
            by_score = slopes.transpose(1, 2).contiguous()
            mine = by_score.gather(1, i[..., None].expand(-1, -1, by_score.shape[2]))
            near, far = (torch.cdist(mine, sign * by_score, p=1.0) for sign in (1.0, -1.0))
            return near * (1 + 1e-13), far * (1 + 1e-13)
        each = self.norms
        both = _of(each, i) + each[:, None]
        return both, both

    def _gram(self, i: Tensor) -> Tensor:
        """(B, p, C) A_i . A_j."""
        if not self.factored:
            mine = self.dense.gather(2, i[:, None].expand(-1, self.dense.shape[1], -1))
            return mine.transpose(1, 2) @ self.dense
        index = i[..., None].expand(-1, -1, self._moment_rows.shape[2])
        return self._moment_rows.gather(1, index) @ self.matrix.transpose(-1, -2)

    @cached_property
    def _moment_rows(self) -> Tensor:
        """N U'U (B, C, H)."""
        assert self.source is not None
        return self.matrix @ (self.source.transpose(1, 2) @ self.source)

    @cached_property
    def _squares(self) -> Tensor:
        """(B, C) A_i . A_i, rounded."""
        if self.factored:
            return (self._moment_rows * self.matrix).sum(2)
        return self.dense.square().sum(1)

    @cached_property
    def _lost(self) -> Tensor:
        """(B, C): the sum of two of these is more than rounding takes from |A_i -+ A_j|^2.

        With m sums one after the other, and t_i the sum over h of |N_ih| ||U_h||, a product
        A_i . A_j is off by less than m ulps of t_i t_j.
        """
        if not self.factored:
            return (1e-13 + 1e-15 * self.dense.shape[1]) * self._squares
        assert self.source is not None
        lengths = self.source.square().sum(1).sqrt()
        size = (self.matrix.abs() @ lengths[..., None])[..., 0]
        terms = self.source.shape[1] + 2 * self.source.shape[2]
        return (1e-13 + 1e-15 * terms) * size.square()


def _of(values: Tensor, i: Tensor) -> Tensor:
    """(B, p, 1) values (B, C) of the scores i (B, p)."""
    return values.gather(1, i)[..., None]
