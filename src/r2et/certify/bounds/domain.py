"""A region as proofs see it: a norm, how far a unit is for each feature, and limits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Norm
from r2et.region import L2, NormBall


@dataclass(frozen=True)
class Domain:
    """The points x + scale * e with ||e|| <= radius, within limits.

    norm: of e.
    scale: (1, ...) float64, 0 for what is frozen; None for 1 throughout.
    low, high: (1, ...) float64, or None.
    widen: count in what `region.contains` lets pass as rounding.
    """

    norm: Norm
    scale: Tensor | None = None
    low: Tensor | None = None
    high: Tensor | None = None
    widen: bool = False

    @staticmethod
    def of_region(region: NormBall, x: Tensor) -> Domain:
        """The domain of a ball's settings, for rows like x (B, ...)."""
        flat, shape = x[:1].flatten(1), (1, *x.shape[1:])
        scale = region._scale(flat.double()).expand_as(flat).masked_fill(region._held(flat), 0.0)
        low = high = None
        if region.bounds is not None:
            # In x's own precision, in which points are held within them.
            ends = (end.expand_as(flat).double().view(shape) for end in region._limits(flat))
            low, high = ends
        norm: Norm = "l2" if isinstance(region, L2) else "linf"
        return Domain(norm, scale.reshape(shape), low, high, widen=True)

    def radius(self, x: Tensor, radius: Tensor, unit: float) -> Tensor:
        """(B,) radii that hold what counts as inside: one spacing of every number that moves."""
        if not self.widen:
            return radius
        flat = x.flatten(1).abs()
        scale = torch.ones_like(flat) if self.scale is None else self.scale.flatten(1)
        moved = 2 * flat + radius[:, None] * scale
        spacing = torch.where(scale > 0, unit * moved / scale, 0.0)
        length = spacing.square().sum(1).sqrt() if self.norm == "l2" else spacing.amax(1)
        return radius * (1 + 8 * unit) + length * (1 + 1e-6)

    def distance(self, moved: Tensor) -> Tensor:
        """(B,) norms of changes of x (B, ...), in units of scale; frozen numbers have no part."""
        flat = self.unscaled(moved.flatten(1))
        return flat.square().sum(1).sqrt() if self.norm == "l2" else flat.abs().amax(1)

    def unscaled(self, moved: Tensor) -> Tensor:
        """e of changes (B, n) of x."""
        if self.scale is None:
            return moved
        scale = self.scale.flatten(1)
        return torch.where(scale > 0, moved / torch.where(scale > 0, scale, 1.0), 0.0)

    def scaled(self, e: Tensor) -> Tensor:
        """Changes (B, n) of x."""
        return e if self.scale is None else e * self.scale.flatten(1)

    def ball(self, x: Tensor, radius: Tensor, unit: float) -> Ball:
        """Around rows x (B, ...); of a box, the part within the limits."""
        if self.low is None or self.high is None:
            return Ball(x, radius, self.norm, unit, scale=self.scale)
        if self.norm == "l2":
            return Ball(x, radius, "l2", unit, scale=self.scale, limits=(self.low, self.high))
        reach = radius.view(-1, *[1] * (x.ndim - 1)) * (1.0 if self.scale is None else self.scale)
        low, high = torch.maximum(x - reach, self.low), torch.minimum(x + reach, self.high)
        return box_ball(low, high, unit)


def box_ball(low: Tensor, high: Tensor, unit: float) -> Ball:
    """The box between low and high (B, ...)."""
    middle = (low + high) / 2
    # Whichever end rounding has moved the middle away from.
    half = torch.maximum(high - middle, middle - low) * (1 + 1e-15)
    return Ball(middle, middle.new_ones(len(middle)), "linf", unit, scale=half, limits=(low, high))
