"""Features bounded one by one: what is left of the pairs where a network is too large for them."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Box
from r2et.certify.bounds.rounding import rounding


class PerFeatureBounds:
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
