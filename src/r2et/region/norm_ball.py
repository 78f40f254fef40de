"""What balls around x have in common: a radius, bounds, frozen features and scales.

Distances are measured on (x_adv - x) / scale, flattened to (B, n); so are projections: the
projection is the nearest point of the region in the region's own metric.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from r2et.checks import check_input, check_same_shape
from r2et.errors import InputError, describe, require
from r2et.region.base import Region
from r2et.region.parsing import as_number, indices, per_feature


@dataclass(frozen=True)
class NormBall(Region):
    """Inputs within `radius` of x that keep to `bounds` and leave `frozen` features alone.

    Features of an image or a graph are numbered as x.flatten(1) numbers them.

    Args:
        radius: in units of `scale`.
        bounds: (low, high), each a number or one number per feature; None: no limits.
        frozen: indices of features that stay.
        scale: one number per feature, the change that counts as 1; None: 1 for all.
    """

    radius: float
    bounds: tuple[Any, Any] | None = None
    frozen: Sequence[int] = ()
    scale: Any = None

    def __post_init__(self) -> None:
        where = type(self).__name__
        radius = as_number(where, "radius", self.radius)
        require(0 < radius < math.inf, where, "radius", "positive and finite", self.radius)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "frozen", indices(where, self.frozen))
        if self.bounds is not None:
            pair = isinstance(self.bounds, Sequence | Tensor) and len(self.bounds) == 2
            require(pair, where, "bounds", "a pair (low, high)", self.bounds)
            low, high = (per_feature(where, "bounds", b) for b in self.bounds)
            many = [len(b) for b in (low, high) if isinstance(b, tuple)]
            same = len(set(many)) <= 1 and 0 not in many
            require(same, where, "bounds", "numbers, or as many lows as highs", self.bounds)
            ordered = bool((torch.as_tensor(low) <= torch.as_tensor(high)).all())
            require(ordered, where, "bounds", "a pair with low <= high", self.bounds)
            object.__setattr__(self, "bounds", (low, high))
        if self.scale is not None:
            scale = per_feature(where, "scale", self.scale)
            usable = bool(
                (torch.as_tensor(scale) > 0).all() and torch.as_tensor(scale).isfinite().all()
            )
            require(
                usable, where, "scale", "positive and finite (use frozen to hold a feature)", scale
            )
            object.__setattr__(self, "scale", scale)

    def project(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """The nearest point of the region around x (B, ...) to x_adv (B, ...).

        Rounding may leave it a few ulps outside the ball, never outside the bounds.
        """
        where = type(self).__name__
        self.check(x)
        check_input(where, x_adv, "x_adv")
        check_same_shape(where, x_adv, x, "x_adv", "x")
        require(x_adv.dtype == x.dtype, where, "x_adv", f"{x.dtype} as x is", x_adv)
        flat = x.flatten(1)
        move = (x_adv.flatten(1) - flat) / self._scale(flat)
        size = self._shrink(move.abs(), self._room(flat, move))
        return self._place(flat, move.sign() * size).view_as(x)

    def sample(
        self,
        x: Tensor,
        count: int = 1,
        *,
        generator: torch.Generator | None = None,
        antithetic: bool = False,
        shared: bool = False,
    ) -> Tensor:
        """(count, B, ...) points, uniform in the ball around each row of x (B, ...).

        A point beyond a bound is folded back at it, which keeps it in the ball: exactly uniform
        where no bound cuts the ball, or where x lies on every bound that does; otherwise up to
        twice as dense, per bound, where folded points land. antithetic: the second half mirrors
        the first. shared: all rows move alike. generator: by default one seeded with 0.
        """
        self.check(x)
        return self._scatter(x, count, self._uniform, generator, antithetic, shared)

    def extreme(self, x: Tensor, noise: Tensor) -> Tensor:
        """A point at the border of each row's ball, as far as the bounds let it: (B, ...).

        A random direction for L2, a random corner for Linf.
        """
        self.check(x)
        check_same_shape(type(self).__name__, noise, x, "noise", "x")
        return self.project(x + self.radius * self.steepest(noise.to(x)), x)

    def scaled(self, times: float) -> NormBall:
        """The ball of so many times the radius, within the same bounds."""
        return replace(self, radius=times * self.radius)

    def gaussian(
        self,
        x: Tensor,
        sigma: float,
        count: int = 1,
        *,
        generator: torch.Generator | None = None,
        antithetic: bool = False,
        shared: bool = False,
    ) -> Tensor:
        """(count, B, ...) points x + N(0, (sigma * scale)^2), folded at the bounds.

        Frozen features stay; the radius does not limit these points.
        """
        self.check(x)
        size = as_number(type(self).__name__, "sigma", sigma)
        require(0 < size < math.inf, type(self).__name__, "sigma", "positive and finite", sigma)

        def draw(shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64) * size

        return self._scatter(x, count, draw, generator, antithetic, shared)

    def distance(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """(B,) distance in this region's norm, in units of scale, summed in float64."""
        self._check_sizes(x)
        check_same_shape(type(self).__name__, x_adv, x, "x_adv", "x")
        flat = x.flatten(1).double()
        return self._norm((x_adv.flatten(1).double() - flat) / self._scale(flat))

    def contains(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """(B,) bool: inside the ball up to the rounding of x's type; bounds and frozen exactly."""
        self._check_sizes(x)
        check_same_shape(type(self).__name__, x_adv, x, "x_adv", "x")
        flat, moved = x.flatten(1), x_adv.flatten(1)
        held = self._held(flat)
        # One ulp of every coordinate that moves is what x + delta itself cannot represent.
        ulp = torch.finfo(x.dtype).eps * (flat.abs() + moved.abs()).double() / self._scale(flat)
        ulp = ulp.masked_fill(held, 0.0)
        slack = self._norm(ulp) + 4 * torch.finfo(x.dtype).eps * self.radius
        inside = self.distance(x_adv, x) <= self.radius + slack
        if self.bounds is not None:
            low, high = self._limits(flat)
            inside &= ((moved >= low) & (moved <= high)).all(1)
        return inside & (moved == flat)[:, held].all(1)

    def check(self, x: Tensor) -> None:
        """Refuse an x that this region cannot be put around."""
        where = type(self).__name__
        self._check_sizes(x)
        flat = x.detach().flatten(1)
        if self.bounds is not None:
            low, high = self._limits(flat)
            out = ((flat < low) | (flat > high)).nonzero()
            if len(out):
                row, feature = (int(v) for v in out[0])
                value = f"x[{row}] with feature {feature} = {float(flat[row, feature]):g}"
                require(False, where, "bounds", "around x", value)

    def _check_sizes(self, x: Tensor) -> None:
        """Settings given per feature must fit x's features."""
        where = type(self).__name__
        check_input(where, x)
        n = x[0].numel()
        last = max(self.frozen, default=-1)
        require(last < n, where, "frozen", f"below {n}, the number of features", last)
        free = len(self.frozen) < n
        require(free, where, "frozen", f"fewer than all {n} features", f"all {n}")
        for name, value in (("scale", self.scale), *(("bounds", b) for b in self.bounds or ())):
            fits = not isinstance(value, tuple) or len(value) == n
            require(fits, where, name, f"one number or {n}, one per feature", value)

    def steepest(self, slope: Tensor) -> Tensor:
        """The move (B, ...) of distance 1, free features only, along which `slope` rises most.

        0 where the slope is.
        """
        flat = slope.flatten(1)
        scaled = torch.where(self._held(flat), 0.0, flat * self._scale(flat))
        # Over the largest coordinate first: the square of a tiny slope underflows.
        largest = scaled.abs().amax(1, keepdim=True)
        scaled = scaled / torch.where(largest > 0, largest, 1.0)
        return (self._dual(scaled) * self._scale(flat)).view_as(slope)

    @abstractmethod
    def _dual(self, slope: Tensor) -> Tensor:
        """The vector (B, n) of norm 1 with the largest product with `slope`; 0 for 0."""

    @abstractmethod
    def _norm(self, move: Tensor) -> Tensor:
        """(B, n) -> (B,)."""

    @abstractmethod
    def _shrink(self, size: Tensor, room: Tensor | None) -> Tensor:
        """The nearest vector to `size` (B, n) >= 0 in the ball with no coordinate above `room`."""

    @abstractmethod
    def _uniform(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """(count, B, free) float64 points, uniform in the ball of this norm around 0."""

    def _scatter(
        self,
        x: Tensor,
        count: int,
        draw: Any,
        generator: torch.Generator | None,
        antithetic: bool,
        shared: bool,
    ) -> Tensor:
        whole = isinstance(count, int) and not isinstance(count, bool) and count > 0
        require(whole, type(self).__name__, "count", "a positive whole number", count)
        flat = x.flatten(1)
        free = ~self._held(flat)
        # Drawn on the CPU in float64: the same points on every device and in every precision.
        drawn = (count + 1) // 2 if antithetic else count
        rows = 1 if shared else len(flat)
        generator = generator or torch.Generator().manual_seed(0)
        points = draw((drawn, rows, int(free.sum())), generator)
        if antithetic:
            points = torch.cat([points, -points])[:count]
        move = flat.new_zeros(count, *flat.shape)
        move[..., free] = points.to(flat)
        if self.bounds is not None:
            move = self._fold(flat, move)
        return self._place(flat, move).view(count, *x.shape)

    def _fold(self, flat: Tensor, move: Tensor) -> Tensor:
        """Reflect what lies beyond a bound; what then lies beyond the other one stops at it."""
        low, high = self._limits(flat)
        scale = self._scale(flat)
        below, above = (low - flat) / scale, (high - flat) / scale
        folded = torch.where(move > above, 2 * above - move, move)
        folded = torch.where(folded < below, 2 * below - folded, folded)
        return torch.minimum(torch.maximum(folded, below), above)

    def _place(self, flat: Tensor, move: Tensor) -> Tensor:
        """x + scale * move, exactly x where frozen and exactly within bounds."""
        placed = flat + self._scale(flat) * move
        if self.bounds is not None:
            low, high = self._limits(flat)
            placed = torch.minimum(torch.maximum(placed, low), high)
        return torch.where(self._held(flat), flat, placed)

    def _room(self, flat: Tensor, move: Tensor) -> Tensor | None:
        """How far each coordinate may go in the direction of `move`, in units of scale."""
        if self.bounds is None and not self.frozen:
            return None
        room = torch.full_like(flat, math.inf)
        if self.bounds is not None:
            low, high = self._limits(flat)
            room = torch.where(move > 0, high - flat, flat - low) / self._scale(flat)
        return room.masked_fill(self._held(flat), 0.0)

    def _limits(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        low, high = self.bounds or (-math.inf, math.inf)
        # Bounds hold in x's own precision: 0.1 means float32(0.1) for a float32 x.
        return flat.new_tensor(low), flat.new_tensor(high)

    def _scale(self, flat: Tensor) -> Tensor:
        return flat.new_tensor(1.0 if self.scale is None else self.scale)

    def _held(self, flat: Tensor) -> Tensor:
        held = torch.zeros(flat.shape[1], dtype=torch.bool, device=flat.device)
        held[list(self.frozen)] = True
        return held


def as_ball(where: str, region: Region) -> NormBall:
    """The region, for those who need its radius."""
    if isinstance(region, NormBall):
        return region
    raise InputError(f"{where}: region must be a ball, L2 or Linf, got {describe(region)}.")
