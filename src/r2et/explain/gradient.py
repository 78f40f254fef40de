"""Gradient explanations at the input itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from r2et.explain.path import PathExplainer


@dataclass(frozen=True, kw_only=True)
class LocalExplainer(PathExplainer):
    """One point, x, of weight 1."""

    local: ClassVar[bool] = True

    def weights(self) -> Tensor:
        return torch.ones(1, dtype=torch.float64)

    def path(self, x: Tensor, start: int, stop: int) -> Tensor:
        return x[None][start:stop]


@final
@dataclass(frozen=True, kw_only=True)
class Gradient(LocalExplainer):
    """Grad: the derivative of the explained class by each feature (Sec. 3)."""


@final
@dataclass(frozen=True, kw_only=True)
class GradientTimesInput(LocalExplainer):
    """Grad x Input: each feature's derivative times its value; 0 for a feature that is 0."""

    def multiplier(self, x: Tensor) -> Tensor:
        return x
