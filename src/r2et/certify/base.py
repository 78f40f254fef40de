"""What every certifier is, and what it gives: a radius for each row, and what it rests on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn

from r2et.config import Configurable
from r2et.errors import require
from r2et.explain import Explainer


@dataclass(frozen=True, eq=False)
class Certificate:
    """radius: (B,) float64: within it, in the certifier's norm, no change of x changes the top k.

    A radius of 0 proves nothing. sound: whether this is a proof; if not, it is an estimate.
    method: how it was found, with the settings. assumptions: what the proof rests on.
    """

    radius: Tensor
    sound: bool
    method: str
    assumptions: str
    precision: Callable[[float], Tensor] = field(repr=False)

    def precision_at(self, radius: float) -> Tensor:
        """(B,) proved lower bound of P@k for all changes of this size; 1 within `self.radius`."""
        is_valid = isinstance(radius, int | float) and 0 <= radius < math.inf
        require(is_valid, "precision_at", "radius", "0 or more and finite", radius)
        return self.precision(radius)


class Certifier(Configurable, ABC):
    """Looks for the largest ball around each row in which its top k cannot change."""

    @abstractmethod
    def __call__(
        self,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
    ) -> Certificate:
        """Certify the top k of each row of x (B, ...); target: the class explained, everywhere in
        the ball, by default the one predicted at x.
        """
