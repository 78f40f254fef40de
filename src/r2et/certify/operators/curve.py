"""A function of one number with its derivatives, exact ranges over intervals, and enclosures.

Each derivative is monotone between its turning points, so its range over [low, high] is that of
the end points and of the turning points between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]
Range = tuple[Tensor, Tensor]

# Interior points at which a curve is compared with its chord, and with a parabola.
SAMPLES, FINE_SAMPLES = 6, 16


@dataclass(frozen=True)
class Curve:
    """sigma and its derivatives, `curves[m](z)` the m-th, for z on one side of the kink.

    curves: of orders 0 to 3.
    turns: turns[m], where the m-th derivative has an extremum.
    kink: where the first derivative jumps or bends, if anywhere.
    left, right: the limits of each derivative there.
    derivative_ulps: how far off, in units of rounding, a float evaluation of the derivative may be.
    derivative_ulps_per_z: the same per |z|.
    value_terms: how many times |z| the terms of the value may be.
    formula_jump: how far torch's own evaluation jumps where it goes over to a simpler formula.
    piecewise_linear: the second derivative is 0 wherever it exists.
    period: at which distance all turns come again; 0 for never.
    pole: where the curve is not defined; an interval that holds it has no range.
    settings: what `curve` made it of.
    """

    name: str
    curves: tuple[Function, ...]
    turns: tuple[tuple[float, ...], ...]
    kink: float | None = None
    left: tuple[float, ...] = ()
    right: tuple[float, ...] = ()
    derivative_ulps: float = 8.0
    derivative_ulps_per_z: float = 0.0
    value_terms: float = 1.0
    formula_jump: float = 0.0
    piecewise_linear: bool = False
    period: float = 0.0
    pole: float | None = None
    settings: tuple[float | str, ...] = ()

    def range(self, order: int, low: Tensor, high: Tensor) -> Range:
        """The smallest and the largest value of the order-th derivative over [low, high]."""
        if self.piecewise_linear and order == 1:
            # Not a number, from an overflow, may be on either side.
            least, most = self._side(low > 0, low), self._side(~(high < 0), low)
            return (least, most) if self.left[1] <= self.right[1] else (most, least)
        if self.kink is not None and order > 0:
            return self._broken_range(order, low, high)
        curve = self.curves[order]
        a, b = curve(low), curve(high)
        least, most = torch.minimum(a, b), torch.maximum(a, b)
        if self.pole is not None:
            across = (low <= self.pole) & (self.pole <= high)
            least, most = (torch.where(across, torch.nan, end) for end in (least, most))
        return self._with_turns(order, low, high, least, most)

    def _side(self, right: Tensor, like: Tensor) -> Tensor:
        """The slope on the right or on the left of the kink, in full precision."""
        return torch.where(right, like.new_tensor(self.right[1]), like.new_tensor(self.left[1]))

    def _broken_range(self, order: int, low: Tensor, high: Tensor) -> Range:
        assert self.kink is not None
        a, b = self.limit(order, low, "left"), self.limit(order, high, "right")
        least, most = torch.minimum(a, b), torch.maximum(a, b)
        least, most = self._with_turns(order, low, high, least, most)
        inside = (low <= self.kink) & (high >= self.kink)
        ends = (self.left[order], self.right[order])
        least = torch.where(inside, least.clamp(max=min(ends)), least)
        return least, torch.where(inside, most.clamp(min=max(ends)), most)

    def _with_turns(
        self, order: int, low: Tensor, high: Tensor, least: Tensor, most: Tensor
    ) -> Range:
        for place in self.turns[order]:
            inside = (low < place) & (place < high)
            if self.period:
                last = place + self.period * ((high - place) / self.period).floor()
                inside = last > low
            value = float(self.curves[order](torch.tensor(place, dtype=torch.float64)))
            least = torch.where(inside, least.clamp(max=value), least)
            most = torch.where(inside, most.clamp(min=value), most)
        return least, most

    def line(self, order: int, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """rate, least, most: the order-th derivative is in rate z + least .. rate z + most.

        The rate is the chord's, or 0 where that is no worse.
        """
        width = high - low
        start, end = self.limit(order, low, "right"), self.limit(order, high, "left")
        narrow = width <= 1e-9 * (1 + low.abs() + high.abs())
        rate = torch.where(narrow, 0.0, (end - start) / torch.where(narrow, 1.0, width))
        zero = torch.zeros_like(rate)
        least, most = self._left_over(order, low, high, rate, zero, zero, SAMPLES)
        # Over a wide interval a constant may be closer.
        bottom, top = self.range(order, low, high)
        level = most - least >= top - bottom
        rate = torch.where(level, 0.0, rate)
        return rate, torch.where(level, bottom, least), torch.where(level, top, most)

    def parabola(
        self, order: int, low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """rate, bend, least, most: with m the middle of low..high, the order-th derivative is in
        rate (z - m) + bend (z - m)^2 + least .. most.

        Through three points of the curve (Chebyshev's), or the line above where that is as close.
        """
        middle, half = (low + high) / 2, (high - low) / 2
        rate, least, most = self.line(order, low, high)
        least, most = least + rate * middle, most + rate * middle
        bend = torch.zeros_like(rate)
        if self.piecewise_linear:
            return rate, bend, least, most
        narrow = half <= 1e-6 * (1 + low.abs() + high.abs())
        step = math.sqrt(3) / 2 * torch.where(narrow, 1.0, half)
        before, at, after = (self.curves[order](middle + s * step) for s in (-1, 0, 1))
        slant, curved = (after - before) / (2 * step), (after + before - 2 * at) / (2 * step**2)
        bottom, top = self._left_over(order, low, high, slant, curved, middle, FINE_SAMPLES)
        closer = ~narrow & (top - bottom < most - least)
        rate, bend = torch.where(closer, slant, rate), torch.where(closer, curved, bend)
        return rate, bend, torch.where(closer, bottom, least), torch.where(closer, top, most)

    def _left_over(
        self,
        order: int,
        low: Tensor,
        high: Tensor,
        rate: Tensor,
        bend: Tensor,
        middle: Tensor,
        samples: int,
    ) -> Range:
        """What the order-th derivative less rate (z - m) + bend (z - m)^2 lies between, m the
        middle given.

        Between neighbouring samples at distance h a curve leaves its chord by at most h^2 / 8
        times its largest second derivative there.
        """
        width = high - low

        def left(value: Tensor, z: Tensor | float) -> Tensor:
            away = z - middle
            return value - rate * away - bend * away * away

        ends = [left(self.limit(order, low, side), low) for side in ("left", "right")]
        ends += [left(self.limit(order, high, side), high) for side in ("left", "right")]
        if not self.piecewise_linear:
            for m in range(1, samples + 1):
                z = low + (m / (samples + 1)) * width
                ends.append(left(self.curves[order](z), z))
        if self.kink is not None:
            inside = (low <= self.kink) & (high >= self.kink)
            for limit in (self.left[order], self.right[order]):
                ends.append(
                    torch.where(inside, left(torch.full_like(low, limit), self.kink), ends[0])
                )
        stacked = torch.stack(ends)
        least, most = stacked.amin(0), stacked.amax(0)
        if not self.piecewise_linear:
            second = self.range(order + 2, low, high)
            step = (width / (samples + 1)).square() / 8
            # Where the curve bends down it is above its chords, where it bends up below.
            least = least - step * (second[1] - 2 * bend).clamp(min=0)
            most = most - step * (second[0] - 2 * bend).clamp(max=0)
        return least, most

    def limit(self, order: int, z: Tensor, side: str) -> Tensor:
        """The order-th derivative at z; at a kink, its limit from the left or from the right."""
        value = self.curves[order](z)
        if self.kink is None or order == 0:
            return value
        ends = self.left if side == "left" else self.right
        return torch.where(z == self.kink, ends[order], value)
