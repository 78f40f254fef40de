"""Explanations made of gradients at one or more points around x.

All of them are multiplier(x) * sum over m of w_m * grad f(point_m(x)); a method only says what
its points, weights and multiplier are.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from r2et.errors import InputError, first_line, require
from r2et.explain.base import OF, Explainer, Of, predicted
from r2et.models.output import OUT_OF_MEMORY, class_logit, log_odds, logits, target_classes


class GradientSum(NamedTuple):
    """What an explanation computes: factor * sum over m of weight_m * grad f(point_m).

    point_m = anchor_m + rate_m (x - origin), and the factor is x - times, or 1 where that is None.
    Numbers are float64, each exactly the one that the computation in x's precision takes.
    """

    anchor: Tensor  # (M, ...) of the shape of a row of x, or all 1
    rate: Tensor  # (M,), 0 or more
    origin: Tensor  # (...) or a number
    weight: Tensor  # (M,), 0 or more
    times: Tensor | None  # (...) or a number

    @property
    def at_x_alone(self) -> bool:
        """Whether x itself is the only point, of weight 1."""
        alone = len(self.rate) == 1 and float(self.rate) == 1 == float(self.weight)
        return alone and not bool(self.anchor.any()) and not bool(self.origin.any())


@dataclass(frozen=True, kw_only=True)
class PathExplainer(Explainer):
    """An explanation made of gradients along a path; its settings are listed at Gradient."""

    of: Of = "log_odds"
    part: int | None = None

    # Whether x itself is the only point, so that its logits also give the predicted class.
    local: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__
        require(self.of in OF, where, "of", f"one of {', '.join(OF)}", self.of)
        is_valid = self.part is None or (type(self.part) is int and self.part in (0, 1))
        require(is_valid, where, "part", "None, 0 or 1", self.part)

    @abstractmethod
    def weights(self) -> Tensor:
        """(M,) float64 weights of the points."""

    @abstractmethod
    def path(self, x: Tensor, start: int, stop: int) -> Tensor:
        """Points start..stop of the M: (stop - start, B, ...)."""

    def multiplier(self, x: Tensor) -> Tensor | None:  # noqa: ARG002
        """What the mean gradient is multiplied with, if anything."""
        return None

    def attribute(
        self, model: nn.Module, x: Tensor, target: Tensor | None, *, create_graph: bool
    ) -> Tensor:
        where = type(self).__name__
        if target is None and not self.local:
            target = predicted(where, model, x)
        weights = self.weights().to(x.device)
        mean = _Mean(self.of)
        step = max(1, self._chunk_rows(x) // len(x))
        for start in range(0, len(weights), step):
            stop = min(start + step, len(weights))
            points = self.path(x, start, stop)
            value, gradient = _gradients(where, model, points, target, self.of, create_graph)
            mean.add(weights[start:stop], value, gradient)
        return self._finished(mean.total(), x)

    def _finished(self, raw: Tensor, x: Tensor) -> Tensor:
        """A mean gradient (B, ...) times the multiplier, of the part that is asked for."""
        times = self.multiplier(x)
        raw = raw if times is None else raw * times
        if self.part is None:
            return raw
        pair = x.ndim >= 3 and x.shape[1] == 2
        require(pair, type(self).__name__, "x", "pairs (B, 2, ...) when part is given", x)
        return raw[:, self.part]


def _gradients(
    where: str,
    model: nn.Module,
    points: Tensor,
    target: Tensor | None,
    of: Of,
    create_graph: bool,
) -> tuple[Tensor, Tensor]:
    """Log-odds (or logit) and its gradient at points (m, B, ...): (m, B), (m, B, ...)."""
    copies = len(points)
    flat = points.flatten(0, 1)
    flat = flat if flat.requires_grad and create_graph else flat.detach().requires_grad_()
    out = logits(model, flat, where)
    differentiable = "differentiable in x (no detach, argmax, numpy or no_grad inside)"
    require(out.requires_grad, where, "model", differentiable, "an output without a gradient")
    target = target.repeat(copies) if target is not None and copies > 1 else target
    index = target_classes(where, target, out)
    value = class_logit(out, index) if of == "logit" else log_odds(out, index)
    try:
        (gradient,) = torch.autograd.grad(
            value.sum(), flat, create_graph=create_graph, allow_unused=True
        )
    except OUT_OF_MEMORY:
        raise
    except (RuntimeError, NotImplementedError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{where}: model must be {differentiable}, got {reason}.") from error
    if gradient is None:
        require(False, where, "model", differentiable, "an output that does not depend on x")
    if not bool(gradient.detach().any()) and bool((out.detach() != out.detach()[:1]).any()):
        reason = "a gradient of exactly 0 in every row, while outputs differ"
        require(False, where, "model", differentiable, reason)
    shape = points.shape
    # Half precision has no room for p (1 - p): from here on in float32 at least.
    return value.view(shape[:2]).to(torch.promote_types(value.dtype, torch.float32)), gradient.view(
        shape
    )


class _Mean:
    """A weighted mean of gradients, each times the derivative of `of` by the log-odds.

    That derivative, p (1 - p) for the probability and -(1 - p) for the loss, underflows on
    confident rows; so it is kept as a logarithm relative to the row's largest, and the ranking
    survives any confidence. Only the row's common scale, exp of that largest, can underflow, and
    it is held above the square root of the smallest normal number.
    """

    def __init__(self, of: Of) -> None:
        self.of = of
        self.sum: Tensor | None = None
        self.peak: Tensor | None = None  # (B,) largest log-derivative so far, a constant

    def add(self, weights: Tensor, value: Tensor, gradient: Tensor) -> None:
        """weights (m,), value (m, B), gradient (m, B, ...)."""
        share = weights.to(value.dtype)[:, None].expand_as(value)
        log = _log_derivative(self.of, value)
        if log is not None:
            largest = log.detach().amax(0)
            peak = largest if self.peak is None else torch.maximum(self.peak, largest)
            if self.sum is not None and self.peak is not None:
                self.sum = self.sum * over_rows((self.peak - peak).exp(), self.sum)
            self.peak = peak
            share = share * (log - peak).exp()
        new = (over_rows(share, gradient) * gradient).sum(0)
        self.sum = new if self.sum is None else self.sum + new

    def total(self) -> Tensor:
        if self.sum is None:
            raise RuntimeError("a mean of no gradients")
        if self.peak is None:
            return self.sum
        floor = math.sqrt(torch.finfo(self.peak.dtype).tiny)
        scale = self.peak.exp().clamp(min=floor) * (-1.0 if self.of == "loss" else 1.0)
        return self.sum * over_rows(scale, self.sum)


def _log_derivative(of: Of, value: Tensor) -> Tensor | None:
    """log |d of / d log-odds| at log-odds `value`; None where it is 0 throughout."""
    if of == "probability":
        return F.logsigmoid(value) + F.logsigmoid(-value)
    if of == "loss":
        return F.logsigmoid(-value)
    return None


def as_baseline(where: str, given: object) -> float | tuple[float, ...]:
    """A baseline in any form as a number, or one for each feature."""
    try:
        start = torch.as_tensor(given, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        start = torch.tensor(torch.nan)
    is_valid = bool(start.isfinite().all()) and start.numel() > 0
    require(is_valid, where, "baseline", "a finite number, or one per feature", given)
    return tuple(start.flatten().tolist()) if start.ndim else start.item()


def baseline_of(where: str, baseline: float | Sequence[float], x: Tensor) -> Tensor:
    """The baseline in x's precision, in a shape that is taken from rows of x."""
    start = x.new_tensor(baseline)
    if start.ndim == 0:
        return start
    n = x[0].numel()
    require(len(start) == n, where, "baseline", f"a number or {n} of them", len(start))
    return start.view(x.shape[1:])


def over_rows(rows: Tensor, like: Tensor) -> Tensor:
    """Shape rows so that they multiply all features of `like`."""
    return rows.view(*rows.shape, *[1] * (like.ndim - rows.ndim))
