"""LayerNorm and its backward pass, written out so that what cancels does.

With c = x - mean, r = 1 / sqrt(variance + eps), n = c r and g the gradient times the weight,
y = n weight + bias and dx = r (g - mean(g) - n mean((g - mean(g)) n)). c is linear in x. Torch's
own evaluation sums x and g x instead, which cancels less exactly: what that may lose is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, box_product, box_sum
from r2et.certify.bounds.linear_bounds import LinearBound, linear_bound, linear_product
from r2et.certify.bounds.rounding import limits, rounding
from r2et.certify.operators.activation import ActivationOp
from r2et.certify.operators.arithmetic import AddOp, MultiplyOp, over_directions
from r2et.certify.operators.base import Entries, LinearOperator, Operator
from r2et.certify.operators.curves import curve
from r2et.certify.operators.linear import Scale, WeightedSum
from r2et.certify.operators.registry import Call, Layout, Made, Value, aten, register

SQUARE = ActivationOp(curve("pow", 2.0))


@dataclass(frozen=True)
class CentredOp(LinearOperator):
    """v less its mean over the last dimensions."""

    dims: tuple[int, ...]
    count: int
    name = "centre"

    @property
    def terms(self) -> int:  # type: ignore[override]
        return self.count + 2

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        mean, one = v.mean(self.dims, keepdim=True), 1 / self.count
        if kind == "signed":
            return v - mean
        if kind == "absolute":
            return (1 - 2 * one) * v + mean if self.count > 1 else torch.zeros_like(v)
        return (1 - 2 * one) * v + one * mean if self.count > 1 else torch.zeros_like(v)


@dataclass(frozen=True)
class VarianceOp(Operator):
    """The mean of c^2 over the last dimensions, from c and x."""

    dims: tuple[int, ...]
    count: int
    name = "variance"

    @property
    def mean(self) -> WeightedSum:
        return WeightedSum(lambda v: v.mean(self.dims, keepdim=True), self.count)

    def _noise(self, ball: Ball, variance: Tensor, x: Tensor) -> Tensor:
        """Torch adds up squares of differences from running means, in parts that it then merges.

        A running mean is off by e, at most steps + 1 spacings of the largest |x|: each step adds
        up to 4 halves of one, and the mean over what came before halves what it hands on. The sum
        of (x - m)(x - m') is then off by e times the sizes of its differences, whose squares add
        up to less than 2 N variance: by 2 sqrt(2) N e deviations. A merge adds w (m - m')^2, and
        these add up to less than N variance, the w to N (1 + depth / 4): by four e times the
        root of both. What is of second order in e comes on top.
        """
        steps, most = min(self.count, 64), x.amax(self.dims, keepdim=True)
        off = (steps + 1) * ball.unit * most  # an operation is off by half the spacing
        merges = 1 + math.log2(self.count) / 4
        lost = (2 * math.sqrt(2) + 4 * math.sqrt(merges)) * variance.clamp(min=0).sqrt() * off
        noise = lost + 8 * merges * off.square() + rounding(self.count + 16, ball.unit, variance)
        return torch.where(most.square() <= limits(ball.unit)[1], noise, torch.inf)

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        c, x = inputs
        box = self.mean.interval(ball, SQUARE.interval(ball, c))
        if not ball.unit:
            return box
        return _positive(box.widened(self._noise(ball, box.size, x.size)))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        c, x = inputs
        bound = self.mean.linear(ball, SQUARE.linear(ball, c))
        noise = self._noise(ball, bound.size, x.size)
        box = _positive(bound.box.widened(noise))
        return linear_bound(bound.centre, bound.slope, bound.spread + noise, ball, box)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        return self.mean.jacobian([], [SQUARE.jacobian(values[:1], jacobians[:1])])


def _positive(box: Box) -> Box:
    """Without what is below 0: torch's variance is not."""
    low = box.low.clamp(min=0)
    return Box((low + box.high) / 2, (box.high - low) / 2)


@dataclass(frozen=True)
class NormalisedOp(Operator):
    """c r, from c, r and x."""

    dims: tuple[int, ...]
    count: int
    name = "normalise"

    def _noise(self, ball: Ball, r: Tensor, x: Tensor) -> Tensor:
        """x and its mean, which may be large where their difference is not, times r."""
        return rounding(2 * self.count + 16, ball.unit, (x + x.amax(self.dims, keepdim=True)) * r)

    def _within(self, ball: Ball, box: Box, noise: Tensor | None, r: Tensor, x: Tensor) -> Box:
        """No entry is further than sqrt(count - 1) deviations from the mean; r may be off, too."""
        steps, merges = min(self.count, 64), 1 + math.log2(self.count) / 4
        off = (steps + 1) * ball.unit * x.amax(self.dims, keepdim=True) * r
        off = 8 * merges * (off + off.square()) + (self.count + 32) * ball.unit
        most = math.sqrt(self.count - 1) * (1 + 1e-9 + off) + torch.zeros_like(box.centre)
        most = most if noise is None else most + noise
        low, high = torch.maximum(box.low, -most), torch.minimum(box.high, most)
        return Box((low + high) / 2, (high - low) / 2)

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        c, r, x = inputs
        product = box_product(c, r)
        if product.spread is None:
            return product
        noise = self._noise(ball, r.size, x.size) if ball.unit else None
        wider = product if noise is None else product.widened(noise)
        return self._within(ball, wider, noise, r.size, x.size)

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        c, r, x = inputs
        product, noise = linear_product(c, r, ball), self._noise(ball, r.size, x.size)
        box = self._within(ball, product.box.widened(noise), noise, r.size, x.size)
        return linear_bound(product.centre, product.slope, product.spread + noise, ball, box)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        return MultiplyOp().jacobian(values[:2], jacobians[:2])


@dataclass(frozen=True)
class LayerNormBackwardOp(Operator):
    """r h, from r, h, g, x and c: h is what stands in the brackets, the others are for rounding.

    Torch computes r g + b x + d with b = (mean sum(g) - sum(g x)) r^3 / N and
    d = -b mean - r sum(g) / N.
    """

    dims: tuple[int, ...]
    count: int
    name = "layer_norm_backward"

    def _noise(self, ball: Ball, *sizes: Tensor) -> Tensor:
        r, h, g, x, c = sizes
        unit, terms = ball.unit, self.count + 16
        tiny, huge = limits(unit)
        total = g.sum(self.dims, keepdim=True)
        most, away = x.amax(self.dims, keepdim=True), c.amax(self.dims, keepdim=True)
        mean_off = terms * unit * most
        cube = r**3 / self.count
        sums_off = 2 * terms * unit * total * 2 * most
        b_off = (sums_off + 16 * unit * total * away) * cube
        b = (total * away + sums_off) * cube
        noise = b_off * (away + mean_off) + b * (32 * unit * most + 2 * mean_off)
        noise = noise + tiny * terms * (1 + most) + rounding(4, unit, r * h)
        noise = noise + rounding(terms, unit, r * (g + 2 * total / self.count))
        inside = (b * (1 + most) <= huge) & (total * most <= huge) & (r**3 <= huge)
        return torch.where(inside, noise, torch.inf)

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        product = box_product(inputs[0], inputs[1])
        if not ball.unit:
            return product
        return product.widened(self._noise(ball, *(box.size for box in inputs)))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        product = linear_product(inputs[0], inputs[1], ball)
        noise = self._noise(ball, *(bound.size for bound in inputs))
        box = product.box.widened(noise)
        return linear_bound(product.centre, product.slope, product.spread + noise, ball, box)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        a, b = (over_directions(value) for value in values[:2])
        return box_sum(box_product(a, jacobians[1]), box_product(b, jacobians[0]))


def _extent(call: Call, value: Value) -> tuple[tuple[int, ...], int, Layout]:
    """The dimensions that are normalised, how many numbers these hold, and what a mean is like."""
    size = list(call["normalized_shape"])
    if value.axis >= value.layout.rank - len(size):
        call.refuse("across rows")
    shape = (*value.shape[: len(value.shape) - len(size)], *[1] * len(size))
    dims = tuple(range(-len(size), 0))
    return dims, math.prod(size), Layout(shape, value.groups, value.axis)


def _weighted(call: Call, value: Value, *, bias: bool) -> Value:
    """Times the weight, and with the bias, where there are such."""
    weight, offset = call.constant("weight"), call.constant("bias") if bias else None
    if weight is None and offset is None:
        return value
    factor = torch.tensor(1.0, dtype=call.weights_dtype) if weight is None else weight
    return call.add(Scale(factor, offset), (value,), value.layout)


@register(aten.native_layer_norm.default)
def _layer_norm(call: Call) -> Made:
    value, eps = call.value("input", grouped=True), float(call["eps"])
    dims, count, kept = _extent(call, value)
    if not eps > 0:
        call.refuse("with an eps of 0")
    c = call.add(CentredOp(dims, count), (value,), value.layout)
    mean = WeightedSum(lambda v: v.mean(dims, keepdim=True), count)
    variance = call.add(VarianceOp(dims, count), (c, value), kept)
    one = torch.tensor(1.0, dtype=call.weights_dtype)
    shifted = call.add(Scale(one, eps * one), (variance,), kept)
    inverse = call.add(ActivationOp(curve("pow", -0.5)), (shifted,), kept)
    normalised = call.add(NormalisedOp(dims, count), (c, inverse, value), value.layout)
    return [_weighted(call, normalised, bias=True), call.add(mean, (value,), kept), inverse]


@register(aten.native_layer_norm_backward.default)
def _layer_norm_backward(call: Call) -> Made:
    value, gradient = call.value("input", grouped=True), call.value("grad_out", grouped=True)
    dims, count, kept = _extent(call, value)
    inverse = call.value("rstd", grouped=True)
    normalised = next(
        (
            made
            for made in call.makers.values()
            if made.operator == NormalisedOp(dims, count)
            and made.inputs[1:] == (inverse.index, value.index)
        ),
        None,
    )
    if normalised is None:
        call.refuse("of another value than was normalised")
    c, g = call.makers[normalised.inputs[0]], _weighted(call, gradient, bias=False)
    centred = call.add(CentredOp(dims, count), (g,), g.layout)
    product = call.add(MultiplyOp(), (centred, normalised), value.layout)
    mean = WeightedSum(lambda v: v.mean(dims, keepdim=True), count)
    along = call.add(mean, (product,), kept)
    part = call.add(MultiplyOp(), (normalised, along), value.layout)
    h = call.add(AddOp((1.0, -1.0)), (centred, part), value.layout)
    return LayerNormBackwardOp(dims, count), (inverse, h, g, value, c)
