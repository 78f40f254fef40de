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

from r2et.certify.boxes import Ball, Norm
from r2et.certify.forms import Form, Lines, backward_forms, forward_forms
from r2et.certify.head import head_form
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


def scores_over(program: Program, ball: Ball, target: Tensor, of: Of) -> Scores:
    """Bound the gradient of what is explained over the ball."""
    lines = forward_forms(program, ball)
    head = head_form(lines.values[program.output], target, of, ball)
    gradients = backward_forms(program, lines, head, ball)
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
    for i in sorted(lines.zone - {0}, reverse=True):
        if i not in sizes:
            continue
        size, error = sizes.pop(i)
        step = program.steps[i - 1]
        kind = step.kind
        if isinstance(kind, Affine):
            passed = kind.pull(size, "absolute")
            rounded = (kind.back + 4) * unit * passed if kind.back else 0.0
            parts = [(passed, kind.pull(error, "absolute") + rounded)]
        else:
            assert isinstance(kind, Join)
            parts = [(size, error + 4 * unit * size)] * 2
        for value, (a, b) in zip(step.inputs, parts, strict=True):
            before = sizes.get(value)
            sizes[value] = (a, b) if before is None else (before[0] + a, before[1] + b)
    size, error = sizes[0]
    return (error + 8 * unit * size).flatten(1)


class Pairs:
    """Bounds of s_p a_p - s_q a_q for the pairs p < q of features, over a batch's balls."""

    def __init__(self, scores: Scores, radius: Tensor, norm: Norm, signed: bool) -> None:
        matrix, self.signed = scores.matrix, signed
        n, units = matrix.shape
        self.p, self.q = torch.triu_indices(n, n, offset=1, device=matrix.device)
        self.noise = scores.noise
        half, middle = (scores.high - scores.low) / 2, (scores.high + scores.low) / 2
        self.centres = scores.centre @ matrix.T, middle @ matrix.T  # of the form, of the box
        slope = scores.slope @ matrix.T  # (B, n, n): direction, feature
        table = n * n * units <= TABLE_NUMBERS
        self.losses: list[tuple[Tensor, Tensor]] = []  # for s_p s_q = 1 and -1: form, box
        own = [part @ matrix.abs().T for part in (scores.spread, half)]
        reach = own[1] + self.noise
        self.ends = self.centres[1] - reach, self.centres[1] + reach
        for sign in (1.0, -1.0):
            if table:
                apart = (matrix[self.p] - sign * matrix[self.q]).abs().T
                left = [scores.spread @ apart, half @ apart]
            else:
                left = [part[:, self.p] + part[:, self.q] for part in own]
            moved = radius[:, None] * self._moves(slope, norm, sign)
            self.losses.append((left[0] + moved, left[1]))

    def _moves(self, slope: Tensor, norm: Norm, sign: float) -> Tensor:
        """||A_p - sign A_q|| of the slopes of all pairs: (B, P)."""
        if norm == "l2":
            gram = slope.transpose(1, 2) @ slope
            square = gram.diagonal(dim1=1, dim2=2)
            total = square[:, self.p] + square[:, self.q]
            apart = total - 2 * sign * gram[:, self.p, self.q]
            # What the subtraction loses to rounding.
            return (apart.clamp(min=0) + 1e-13 * total).sqrt()
        if slope.numel() * slope.shape[2] <= TABLE_NUMBERS * 4:
            return (slope[:, :, self.p] - sign * slope[:, :, self.q]).abs().sum(1)
        each = slope.abs().sum(1)
        return each[:, self.p] + each[:, self.q]

    def interval(self) -> tuple[Tensor, Tensor]:
        """(B, n) each: what the gradient's entries lie between."""
        return self.ends

    def gaps(self, side: Tensor, *, flip: bool = False) -> Tensor:
        """(B, P) lower bounds of the score of p above q's (flip: q's above p's).

        side: (B, n) signs of the gradient at x.
        """
        own, other = (self.q, self.p) if flip else (self.p, self.q)
        signed = self.signed
        noise = self.noise[:, own] + self.noise[:, other]
        found = None
        for turn, sign in enumerate((1.0,) if signed else (1.0, -1.0)):
            best = None
            for centre, loss in zip(self.centres, self.losses[turn], strict=True):
                mine = centre[:, own] if signed else (side * centre)[:, own]
                rival = centre[:, other] if signed else side[:, own] * centre[:, other]
                gap = mine - sign * rival - loss
                best = gap if best is None else torch.maximum(best, gap)
            assert best is not None
            found = best if found is None else torch.minimum(found, best)
        assert found is not None
        return found - noise

    def border(self, top: Tensor, side: Tensor) -> Tensor:
        """(B,) lower bound of the smallest gap between the top k, (B, n) bool, and the rest."""
        first, second = top[:, self.p], top[:, self.q]
        low = torch.where(first, self.gaps(side), self.gaps(side, flip=True))
        return low.masked_fill(first == second, torch.inf).amin(1)

    def above(self, side: Tensor) -> Tensor:
        """(B, n, n) bool: feature i is proved to stay above feature j."""
        n = side.shape[1]
        found = torch.zeros(len(side), n, n, dtype=torch.bool, device=side.device)
        found[:, self.p, self.q] = self.gaps(side) > 0
        found[:, self.q, self.p] = self.gaps(side, flip=True) > 0
        return found
