"""Activations: a curve applied to each entry, and a gradient times the curve's derivative."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, added, between, box_product, box_sum
from r2et.certify.bounds.linear_bounds import (
    LinearBound,
    linear_bound,
    linear_product,
    off_line,
)
from r2et.certify.bounds.rounding import rounding
from r2et.certify.operators.arithmetic import over_directions
from r2et.certify.operators.base import Operator
from r2et.certify.operators.curve import Curve
from r2et.certify.operators.curves import curve
from r2et.certify.operators.registry import Call, Made, aten, functional_twin, register

LOWEST_THRESHOLD = 15.0  # of a Softplus: where torch goes over to the identity


@dataclass(frozen=True)
class ActivationOp(Operator):
    """sigma(z)."""

    curve: Curve

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.curve.name

    @property
    def kinked(self) -> bool:  # type: ignore[override]
        return jumps(self.curve)

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        (z,) = inputs
        if z.spread is None:
            return Box(self.curve.curves[0](z.centre))
        value = between(*self.curve.range(0, z.low, z.high))
        return value.widened(value_noise(self.curve, ball, value, z.size)) if ball.unit else value

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        (z,) = inputs
        return curve_bound(self.curve, 0, z, ball, side if self.curve.piecewise_linear else None)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        (z,) = values
        return box_product(over_directions(derivative_box(self.curve, 1, z)), jacobians[0])


@dataclass(frozen=True)
class ActivationBackwardOp(Operator):
    """g sigma'(z), from the gradient g by the activation's output, and its input z."""

    curve: Curve
    name = "activation_backward"

    @property
    def kinked(self) -> bool:  # type: ignore[override]
        return jumps(self.curve)

    def derivative(self, ball: Ball, z: Box) -> Box:
        """The box of sigma'(z)."""
        curve = self.curve
        if z.spread is None:
            return Box(curve.curves[1](z.centre))
        if ball.soft and curve.piecewise_linear:
            return Box(*soft_steps(z.low, z.high, curve.left[1], curve.right[1], ball.soft))
        slope = between(*curve.range(1, z.low, z.high))
        if not ball.unit:
            return slope
        noise = derivative_noise(curve, ball, z.size)
        return slope.widened(noise + rounding(4, ball.unit, slope.size))

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        gradient, z = inputs
        product = box_product(gradient, self.derivative(ball, z))
        return product.widened(rounding(4, ball.unit, product.size)) if ball.unit else product

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        gradient, z = inputs
        return linear_product(gradient, self.derivative_bound(ball, z, side), ball)

    def derivative_bound(self, ball: Ball, z: LinearBound, side: Tensor | None) -> LinearBound:
        """The linear bound of sigma'(z)."""
        return curve_bound(self.curve, 1, z, ball, side if self.curve.piecewise_linear else None)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        gradient, z = values
        slope = over_directions(derivative_box(self.curve, 1, z))
        bend = over_directions(box_product(gradient, derivative_box(self.curve, 2, z)))
        return box_sum(box_product(slope, jacobians[0]), box_product(bend, jacobians[1]))

    def adjoint(self, values: Sequence[Box], adjoint: Box) -> list[Box | None]:
        _, z = values
        return [box_product(over_directions(derivative_box(self.curve, 1, z)), adjoint), None]


def jumps(curve: Curve) -> bool:
    """Whether the derivative has two values at the kink."""
    return curve.kink is not None and curve.left[1] != curve.right[1]


def derivative_box(curve: Curve, order: int, z: Box) -> Box:
    """The box of a derivative over that of z, without rounding."""
    if z.spread is None:
        return Box(curve.curves[order](z.centre))
    return between(*curve.range(order, z.low, z.high))


def value_noise(curve: Curve, ball: Ball, value: Box, size: Tensor) -> Tensor:
    """What a float evaluation of sigma(z) may be off by, for |z| up to size."""
    noise = rounding(8, ball.unit, value.size + curve.value_terms * size)
    return noise + ball.unit * curve.derivative_ulps + curve.formula_jump


def derivative_noise(curve: Curve, ball: Ball, size: Tensor) -> Tensor:
    """What a float evaluation of sigma'(z) may be off by, for |z| up to size."""
    ulps = curve.derivative_ulps + curve.derivative_ulps_per_z * size
    return ball.unit * ulps + curve.formula_jump


