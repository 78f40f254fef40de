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

from r2et.certify.bounds.interval_bounds import Ball, Box, between, box_product, box_sum
from r2et.certify.bounds.rounding import rounding
from r2et.certify.bounds.symbols import same_directions


class LinearBound(NamedTuple):
    """centre, spread, low, high: (B, ...). slope: (B, n, ...), or (1, n, ...) for all rows.

    reach: (B, ...) how far from the centre slope and spread allow, where there are symbols.
    """

    centre: Tensor
    slope: Tensor
    spread: Tensor
    low: Tensor
    high: Tensor
    reach: Tensor | None = None

    @property
    def size(self) -> Tensor:
        """The largest absolute value; with symbols, of its terms, which are rounded one by one."""
        size = torch.maximum(self.low.abs(), self.high.abs())
        return size if self.reach is None else torch.maximum(size, self.centre.abs() + self.reach)

    @property
    def box(self) -> Box:
        return between(self.low, self.high)


def linear_bound(
    centre: Tensor, slope: Tensor, spread: Tensor, ball: Ball, box: Box | None
) -> LinearBound:
    """A linear bound with the smaller of its own interval and the one already known."""
    reach = ball.moved(slope) + spread
    low, high = centre - reach, centre + reach
    if box is not None:
        low, high = torch.maximum(low, box.low), torch.minimum(high, box.high)
        # Both hold, so they meet; rounding must not turn a point inside out.
        low, high = torch.minimum(low, high), torch.maximum(low, high)
    return LinearBound(centre, slope, spread, low, high, reach if ball.symbols else None)


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
    slope_a, slope_b = same_directions(a.slope, b.slope)
    return linear_bound(
        one * a.centre + two * b.centre,
        one * slope_a + two * slope_b,
        abs(one) * a.spread + abs(two) * b.spread + noise,
        ball,
        box_sum(a.box, b.box, signs).widened(noise),
    )


def linear_product(a: LinearBound, b: LinearBound, ball: Ball) -> LinearBound:
    """a b = a* b + b* a - a* b* + (a - a*)(b - b*), the last bounded, at the middles a* and b*.

    With symbols, the product of what both are along the change is one of them.
    """
    mid_a, mid_b = (a.low + a.high) / 2, (b.low + b.high) / 2
    half_a, half_b = (a.high - a.low) / 2, (b.high - b.low) / 2
    noise = rounding(8, ball.unit, a.size * b.size)
    slope_a, slope_b = same_directions(a.slope, b.slope)
    centre = mid_a * b.centre + mid_b * a.centre - mid_a * mid_b
    slope = mid_a[:, None] * slope_b + mid_b[:, None] * slope_a
    left = half_a * half_b
    if ball.symbols is not None:
        # a - a* = A . e + d: the product is (A . e)(B . e) + (A . e) d' + d (b - b*).
        along_a, along_b = (s[:, : ball.symbols.inputs] for s in (slope_a, slope_b))
        moved_a, moved_b = ball.moved(along_a), ball.moved(along_b)
        off_a, off_b = off_line(a, mid_a, ball), off_line(b, mid_b, ball)
        one = moved_a * torch.minimum(off_b, half_b + moved_b) + off_a * half_b
        two = moved_b * torch.minimum(off_a, half_a + moved_a) + off_b * half_a
        rest = torch.minimum(one, two)
        better = rest < left
        along_a = torch.where(better[:, None], along_a, 0.0)
        along_b = along_b.expand_as(along_a)
        slope, gained = ball.symbols.with_products(slope, along_a, along_b, ball)
        centre, left = centre + gained, torch.where(better, rest, left)
    spread = mid_a.abs() * b.spread + mid_b.abs() * a.spread + left + noise
    return linear_bound(centre, slope, spread, ball, box_product(a.box, b.box).widened(noise))


def off_line(bound: LinearBound, middle: Tensor, ball: Ball) -> Tensor:
    """How far a value is from middle + slope . e, e the change alone: (B, ...)."""
    assert ball.symbols is not None
    symbols = bound.slope[:, ball.symbols.inputs :].abs().sum(1)
    return (bound.centre - middle).abs() + symbols + bound.spread


def promoted(bound: LinearBound, ball: Ball) -> LinearBound:
    """A bound whose large spreads are symbols from here on, where there are such."""
    if ball.symbols is None:
        return bound
    reach = ball.moved(bound.slope) + bound.spread
    spread, slope = ball.symbols.promoted(bound.spread, bound.slope, reach)
    return bound._replace(spread=spread, slope=slope, reach=reach)
