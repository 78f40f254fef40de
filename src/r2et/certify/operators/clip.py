"""Numbers held between two ends: clamp, Hardtanh, ReLU6; and gradients let through between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, between, box_product
from r2et.certify.bounds.linear_bounds import (
    LinearBound,
    interval_only,
    linear_bound,
    linear_product,
)
from r2et.certify.bounds.rounding import rounding
from r2et.certify.operators.activation import (
    ActivationBackwardOp,
    ActivationOp,
    soft_step,
)
from r2et.certify.operators.base import Operator
from r2et.certify.operators.curves import curve
from r2et.certify.operators.registry import Call, Comparison, Made, Value, aten, register


@dataclass(frozen=True)
class ClipOp(Operator):
    """z, or the nearer of two ends where it is outside.

    least, most: the ends, in a shape that broadcasts over rows; infinite where there is none.
    """

    least: Tensor
    most: Tensor
    whole: bool = False
    name = "clamp"
    kinked = True

    def value(self, z: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(z, self.least), self.most)

    def _noise(self, ball: Ball, size: Tensor) -> Tensor:
        """Of the ends, which the model has in its own precision, and of these bounds themselves."""
        ends = torch.maximum(_finite_size(self.least), _finite_size(self.most))
        return rounding(4, ball.unit, ends + size)

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        (z,) = inputs
        if z.spread is None:
            return Box(self.value(z.centre))
        clipped = between(self.value(z.low), self.value(z.high))
        return clipped.widened(self._noise(ball, clipped.size)) if ball.unit else clipped

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (z,) = inputs
        low, high = z.low, z.high
        start, end, width = self.value(low), self.value(high), high - low
        narrow = width <= 1e-9 * (1 + low.abs() + high.abs())
        rate = torch.where(narrow, 0.0, (end - start) / torch.where(narrow, 1.0, width))
        # Straight between its ends and kinks: what the chord leaves is largest at one of these.
        places = [low, high, *(torch.clamp(kink, low, high) for kink in (self.least, self.most))]
        left = torch.stack([self.value(place) - rate * place for place in places])
        least, most = left.amin(0), left.amax(0)
        box = between(start, end)
        noise = self._noise(ball, box.size) + rounding(8, ball.unit, rate.abs() * z.size)
        return linear_bound(
            rate * z.centre + (least + most) / 2,
            rate[:, None] * z.slope,
            rate.abs() * z.spread + (most - least) / 2 + noise,
            ball,
            box.widened(noise),
        )

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values, jacobians
        raise RuntimeError("a clamp has no Hessian")


@dataclass(frozen=True)
class ClipBackwardOp(Operator):
    """g where z is between the ends, 0 elsewhere.

    least, most: the ends, as in ClipOp.
    inclusive: whether an end itself counts as between them.
    """

    least: Tensor
    most: Tensor
    inclusive: bool
    name = "clamp_backward"
    kinked = True

    def share(self, ball: Ball, z: Box) -> Box:
        """The box of 1 where z is between the ends, 0 elsewhere."""
        if z.spread is None:
            one, two = z.centre - self.least, self.most - z.centre
            inside = (one >= 0) & (two >= 0) if self.inclusive else (one > 0) & (two > 0)
            return Box(inside.to(z.centre))
        # The ends are rounded to the model's precision; and an end counts as either.
        hair = [4 * ball.unit * _finite_size(end) for end in (self.least, self.most)]
        one, two = z.low - self.least - hair[0], self.most - z.high - hair[1]
        three, four = z.high - self.least + hair[0], self.most - z.low + hair[1]
        if ball.soft:
            one, two, three, four = (
                soft_step(v, 0.0, 1.0, ball.soft) for v in (one, two, three, four)
            )
            return between(one * two, three * four)
        # Not a number, from an overflow, may be anywhere.
        never = (three < 0) | (four < 0)
        return between(((one > 0) & (two > 0)).to(z.low), (~never).to(z.low))

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        gradient, z = inputs
        product = box_product(gradient, self.share(ball, z))
        return product.widened(rounding(4, ball.unit, product.size)) if ball.unit else product

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        gradient, z = inputs
        share = interval_only(self.share(ball, z.box), z.slope.shape[1])
        return linear_product(gradient, share, ball)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values, jacobians
        raise RuntimeError("a clamp has no Hessian")


def _finite_size(end: Tensor) -> Tensor:
    return torch.where(end.isinf(), 0.0, end).abs()


def _ends(call: Call, value: Value, least: str, most: str) -> tuple[Tensor, Tensor]:
    """The ends, in the precision that the model compares in."""
    ends = []
    for name, none in ((least, -torch.inf), (most, torch.inf)):
        missing = call.arguments.get(name) is None
        end = torch.tensor(none) if missing else call.over_row(name, value)
        ends.append(end.to(call.weights_dtype))
    return ends[0], ends[1]


def _is_relu(least: Tensor, most: Tensor) -> bool:
    """Above 0 the identity, without an upper end: a number, for what is a weight may be trained."""
    is_number = least.ndim == 0 and not least.requires_grad
    return is_number and float(least) == 0 and most.ndim == 0 and float(most) == torch.inf


def _clip(call: Call, least: str, most: str) -> Made:
    value = call.value("self", grouped=True, whole=True)
    ends = _ends(call, value, least, most)
    if _is_relu(*ends) and not value.whole:
        return ActivationOp(curve("relu", 0.0)), (value,)
    if bool((ends[0] > ends[1]).any()):
        call.refuse("whose lower end is above its upper end")
    return ClipOp(*ends, whole=value.whole), (value,)


@register(
    aten.clamp.default,
    aten.clamp.Tensor,
    aten.clamp_min.default,
    aten.clamp_min.Tensor,
    aten.clamp_max.default,
    aten.clamp_max.Tensor,
)
def _clamp(call: Call) -> Made:
    return _clip(call, "min", "max")


@register(aten.hardtanh.default)
def _hardtanh(call: Call) -> Made:
    return _clip(call, "min_val", "max_val")


@register(aten.hardtanh_backward.default)
def _hardtanh_backward(call: Call) -> Made:
    value = call.value("self", grouped=True)
    ends = _ends(call, value, "min_val", "max_val")
    inputs = call.value("grad_output", grouped=True), value
    return ClipBackwardOp(*ends, inclusive=False), inputs


@register(
    aten.ge.Scalar,
    aten.ge.Tensor,
    aten.gt.Scalar,
    aten.gt.Tensor,
    aten.le.Scalar,
    aten.le.Tensor,
    aten.lt.Scalar,
    aten.lt.Tensor,
)
def _compare(call: Call) -> Made:
    value = call.value("self", grouped=True)
    inclusive = call.name in ("ge", "le")
    least, most = ("other", "") if call.name in ("ge", "gt") else ("", "other")
    return Comparison(value, *_ends(call, value, least, most), inclusive)


@register(aten.logical_and.default, aten.bitwise_and.Tensor)
def _both(call: Call) -> Made:
    a, b = call["self"], call["other"]
    if not (isinstance(a, Comparison) and isinstance(b, Comparison)):
        call.refuse("of what is not two comparisons")
    if a.value.index != b.value.index or a.inclusive != b.inclusive:
        call.refuse("of comparisons of two values")
    least, most = torch.maximum(a.least, b.least), torch.minimum(a.most, b.most)
    return Comparison(a.value, least, most, a.inclusive)


@register(aten.where.self)
def _where(call: Call) -> Made:
    """The backward pass of a clamp: the gradient where a comparison holds, else 0."""
    chosen = call["condition"]
    if not isinstance(chosen, Comparison):
        call.refuse("by what is not a comparison with numbers")
    gradient = call.value("self", grouped=True)
    if call.moves("other") or bool((call.over_row("other", gradient) != 0).any()):
        call.refuse("with another value than 0 where the comparison fails")
    if gradient.shape != chosen.value.shape:
        call.refuse("of two shapes")
    if _is_relu(chosen.least, chosen.most):
        return ActivationBackwardOp(curve("relu", 0.0)), (gradient, chosen.value)
    ends = chosen.least, chosen.most
    return ClipBackwardOp(*ends, inclusive=chosen.inclusive), (gradient, chosen.value)
