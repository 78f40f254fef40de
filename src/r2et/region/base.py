"""Where a perturbed input may lie: what attacks and thickness ask of every such set."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from r2et.config import Configurable


class Region(Configurable, ABC):
    """A set of inputs around each x; a value, with frozen settings and a repr that says it all."""

    @abstractmethod
    def project(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """The nearest point of the set around x (B, ...) to x_adv (B, ...)."""

    @abstractmethod
    def sample(
        self,
        x: Tensor,
        count: int = 1,
        *,
        generator: torch.Generator | None = None,
        antithetic: bool = False,
        shared: bool = False,
    ) -> Tensor:
        """(count, B, ...) points, uniform in the set around each row of x (B, ...).

        antithetic: the second half mirrors the first, so odd terms cancel in a mean. shared: all
        rows are drawn alike. generator: by default one seeded with 0.
        """

    @abstractmethod
    def extreme(self, x: Tensor, noise: Tensor) -> Tensor:
        """A point far out in the set around each row of x (B, ...), drawn by its own noise.

        noise: (B, ...) standard normal numbers.
        """

    @abstractmethod
    def scaled(self, times: float) -> Region:
        """The same set, so many times as far."""

    @abstractmethod
    def distance(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """(B,) how far x_adv is from x, in this region's measure and in float64."""

    @abstractmethod
    def contains(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """(B,) bool: x_adv is in the set around x."""

    @abstractmethod
    def check(self, x: Tensor) -> None:
        """Refuse an x that this region cannot be put around."""
