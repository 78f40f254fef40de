"""Which feature is proved to stay above which: bounds of all pairs of scores over a ball.

The gradient by the input is a = M u, u the gradient by the values affine in x and M their
derivative. With u = centre + slope . d -+ spread,

    s_i a_i - s_j a_j >= (s_i M_i - s_j M_j) . centre - r ||(s_i M_i - s_j M_j) slope||
                         - |s_i M_i - s_j M_j| . spread

for each sign s_j, and the same with u's box, which has no slope. The better of the two counts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify.activation import Activation
from r2et.certify.boxes import Ball, Norm
from r2et.certify.forms import Form, Lines, Sides, backward_forms, forward_forms
from r2et.certify.head import constant_form, head_at, head_form
from r2et.certify.rounding import Sums, rounding
from r2et.certify.steps import Affine, Join, Program
from r2et.explain.base import Of

# Above this many entries (pairs * units) features are bounded one by one, not pair by pair.
TABLE_NUMBERS = 2**24


class Scores(NamedTuple):
    """The gradient a over a ball: a = M u, as a form and as a box, and its rounding (B, n)."""

    matrix: Tensor  # (n, H)
    centre: Tensor  # (B, H) of the form of u
    slope: Tensor  # (B, n, H)
    spread: Tensor  # (B, H)
    low: Tensor  # (B, H)
    high: Tensor  # (B, H)
    noise: Tensor  # (B, n)


def scores_over(
    program: Program,
    ball: Ball,
    target: Tensor,
    of: Of,
    *,
    sides: Sides | None = None,
    weights: Sides | None = None,
    planes: dict[int, tuple[Tensor, Tensor, Tensor]] | None = None,
) -> Scores:
    """Bound the gradient of what is explained over the ball, or its part on chosen `sides`.

    weights: is given, for each piecewise-linear activation, how much its units' derivatives leave
    open, times the size of the gradient that they multiply. planes: for those that see values
    affine in x, the centres (B, H), roundings (B, H) and slopes (n, H) of these.
    """
    classes = program.classes
    constant = classes <= 2 or of == "logit"
    lines = forward_forms(program, ball, logits=not constant, sides=sides)
    if constant:
        point = head_at(ball.x.new_zeros(len(ball.x), classes), target, of)
        head = constant_form(point, ball.x[0].numel())
    else:
        head = head_form(lines.values[program.output], target, of, ball)
    seen: dict[int, Form] = {}
    gradients = backward_forms(program, lines, head, ball, seen)
    if weights is not None:
        for i, slope in lines.slopes.items():
            kind = program.steps[i - 1].kind
            if isinstance(kind, Activation) and kind.flat and i in seen:
                open_ = (slope.high - slope.low - 1e-3).clamp(min=0)
                weights[i] = (open_ * seen[i].size).flatten(1)
                (source,) = program.steps[i - 1].inputs
                if planes is not None and source in lines.zone:
                    z = lines.values[source]
                    planes[i] = z.centre.flatten(1), z.spread.flatten(1), z.slope[0].flatten(1)
    rows, n = len(ball.x), ball.x[0].numel()
    values = list(gradients)
    forms = [gradients[v] for v in values]
    return Scores(
        torch.cat([lines.values[v].slope[0].flatten(1) for v in values], 1),
        torch.cat([f.centre.flatten(1) for f in forms], 1),
        torch.cat([_wide(f, rows, n) for f in forms], 2),
        torch.cat([f.spread.flatten(1) for f in forms], 1),
        torch.cat([f.low.flatten(1) for f in forms], 1),
        torch.cat([f.high.flatten(1) for f in forms], 1),
        _rounding(program, lines, gradients, ball.unit),
    )


def _wide(form: Form, rows: int, n: int) -> Tensor:
    return form.slope.expand(rows, n, *form.centre.shape[1:]).flatten(2)


def _rounding(program: Program, lines: Lines, gradients: dict[int, Form], unit: float) -> Tensor:
    """How far off the float gradient may be for what happens between u and the input: (B, n)."""
    sizes = {v: (form.size, torch.zeros_like(form.size)) for v, form in gradients.items()}
    sums = Sums(unit)
    for i in sorted(lines.zone - {0}, reverse=True):
        if i not in sizes:
            continue
        size, error = sizes.pop(i)
        step = program.steps[i - 1]
        kind = step.kind
        if isinstance(kind, Affine):
            passed = kind.pull(size, "absolute")
            moved = kind.pull(error, "absolute")
            moved = moved + rounding(kind.back + 4, unit, passed) if kind.back else moved
            parts = [(passed, moved)]
        else:
            assert isinstance(kind, Join)
            parts = [(size, error + rounding(4, unit, size))] * 2
        for value, (a, b) in zip(step.inputs, parts, strict=True):
            if value in sizes:
                size, error = sizes[value]
                b = b + error + sums.noise(value, size, a)
                a = a + size
            sizes[value] = a, b
    size, error = sizes[0]
    return (error + rounding(8, unit, size)).flatten(1)


class Pairs:
    """Bounds of s_i a_i - s_j a_j for all pairs of features, over a batch's balls."""

    def __init__(self, scores: Scores, radius: Tensor, norm: Norm, signed: bool) -> None:
        matrix, self.signed, self.noise = scores.matrix, signed, scores.noise
        half, middle = (scores.high - scores.low) / 2, (scores.high + scores.low) / 2
        self.centres = scores.centre @ matrix.T, middle @ matrix.T  # of the form, of the box
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
        found: Tensor | None = None
        for turn, sign in enumerate((1.0,) if self.signed else (1.0, -1.0)):
            ways = []
            for centre, loss in zip(self.centres, self.losses[turn], strict=True):
                mine, rival = own * centre.gather(1, i), centre.gather(1, j)
                gap = mine[:, :, None] - sign * own[:, :, None] * rival[:, None]
                ways.append(gap - loss.gather(1, place).view(shape))
            best = torch.maximum(ways[0], ways[1])
            found = best if found is None else torch.minimum(found, best)
        assert found is not None
        return found - self.noise.gather(1, i)[:, :, None] - self.noise.gather(1, j)[:, None]

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
