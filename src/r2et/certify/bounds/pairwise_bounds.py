"""Which feature is proved to stay above which: bounds of all pairs of scores over a ball.

The gradient by the input is a = M u, u the last values before it that are no linear functions of
others. With u = centre + slope . d -+ spread,

    s_i a_i - s_j a_j >= (s_i M_i - s_j M_j) . centre - r ||(s_i M_i - s_j M_j) slope||
                         - |s_i M_i - s_j M_j| . spread

for each sign s_j, and the same with u's box, which has no slope. The better of the two counts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Norm
from r2et.certify.bounds.linear_bounds import LinearBound
from r2et.certify.bounds.propagation import LinearBounds
from r2et.certify.bounds.rounding import rounding
from r2et.certify.graph.graph import Graph
from r2et.certify.operators.arithmetic import AddOp
from r2et.certify.operators.base import LinearOperator

# Above this many entries (pairs * units) features are bounded one by one, not pair by pair.
TABLE_NUMBERS = 2**24


class Scores(NamedTuple):
    """The gradient a over a ball: a = M u + c, with bounds of u, and what rounding adds."""

    matrix: Tensor  # (n, H)
    offset: Tensor  # (n,)
    centre: Tensor  # (B, H) of the linear bounds of u
    slope: Tensor  # (B, n, H)
    spread: Tensor  # (B, H)
    low: Tensor  # (B, H)
    high: Tensor  # (B, H)
    noise: Tensor  # (B, n)


def scores_over(graph: Graph, ball: Ball, bounds: LinearBounds) -> Scores:
    """Put together what is known of the values u that the gradient is a linear function of."""
    sources, _ = graph.linear_suffix
    rows, n = len(ball.x), ball.x[0].numel()
    parts = [bounds[v] for v in sources]
    return Scores(
        *graph.suffix_map,
        torch.cat([part.centre.reshape(rows, -1) for part in parts], 1),
        torch.cat([_slope_of_every_row(part, rows, n) for part in parts], 2),
        torch.cat([part.spread.reshape(rows, -1) for part in parts], 1),
        torch.cat([part.low.reshape(rows, -1) for part in parts], 1),
        torch.cat([part.high.reshape(rows, -1) for part in parts], 1),
        _suffix_rounding(graph, parts, ball.unit),
    )


def _slope_of_every_row(bound: LinearBound, rows: int, n: int) -> Tensor:
    return bound.slope.expand(rows, n, *bound.centre.shape[1:]).reshape(rows, n, -1)


def _suffix_rounding(graph: Graph, parts: list[LinearBound], unit: float) -> Tensor:
    """How far off the float gradient may be for what happens between u and it: (B, n)."""
    sources, inside = graph.linear_suffix
    known = {
        v: (part.size, torch.zeros_like(part.size)) for v, part in zip(sources, parts, strict=True)
    }
    for value in inside:
        node = graph.nodes[value]
        operator, inputs = node.operator, [known[i] for i in node.inputs]
        if isinstance(operator, LinearOperator):
            (size, error), extra = inputs[0], operator.shift_size()
            noise = operator.noise(unit, size)
            size, error = operator.push(size, "absolute"), operator.push(error, "absolute")
            size = size if extra is None else size + extra
            known[value] = size, error if noise is None else error + noise
        else:
            assert isinstance(operator, AddOp)
            a, b = (abs(sign) for sign in operator.signs)
            size = a * inputs[0][0] + b * inputs[1][0]
            error = a * inputs[0][1] + b * inputs[1][1] + rounding(4, unit, size)
            known[value] = size, error
    size, error = known[graph.gradient]
    return (error + rounding(8, unit, size)).flatten(1)


class PairwiseBounds:
    """Bounds of s_i a_i - s_j a_j for all pairs of features, over a batch's balls."""

    def __init__(self, scores: Scores, radius: Tensor, norm: Norm, signed: bool) -> None:
        matrix, self.signed, self.noise = scores.matrix, signed, scores.noise
        half, middle = (scores.high - scores.low) / 2, (scores.high + scores.low) / 2
        # Of the linear bounds, and of the boxes.
        self.centres = tuple(part @ matrix.T + scores.offset for part in (scores.centre, middle))
        own = [part @ matrix.abs().T for part in (scores.spread, half)]
        reach = own[1] + self.noise
        self.ends = self.centres[1] - reach, self.centres[1] + reach
        slope = scores.slope @ matrix.T  # (B, n, n): direction, feature
        moves = _moves(slope, norm)
        rows, n = reach.shape
        self.losses: list[tuple[Tensor, Tensor]] = []  # (B, n * n) for s_i s_j = 1 and -1
        for turn, sign in enumerate((1.0, -1.0)):
            if n * n * matrix.shape[1] <= TABLE_NUMBERS:
                apart = (matrix[:, None] - sign * matrix).abs().flatten(0, 1).T
                left = [scores.spread @ apart, half @ apart]
            else:
                left = [(part[:, :, None] + part[:, None]).flatten(1) for part in own]
            moved = (radius[:, None, None] * moves[turn]).view(rows, -1)
            self.losses.append((left[0] + moved, left[1]))

    def interval(self) -> tuple[Tensor, Tensor]:
        """(B, n) each: what the gradient's entries lie between."""
        return self.ends

    def gaps(self, side: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """(B, p, q) lower bounds of the score of i (B, p) above that of j (B, q).

        side: (B, n) signs of the gradient at x.
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
        """(B,) lower bound of the smallest gap between the top k, (B, n) bool, and the rest."""
        k = int(top[0].sum())
        order = top.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        return self.gaps(side, order[:, :k], order[:, k:]).flatten(1).amin(1)

    def above(self, side: Tensor, least: Tensor) -> Tensor:
        """(B, n, n) bool: feature i is proved to stay above feature j, by more than least (B,)."""
        every = torch.arange(side.shape[1], device=side.device).expand(len(side), -1)
        return self.gaps(side, every, every) > least[:, None, None]


def _moves(slope: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """||A_i - A_j|| and ||A_i + A_j|| of the slopes (B, directions, n) of all pairs: (B, n, n)."""
    if norm == "l2":
        gram = slope.transpose(1, 2) @ slope
        square = gram.diagonal(dim1=1, dim2=2)
        total = square[:, :, None] + square[:, None]
        # A hair more, for what sums of this length and the subtraction lose to rounding.
        hair = 1e-13 + 1e-15 * slope.shape[1]
        near, far = total - 2 * gram, total + 2 * gram
        return tuple((part.clamp(min=0) + hair * total).sqrt() for part in (near, far))  # type: ignore[return-value]
    if slope.numel() * slope.shape[2] <= TABLE_NUMBERS:
        a, b = slope[:, :, :, None], slope[:, :, None]
        return (a - b).abs().sum(1), (a + b).abs().sum(1)
    each = slope.abs().sum(1)
    both = each[:, :, None] + each[:, None]
    return both, both
