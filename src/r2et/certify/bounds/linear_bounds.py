"""Linear bounds: values as linear functions of the change of x, with what is left over bounded.

Over the ball, x + scale * d with d of a norm up to the radius, a value is
y(d) = centre + slope . d -+ spread: a lower and an upper plane with one
slope. Unlike boxes, these remember that all units move with the same d: their sum moves by the
norm of the summed slopes, not by the sum of the norms. Each also carries the interval that either
way of bounding leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, Norm, between, box_product, box_sum
from r2et.certify.bounds.rounding import rounding


class LinearBound(NamedTuple):
    """centre, spread, low, high: (B, ...). slope: (B, n, ...), or (1, n, ...) for all rows."""

    centre: Tensor
    slope: Tensor
    spread: Tensor
    low: Tensor
    high: Tensor

    @property
    def size(self) -> Tensor:
        """The largest absolute value."""
        return torch.maximum(self.low.abs(), self.high.abs())

    @property
    def box(self) -> Box:
        return between(self.low, self.high)


def dual_norm(slope: Tensor, norm: Norm) -> Tensor:
    """The largest slope . d over the unit ball: (B, n, ...) -> (B, ...)."""
    if norm == "l2":
        return slope.square().sum(1).sqrt()
    return slope.abs().sum(1)


def linear_bound(
    centre: Tensor, slope: Tensor, spread: Tensor, ball: Ball, box: Box | None
) -> LinearBound:
    """A linear bound with the smaller of its own interval and the one already known."""
    reach = ball.over_rows(centre) * dual_norm(slope, ball.norm) + spread
    low, high = centre - reach, centre + reach
    if box is not None:
        low, high = torch.maximum(low, box.low), torch.minimum(high, box.high)
        # Both hold, so they meet; rounding must not turn a point inside out.
        low, high = torch.minimum(low, high), torch.maximum(low, high)
    return LinearBound(centre, slope, spread, low, high)


def input_bound(ball: Ball) -> LinearBound:
    """x + scale * e itself."""
    x, reach = ball.x, ball.reach
    n = x[0].numel()
    scales = ball.scales.flatten(1)
    slope = torch.diag_embed(scales).view(len(scales), n, *x.shape[1:])
    low, high = x - reach, x + reach
    if ball.limits is not None:
        low, high = torch.maximum(low, ball.limits[0]), torch.minimum(high, ball.limits[1])
    spread = torch.zeros_like(x) if ball.noise is None else ball.noise
    return LinearBound(x, slope, spread, low, high)


def constant_bound(centre: Tensor, n: int) -> LinearBound:
    """What is the same everywhere in the ball, for an input of n numbers."""
    zero = torch.zeros_like(centre)
    return LinearBound(centre, centre.new_zeros(1, n, *centre.shape[1:]), zero, centre, centre)


def interval_only(box: Box, n: int) -> LinearBound:
    """What only an interval is known of, for an input of n numbers."""
    assert box.spread is not None
    slope = box.centre.new_zeros(1, n, *box.centre.shape[1:])
    return LinearBound(box.centre, slope, box.spread, box.low, box.high)


def linear_sum(
    a: LinearBound, b: LinearBound, signs: tuple[float, float], ball: Ball
) -> LinearBound:
    """signs[0] * a + signs[1] * b, rounded."""
    one, two = signs
    noise = rounding(4, ball.unit, abs(one) * a.size + abs(two) * b.size)
    return linear_bound(
        one * a.centre + two * b.centre,
        one * a.slope + two * b.slope,
        abs(one) * a.spread + abs(two) * b.spread + noise,
        ball,
        box_sum(a.box, b.box, signs).widened(noise),
    )


def linear_product(a: LinearBound, b: LinearBound, ball: Ball) -> LinearBound:
    """a b = a* b + b* a - a* b* + (a - a*)(b - b*), the last bounded, at the middles a* and b*."""
    mid_a, mid_b = (a.low + a.high) / 2, (b.low + b.high) / 2
    half_a, half_b = (a.high - a.low) / 2, (b.high - b.low) / 2
    noise = rounding(8, ball.unit, a.size * b.size)
    return linear_bound(
        mid_a * b.centre + mid_b * a.centre - mid_a * mid_b,
        mid_a[:, None] * b.slope + mid_b[:, None] * a.slope,
        mid_a.abs() * b.spread + mid_b.abs() * a.spread + half_a * half_b + noise,
        ball,
        box_product(a.box, b.box).widened(noise),
    )