def curve_bound(
    curve: Curve, order: int, z: LinearBound, ball: Ball, side: Tensor | None = None
) -> LinearBound:
    """sigma (order 0) or its derivative (1) of a linear bound: a line and what it leaves.

    side: 1 or -1 where a unit is known to be right or left of its kink, 0 elsewhere.
    """
    if ball.symbols is not None and not curve.piecewise_linear:
        return _parabola_bound(curve, order, z, ball)
    low, high = z.low, z.high
    if side is not None:
        side = side.view(z.centre.shape)
        # Beyond the kink by a hair at most, where a float evaluation may be on the other side.
        low = torch.where(side > 0, low.clamp(min=0), low)
        high = torch.where(side < 0, high.clamp(max=0), torch.maximum(high, low))
        low = torch.minimum(low, high)
    rate, least, most = curve.line(order, low, high)
    bottom, top = curve.range(order, low, high)
    if side is not None:
        known = side != 0
        slope = torch.where(side > 0, curve.right[1], curve.left[1]).to(low)
        rate = torch.where(known, slope if order == 0 else 0.0, rate)
        constant = torch.zeros_like(slope) if order == 0 else slope
        least, most = torch.where(known, constant, least), torch.where(known, constant, most)
        if order == 1:
            bottom, top = torch.where(known, least, bottom), torch.where(known, most, top)
    middle, wide = (least + most) / 2, (most - least) / 2
    box = between(bottom, top)
    if order == 0:
        noise = value_noise(curve, ball, box, z.size)
    else:
        noise = derivative_noise(curve, ball, z.size)
    noise = noise + rounding(8, ball.unit, box.size + rate.abs() * z.size)
    return linear_bound(
        rate * z.centre + middle,
        rate[:, None] * z.slope,
        rate.abs() * z.spread + wide + noise,
        ball,
        Box(box.centre, added(box.spread, noise)),
    )


def _parabola_bound(curve: Curve, order: int, z: LinearBound, ball: Ball) -> LinearBound:
    """The same by a parabola: the square of what z is along the change becomes a symbol.

    With z - m = S . e + d: (z - m)^2 = (S . e)^2 + d (z - m + S . e), m the middle of z's interval.
    """
    symbols = ball.symbols
    assert symbols is not None
    middle, half = (z.low + z.high) / 2, (z.high - z.low) / 2
    rate, bend, least, most = curve.parabola(order, z.low, z.high)
    along = z.slope[:, : symbols.inputs]
    moved, off = ball.moved(along), off_line(z, middle, ball)
    rest = bend.abs() * torch.minimum(off, half + moved) * (half + moved)
    box = between(*curve.range(order, z.low, z.high))
    if order == 0:
        noise = value_noise(curve, ball, box, z.size)
    else:
        noise = derivative_noise(curve, ball, z.size)
    sizes = box.size + rate.abs() * (z.size + middle.abs()) + bend.abs() * (half + moved).square()
    noise = noise + rounding(8, ball.unit, sizes)
    slope, gained = symbols.with_products(
        rate[:, None] * z.slope, along, bend[:, None] * along, ball, square=True
    )
    return linear_bound(
        rate * (z.centre - middle) + (least + most) / 2 + gained,
        slope,
        rate.abs() * z.spread + (most - least) / 2 + rest + noise,
        ball,
        Box(box.centre, added(box.spread, noise)),
    )


def soft_step(z: Tensor, left: float, right: float, width: float) -> Tensor:
    """left up to 0, right above, with the gradient of a sigmoid this wide."""
    return soft_steps(z, z, left, right, width)[0]


def soft_steps(
    low: Tensor, high: Tensor, left: float, right: float, width: float
) -> tuple[Tensor, Tensor]:
    """Middle and half width of a step's values over low..high: left up to 0, right above.

    With the gradient of a sigmoid this wide.
    """
    box: tuple[Tensor, Tensor] = _SoftSteps.apply(low, high, left, right, width)  # type: ignore[no-untyped-call]
    return box


