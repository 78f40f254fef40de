"""The gradient averaged over the way from a baseline to the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, final

import numpy as np
import torch
from torch import Tensor

from r2et.errors import require
from r2et.explain.path_gradients import GradientSum, PathExplainer, as_baseline, baseline_of

Rule: TypeAlias = Literal["midpoint", "gauss_legendre", "left", "right", "trapezoid"]
RULES: tuple[Rule, ...] = ("midpoint", "gauss_legendre", "left", "right", "trapezoid")


@final
@dataclass(frozen=True, kw_only=True)
class IntegratedGradients(PathExplainer):
    """IG: (x - x0) times the mean of Grad over the straight way from x0 to x.

    Signed scores sum to f(x) - f(x0) up to the rule's error. Settings beside these are those of
    Gradient.

    Args:
        points: at which the integral is taken.
        baseline: x0, a number or one per feature (flattened).
        rule: of the integral: "midpoint", "gauss_legendre", "left", "right" or "trapezoid".
    """

    points: int = 100
    baseline: float | Sequence[float] = 0.0
    rule: Rule = "midpoint"

    def __post_init__(self) -> None:
        super().__post_init__()
        where, names = "IntegratedGradients", ", ".join(RULES)
        require(self.rule in RULES, where, "rule", f"one of {names}", self.rule)
        least = 2 if self.rule == "trapezoid" else 1
        is_valid = isinstance(self.points, int) and self.points >= least
        require(is_valid, where, "points", f"at least {least}", self.points)
        object.__setattr__(self, "baseline", as_baseline(where, self.baseline))

    def weights(self) -> Tensor:
        return quadrature(self.rule, self.points)[1]

    def path(self, x: Tensor, start: int, stop: int) -> Tensor:
        way = quadrature(self.rule, self.points)[0][start:stop].to(x)
        return self._start(x) + way.view(-1, *[1] * x.ndim) * self.multiplier(x)

    def multiplier(self, x: Tensor) -> Tensor:
        return x - self._start(x)

    def as_sum(self, x: Tensor) -> GradientSum:
        """What is computed for x, as certificates read it."""
        way, weight = (part.to(x).double() for part in quadrature(self.rule, self.points))
        start = self._start(x).double()
        anchor = start.expand(x.shape[1:])[None].expand(len(way), *x.shape[1:])
        return GradientSum(anchor, way, start, weight, start)

    def _start(self, x: Tensor) -> Tensor:
        return baseline_of("IntegratedGradients", self.baseline, x)


@lru_cache(maxsize=32)
def quadrature(rule: Rule, count: int) -> tuple[Tensor, Tensor]:
    """`count` places in [0, 1] and their weights, which sum to 1, float64."""
    if rule == "gauss_legendre":
        roots, shares = np.polynomial.legendre.leggauss(count)
        return torch.from_numpy((roots + 1) / 2), torch.from_numpy(shares / 2)
    if rule == "trapezoid":
        ends = torch.full((count,), 1 / (count - 1), dtype=torch.float64)
        ends[[0, -1]] /= 2
        return torch.linspace(0, 1, count, dtype=torch.float64), ends
    offset = {"left": 0.0, "midpoint": 0.5, "right": 1.0}[rule]
    places = (torch.arange(count, dtype=torch.float64) + offset) / count
    return places, torch.full((count,), 1 / count, dtype=torch.float64)
