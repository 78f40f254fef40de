"""Interval bounds (IBP): boxes of values over a ball, and the arithmetic of boxes.

A value y over the ball lies in centre - spread .. centre + spread. With `unit`, the spacing of the
model's floating-point numbers, spreads also cover what a float evaluation adds: each sum of m terms
is off by at most about m * unit * (sum of the terms' sizes), in any order of summation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    from r2et.certify.bounds.symbols import Symbols

Norm: TypeAlias = Literal["l2", "linf"]


class Box(NamedTuple):
    """centre -+ spread; a spread of None is 0.

    scale: of a value that is centre + scale * e entry by entry, e a point of the ball of the norm,
    (1, ...) or (B, ...): a linear map of it is bounded by norms of the map's rows, where a box
    would take their sums.
    """

    centre: Tensor
    spread: Tensor | None = None
    scale: Tensor | None = None

    @property
    def low(self) -> Tensor:
        return self.centre if self.spread is None else self.centre - self.spread

    @property
    def high(self) -> Tensor:
        return self.centre if self.spread is None else self.centre + self.spread

    @property
    def size(self) -> Tensor:
        """The largest absolute value."""
        size = self.centre.abs()
        return size if self.spread is None else size + self.spread

    def widened(self, noise: Tensor) -> Box:
        """The same with `noise` more on either side."""
        return Box(self.centre, added(self.spread, noise))


def between(low: Tensor, high: Tensor) -> Box:
    """The box with these ends."""
    return Box((low + high) / 2, (high - low) / 2)


def added(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """a + b, where None is 0."""
    if a is None or b is None:
        return a if b is None else b
    return a + b


def box_sum(a: Box, b: Box, signs: tuple[float, float] = (1.0, 1.0)) -> Box:
    """signs[0] * a + signs[1] * b."""
    one, two = signs
    centre = (a.centre if one == 1 else one * a.centre) + (b.centre if two == 1 else two * b.centre)
    spread = a.spread if abs(one) == 1 or a.spread is None else abs(one) * a.spread
    other = b.spread if abs(two) == 1 or b.spread is None else abs(two) * b.spread
    return Box(centre, added(spread, other))


def box_product(a: Box, b: Box) -> Box:
    """The smallest box of all products."""
    if a.spread is None or b.spread is None:
        point, other = (a.centre, b) if a.spread is None else (b.centre, a)
        spread = None if other.spread is None else point.abs() * other.spread
        return Box(point * other.centre, spread)
    ends = torch.stack([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
    return between(ends.amin(0), ends.amax(0))


def dual_norm(slope: Tensor, norm: Norm) -> Tensor:
    """The largest slope . d over the unit ball: (B, n, ...) -> (B, ...)."""
    if norm == "l2":
        return slope.square().sum(1).sqrt()
    return slope.abs().sum(1)


@dataclass(frozen=True)
class Ball:
    """The points x + scale * e with ||e|| <= radius: a ball, an ellipsoid or a box.

    Slopes of linear bounds are by e.

    x: (B, ...).
    radius: (B,).
    norm: of e.
    unit: the rounding unit of the model's arithmetic; 0 leaves rounding out.
    exact: x alone, and boxes without a spread.
    soft: give the jumps of a derivative the gradient of a sigmoid this wide; 0 for none.
    scale: (1, ...) or (B, ...), 0 for what does not move; None for 1 throughout.
    noise: (B, ...) how far from x + scale * e the point may be computed; None for 0.
    limits: (low, high) (B, ...) or (1, ...) that no point leaves; None for none.
    symbols: where what operators leave open is kept as symbols; None: as intervals.
    """

    x: Tensor
    radius: Tensor
    norm: Norm
    unit: float = 0.0
    exact: bool = False
    soft: float = 0.0
    scale: Tensor | None = None
    noise: Tensor | None = None
    limits: tuple[Tensor, Tensor] | None = None
    symbols: Symbols | None = None

    @staticmethod
    def point(x: Tensor) -> Ball:
        """x alone."""
        return Ball(x, x.new_zeros(len(x)), "l2", exact=True)

    def over_rows(self, like: Tensor) -> Tensor:
        """The radius in a shape that multiplies rows."""
        return self.radius.view(-1, *[1] * (like.ndim - 1))

    @property
    def scales(self) -> Tensor:
        """(1, ...) or (B, ...): how far each number moves where e is 1."""
        return torch.ones_like(self.x[:1]) if self.scale is None else self.scale

    @property
    def reach(self) -> Tensor:
        """(B, ...): how far each number may be from x."""
        reach = self.over_rows(self.x) * self.scales
        return reach if self.noise is None else reach + self.noise

    def moved(self, slope: Tensor) -> Tensor:
        """How far a value with this slope (B, directions, ...) moves at most: (B, ...)."""
        count = slope.shape[1] if self.symbols is None else self.symbols.inputs
        own = dual_norm(slope[:, :count], self.norm)
        moved = self.over_rows(own) * own
        if slope.shape[1] > count:
            # A hair more, for what a sum over many symbols loses to rounding.
            moved = (moved + slope[:, count:].abs().sum(1)) * (1 + 1e-13)
        return moved

    def box(self) -> Box:
        """The box of the points."""
        return Box(self.x) if self.exact else Box(self.x, self.reach, self.scales)
