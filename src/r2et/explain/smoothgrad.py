"""The gradient averaged over noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from r2et.errors import require
from r2et.explain.path import PathExplainer


@final
@dataclass(frozen=True, kw_only=True)
class SmoothGrad(PathExplainer):
    """SG: the mean over `samples` of Grad(x + b), b ~ N(0, sigma^2).

    The papers take sigma^2 = 0.5 for tables (the default), 25.5^2 for images on 0..255 and 0.01
    for graphs. The same noise, drawn from `seed`, serves every row and every call: the explanation
    is one fixed function of x, whatever batch the row comes in.
    """

    samples: int = 50
    sigma: float = math.sqrt(0.5)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.samples > 0, "SmoothGrad", "samples", "at least 1", self.samples)
        good = 0 <= self.sigma < math.inf
        require(good, "SmoothGrad", "sigma", "0 or more and finite", self.sigma)

    def weights(self) -> Tensor:
        return torch.full((self.samples,), 1 / self.samples, dtype=torch.float64)

    def path(self, x: Tensor, start: int, stop: int) -> Tensor:
        # Drawn whole and on the CPU: no chunk size, device or precision changes the noise.
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn(self.samples, *x.shape[1:], generator=generator, dtype=torch.float64)
        return x[None] + (self.sigma * noise[start:stop, None]).to(x)
