"""Gradient explanations at the input itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from r2et.explain.path_gradients import (
    GradientSum,
    PathExplainer,
    as_baseline,
    baseline_of,
    over_rows,
)
from r2et.models.output import class_logit, log_odds


@dataclass(frozen=True, kw_only=True)
class LocalExplainer(PathExplainer):
    """One point, x, of weight 1."""

    local: ClassVar[bool] = True

    def weights(self) -> Tensor:
        return torch.ones(1, dtype=torch.float64)

    def path(self, x: Tensor, start: int, stop: int) -> Tensor:
        return x[None][start:stop]

    def from_logits(self, x: Tensor, out: Tensor, target: Tensor) -> Tensor:
        """The raw attribution, with a graph, from logits (B, C) that a model has given at x.

        x must have required a gradient when they were computed. Spares training a forward pass.
        """
        value = class_logit(out, target) if self.of == "logit" else log_odds(out, target)
        (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        if self.of == "probability":
            gradient = over_rows(value.sigmoid() * (-value).sigmoid(), gradient) * gradient
        elif self.of == "loss":
            gradient = -over_rows((-value).sigmoid(), gradient) * gradient
        return self._finished(gradient, x)


@final
@dataclass(frozen=True, kw_only=True)
class Gradient(LocalExplainer):
    """Grad: the derivative of the explained class by each feature (Sec. 3).

    Settings beside these are those of Explainer.

    Args:
        of: the quantity explained. "log_odds", log(p / (1 - p)) of the class, is the default: its
            gradient is the probability's divided by p (1 - p) and does not vanish as the model
            grows sure. Also "logit", "probability" and "loss".
        part: of a pair (B, 2, ...), explain only input 0 or 1; by default both.
    """

    def as_sum(self, x: Tensor) -> GradientSum:
        """What is computed for x, as certificates read it."""
        return gradient_at_x(x, None)


@final
@dataclass(frozen=True, kw_only=True)
class GradientTimesInput(LocalExplainer):
    """Grad x Input: each feature's derivative times its distance from a baseline.

    A contribution, (x - baseline) * gradient: 0 for a feature that is at its baseline. Settings
    beside this one are those of Gradient.

    Args:
        baseline: a number or one per feature (flattened), such as the mean of the training rows.
    """

    baseline: float | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "baseline", as_baseline("GradientTimesInput", self.baseline))

    def multiplier(self, x: Tensor) -> Tensor:
        return x - baseline_of("GradientTimesInput", self.baseline, x)

    def as_sum(self, x: Tensor) -> GradientSum:
        """What is computed for x, as certificates read it."""
        return gradient_at_x(x, baseline_of("GradientTimesInput", self.baseline, x).double())


def gradient_at_x(x: Tensor, times: Tensor | None) -> GradientSum:
    """The gradient at x itself, times x - `times` if that is given."""
    zero, one = x.new_zeros((), dtype=torch.float64), x.new_ones(1, dtype=torch.float64)
    return GradientSum(zero.view(1, *[1] * (x.ndim - 1)), one, zero, one, times)
