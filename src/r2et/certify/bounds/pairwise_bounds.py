"""Which score is proved to stay above which: bounds of all pairs of scores over a ball.

Scores are S = centre + slope . e + N (U - centre of U) -+ rest. With U within its spread,

    s_i S_i - s_j S_j >= s_i centre_i - s_j centre_j - r ||s_i slope_i - s_j slope_j||
                         - |s_i N_i - s_j N_j| . spread - rest_i - rest_j

for each sign s_j, and the same with U's interval, which has no slope. The better of the two counts.
What two scores have in common cancels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Norm
from r2et.certify.bounds.linear_bounds import dual_norm
from r2et.certify.bounds.score_bounds import ScoreBounds

# Above this many entries (pairs * units) features are bounded one by one, not pair by pair.
TABLE_NUMBERS = 2**24


class PairwiseBounds:
    """Bounds of s_i S_i - s_j S_j for all pairs of scores, over a batch's balls."""

    def __init__(self, scores: ScoreBounds, radius: Tensor, norm: Norm, signed: bool) -> None:
        self.signed, self.noise, self.centres = signed, scores.noise, scores.centres
        rest = torch.zeros_like(self.noise) if scores.rest is None else scores.rest
        size = scores.matrix.abs()
        own = [_product(size, part) + rest for part in scores.spreads]
        ends = []
        for centre, wide, slope in zip(self.centres, own, scores.slopes, strict=True):
            reach = wide + self.noise
            if slope is not None:
                reach = reach + radius[:, None] * dual_norm(slope, norm) * (1 + 1e-13)
            ends.append((centre - reach, centre + reach))
        low, high = torch.maximum(ends[0][0], ends[1][0]), torch.minimum(ends[0][1], ends[1][1])
        # Both hold, so they meet; rounding must not turn a point inside out.
        self.ends = torch.minimum(low, high), torch.maximum(low, high)
        rows, count = self.noise.shape
        moves = [None if slope is None else _moves(slope, norm) for slope in scores.slopes]
        both = (rest[:, :, None] + rest[:, None]).flatten(1)
        self.losses: list[tuple[Tensor, Tensor]] = []  # (B, C * C) for s_i s_j = 1 and -1
        for turn, sign in enumerate((1.0,) if signed else (1.0, -1.0)):
            if count * count * scores.matrix.shape[-1] <= TABLE_NUMBERS:
                left = [part + both for part in _apart(scores, sign)]
            else:
                left = [(part[:, :, None] + part[:, None]).flatten(1) for part in own]
            for way, move in enumerate(moves):
                if move is not None:
                    left[way] = left[way] + (radius[:, None, None] * move[turn]).view(rows, -1)
            self.losses.append((left[0], left[1]))

    def interval(self) -> tuple[Tensor, Tensor]:
        """(B, C) each: what the scores, with signs, lie between."""
        return self.ends

    def gaps(self, side: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """(B, p, q) lower bounds of the score of i (B, p) above that of j (B, q).

        side: (B, C) signs, of which any is right: |S_i| is no less than s_i S_i.
        """
        n = side.shape[1]
        place = (i[:, :, None] * n + j[:, None]).flatten(1)
        shape = (len(i), i.shape[1], j.shape[1])
        own = torch.ones_like(i, dtype=side.dtype) if self.signed else side.gather(1, i)
        lowest: Tensor | None = None
        for turn, sign in enumerate((1.0,) if self.signed else (1.0, -1.0)):
            ways = []
            for centre, loss in zip(self.centres, self.losses[turn], strict=True):
                mine, rival = own * centre.gather(1, i), centre.gather(1, j)
                gap = mine[:, :, None] - sign * own[:, :, None] * rival[:, None]
                ways.append(gap - loss.gather(1, place).view(shape))
            best = torch.maximum(ways[0], ways[1])
            lowest = best if lowest is None else torch.minimum(lowest, best)
        assert lowest is not None
        return lowest - self.noise.gather(1, i)[:, :, None] - self.noise.gather(1, j)[:, None]

    def border(self, top: Tensor, side: Tensor) -> Tensor:
        """(B,) lower bound of the smallest gap between the top k, (B, C) bool, and the rest."""
        k = int(top[0].sum())
        order = top.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        return self.gaps(side, order[:, :k], order[:, k:]).flatten(1).amin(1)

    def above(self, side: Tensor, least: Tensor) -> Tensor:
        """(B, C, C) bool: score i is proved to stay above score j, by more than least (B,)."""
        every = torch.arange(side.shape[1], device=side.device).expand(len(side), -1)
        return self.gaps(side, every, every) > least[:, None, None]


def _product(matrix: Tensor, v: Tensor) -> Tensor:
    """N v of (B, H), N (C, H) for all rows or (B, C, H): (B, C)."""
    return v @ matrix.T if matrix.ndim == 2 else torch.einsum("bch,bh->bc", matrix, v)


def _apart(scores: ScoreBounds, sign: float) -> list[Tensor]:
    """|N_i - sign N_j| . spread of all pairs, for either spread: (B, C * C)."""
    matrix, spreads = scores.matrix, scores.spreads
    if matrix.ndim == 2:
        apart = (matrix[:, None] - sign * matrix).abs().flatten(0, 1).T
        return [spread @ apart for spread in spreads]
    both = torch.stack(spreads, 2)  # (B, H, 2)
    # One score at a time: all pairs of all rows would be many.
    lines = [(matrix[:, i : i + 1] - sign * matrix).abs() @ both for i in range(matrix.shape[1])]
    every = torch.stack(lines, 1)  # (B, C, C, 2)
    return [every[..., way].flatten(1) for way in (0, 1)]


def _moves(slope: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """||A_i - A_j|| and ||A_i + A_j|| of the slopes (B, directions, C) of all pairs: (B, C, C)."""
    if norm == "l2":
        gram = slope.transpose(1, 2) @ slope
        square = gram.diagonal(dim1=1, dim2=2)
        total = square[:, :, None] + square[:, None]
        # A hair more, for what sums of this length and the subtraction lose to rounding.
        hair = 1e-13 + 1e-15 * slope.shape[1]
        near, far = total - 2 * gram, total + 2 * gram
        return tuple((part.clamp(min=0) + hair * total).sqrt() for part in (near, far))  # type: ignore[return-value]
    if slope.numel() * slope.shape[2] <= TABLE_NUMBERS:
        by_feature = slope.transpose(1, 2).contiguous()
        near, far = (torch.cdist(by_feature, sign * by_feature, p=1.0) for sign in (1.0, -1.0))
        return near, far
    each = slope.abs().sum(1)
    both = each[:, :, None] + each[:, None]
    return both, both
