"""Features bounded one by one: what is left of the pairs where a network is too large for them."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.boxes import Ball, Box, backward, forward
from r2et.certify.head import head_box
from r2et.certify.question import Question
from r2et.certify.rounding import rounding
from r2et.errors import InputError

CHECK_NUMBERS = 2**22  # held at once


class Features:
    """Intervals of a gradient's entries (B, ...), and which are proved above which."""

    def __init__(self, gradient: Box, unit: float, signed: bool) -> None:
        centre = gradient.centre.flatten(1)
        spread = torch.zeros_like(centre) if gradient.spread is None else gradient.spread
        spread = spread.flatten(1)
        spread = spread + rounding(8, unit, centre.abs() + spread)
        self.low, self.high, self.signed = centre - spread, centre + spread, signed

    def interval(self) -> tuple[Tensor, Tensor]:
        """(B, n) each: what the gradient's entries lie between."""
        return self.low, self.high

    def _scores(self, side: Tensor) -> tuple[Tensor, Tensor]:
        """The lowest score of each feature, with its sign at x, and the highest."""
        if self.signed:
            return self.low, self.high
        least = torch.where(side > 0, self.low, -self.high)
        return least, torch.maximum(self.low.abs(), self.high.abs())

    def border(self, top: Tensor, side: Tensor) -> Tensor:
        """(B,) lower bound of the smallest gap between the top k, (B, n) bool, and the rest."""
        least, most = self._scores(side)
        weakest = least.masked_fill(~top, torch.inf).amin(1)
        return weakest - most.masked_fill(top, -torch.inf).amax(1)

    def above(self, side: Tensor, least: Tensor) -> Tensor:
        """(B, n, n) bool: feature i is proved to stay above feature j, by more than least (B,)."""
        lowest, most = self._scores(side)
        return lowest[:, :, None] > most[:, None] + least[:, None, None]


def gradient_box(part: Question, ball: Ball) -> Box:
    """The gradient of what is explained over a ball: (B, ...)."""
    trail = forward(part.program, ball)
    head = head_box(trail.boxes[part.program.output], part.target, part.of, ball.unit)
    return backward(part.program, trail, head, ball.unit, to_input=True)[0]


def check_gradient(where: str, question: Question) -> None:
    """The steps, in float64, must give the gradient that the model itself gives, rounded."""
    size = max(1, CHECK_NUMBERS // question.program.width)
    rows = torch.arange(len(question.x), device=question.x.device)
    for start in range(0, len(rows), size):
        part = question.rows(rows[start : start + size])
        zero = part.x.new_zeros(len(part.x))
        low, high = Features(gradient_box(part, part.ball(zero, "l2")), part.unit, True).interval()
        if bool(((part.clean < low) | (part.clean > high)).any()):
            what = "one whose gradient is that of its steps (no detach, no_grad or hooks)"
            raise InputError(f"{where}: model must be {what}, got another gradient.")
