"""The gradient averaged over noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from r2et.errors import require
from r2et.explain.path_gradients import GradientSum, PathExplainer


@final
@dataclass(frozen=True, kw_only=True)
class SmoothGrad(PathExplainer):
    """SG: the mean over `samples` of Grad(x + b), b ~ N(0, sigma^2).

    The same noise, drawn from `seed`, serves every row and every call: the explanation is one fixed
    function of x, whatever batch the row comes in. Settings beside these are those of Gradient.

    Args:
        samples: how many noisy copies are averaged.
        sigma: of the noise. The papers take sigma^2 = 0.5 for tables (the default), 25.5^2 for
            images on 0..255 and 0.01 for graphs.
        seed: of the noise.
    """

    samples: int = 50
    sigma: float = math.sqrt(0.5)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = type(self.samples) is int and self.samples > 0
        require(is_valid, "SmoothGrad", "samples", "a whole number, at least 1", self.samples)
        is_valid = type(self.seed) is int and abs(self.seed) < 2**40
        require(is_valid, "SmoothGrad", "seed", "a whole number below 2^40", self.seed)
        is_valid = isinstance(self.sigma, int | float) and 0 <= self.sigma < math.inf
        require(is_valid, "SmoothGrad", "sigma", "0 or more and finite", self.sigma)

    def weights(self) -> Tensor:
        return torch.full((self.samples,), 1 / self.samples, dtype=torch.float64)

    def path(self, x: Tensor, start: int, stop: int) -> Tensor:
        # One generator a vector, on the CPU: no chunk size, device or precision changes the noise.
        noise = torch.stack([self._noise(i, x.shape[1:]) for i in range(start, stop)])
        return x[None] + (self.sigma * noise[:, None]).to(x)

    def as_sum(self, x: Tensor) -> GradientSum:
        """What is computed for x, as certificates read it."""
        anchor = self.path(torch.zeros_like(x[:1]), 0, self.samples)[:, 0].double()
        one, zero = torch.ones(self.samples, device=x.device), x.new_zeros(())
        weight = self.weights().to(x).double()
        return GradientSum(anchor, one.double(), zero.double(), weight, None)

    def _noise(self, index: int, shape: torch.Size) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        return torch.randn(shape, generator=generator, dtype=torch.float64)