class _SoftSteps(torch.autograd.Function):
    """A step at 0, with the gradient of a sigmoid: how a unit that switches learns not to."""

    @staticmethod
    def forward(
        ctx: Any, low: Tensor, high: Tensor, left: float, right: float, width: float
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(low, high)
        ctx.jump, ctx.width = right - left, width
        a, b = (low > 0).to(low), (high > 0).to(low)
        half = abs(right - left) / 2
        return (a + b).mul_((right - left) / 2).add_(left), (b - a).mul_(half)

    @staticmethod
    def backward(
        ctx: Any, by_middle: Tensor, by_half: Tensor
    ) -> tuple[Tensor, Tensor, None, None, None]:
        by_half = by_half if ctx.jump > 0 else -by_half
        slopes = []
        for z, gradient in zip(
            ctx.saved_tensors, (by_middle - by_half, by_middle + by_half), strict=True
        ):
            share = torch.sigmoid(z / ctx.width)
            slopes.append(torch.addcmul(share, share, share, value=-1.0) * gradient)
        factor = ctx.jump / (2 * ctx.width)
        return slopes[0].mul_(factor), slopes[1].mul_(factor), None, None, None


def _softplus_curve(call: Call) -> Curve:
    beta, threshold = float(call["beta"]), float(call["threshold"])
    # Up to the threshold torch takes exp(beta z), which must not overflow.
    most = math.floor(math.log(torch.finfo(call.dtype).max)) - 1
    if not beta > 0 or not LOWEST_THRESHOLD <= threshold <= most:
        given = f"with beta {beta:g} and threshold {threshold:g}"
        call.refuse(f"{given} (beta above 0, threshold in {LOWEST_THRESHOLD:g}..{most})")
    return curve("softplus", beta, 1.0, 0.0, threshold)


def _elu_curve(call: Call) -> Curve:
    alpha, scale, rate = (float(call[name]) for name in ("alpha", "scale", "input_scale"))
    if not (scale > 0 and rate > 0):
        call.refuse("with a scale that is not positive")
    return curve("elu", alpha, scale, rate)


def _celu_curve(call: Call) -> Curve:
    alpha = float(call["alpha"])
    return curve("elu", alpha, 1.0, 1 / alpha)


def _leaky_curve(call: Call) -> Curve:
    return curve("leaky_relu", float(call["negative_slope"]))


FORWARD: dict[Any, Callable[[Call], Curve]] = {
    aten.relu.default: lambda _: curve("relu", 0.0),
    aten.leaky_relu.default: _leaky_curve,
    aten.softplus.default: _softplus_curve,
    aten.tanh.default: lambda _: curve("tanh"),
    aten.sigmoid.default: lambda _: curve("sigmoid"),
    aten.elu.default: _elu_curve,
    aten.celu.default: _celu_curve,
    aten.mish.default: lambda _: curve("mish"),
    aten.silu.default: lambda _: curve("silu"),
    aten.gelu.default: lambda call: curve("gelu", str(call["approximate"])),
}


@register(*FORWARD)
def _activation(call: Call) -> Made:
    twin = call.target if call.target in FORWARD else functional_twin(call.target)
    return ActivationOp(FORWARD[twin](call)), (call.value("self", grouped=True),)


# Of each backward operation: its curve, and the argument that holds the activation's input.
BACKWARD: dict[Any, tuple[Callable[[Call], Curve], str]] = {
    aten.leaky_relu_backward.default: (_leaky_curve, "self"),
    aten.softplus_backward.default: (_softplus_curve, "self"),
    aten.silu_backward.default: (lambda _: curve("silu"), "self"),
    aten.mish_backward.default: (lambda _: curve("mish"), "self"),
    aten.gelu_backward.default: (lambda call: curve("gelu", str(call["approximate"])), "self"),
    aten.elu_backward.default: (_elu_curve, "self_or_result"),
}
# Those that may, or always do, take the activation's output instead, and who may have made it.
FROM_RESULT: dict[Any, tuple[str, tuple[str, ...]]] = {
    aten.leaky_relu_backward.default: ("self", ("leaky_relu", "relu")),
    aten.elu_backward.default: ("self_or_result", ("elu",)),
    aten.threshold_backward.default: ("self", ("relu",)),
    aten.tanh_backward.default: ("output", ("tanh",)),
    aten.sigmoid_backward.default: ("output", ("sigmoid",)),
}


@register(*BACKWARD)
def _backward(call: Call) -> Made:
    if call.arguments.get("is_result") or call.arguments.get("self_is_result"):
        return _from_result(call)
    made, argument = BACKWARD[call.target]
    inputs = call.value("grad_output", grouped=True), call.value(argument, grouped=True)
    return ActivationBackwardOp(made(call)), inputs


@register(
    aten.threshold_backward.default, aten.tanh_backward.default, aten.sigmoid_backward.default
)
def _from_result(call: Call) -> Made:
    """A derivative that torch takes from the activation's own output: by the input instead."""
    if call.arguments.get("threshold", 0) != 0:
        call.refuse("with a threshold other than 0")
    argument, names = FROM_RESULT[call.target]
    made = call.source(argument, ActivationOp)
    assert isinstance(made.operator, ActivationOp)
    if made.operator.curve.name not in names:
        call.refuse(f"of what was not made by {' or '.join(names)}")
    (z,) = made.inputs
    inputs = call.value("grad_output", grouped=True), call.makers[z]
    return ActivationBackwardOp(made.operator.curve), inputs
