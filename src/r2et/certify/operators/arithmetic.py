"""Sums and products of two values that both depend on x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, box_product, box_sum
from r2et.certify.bounds.linear_bounds import LinearBound, linear_product, linear_sum
from r2et.certify.bounds.rounding import rounding
from r2et.certify.operators.base import Entries, LinearCombination, Operator
from r2et.certify.operators.linear import Scale
from r2et.certify.operators.registry import Call, Made, Value, aten, register


@dataclass(frozen=True)
class AddOp(LinearCombination):
    """signs[0] * a + signs[1] * b, of one shape."""

    signs: tuple[float, float]
    terms = 4
    name = "add"

    def combined(self, parts: Sequence[Tensor], kind: Entries, *, shift: bool = True) -> Tensor:
        del shift
        one, two = (abs(s) if kind == "absolute" else s for s in self.signs)
        return one * parts[0] + two * parts[1]

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        a, b = inputs
        total = box_sum(a, b, self.signs)
        if not ball.unit:
            return total
        one, two = self.signs
        return total.widened(rounding(4, ball.unit, abs(one) * a.size + abs(two) * b.size))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        a, b = inputs
        return linear_sum(a, b, self.signs, ball)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values
        a, b = jacobians
        return box_sum(a, b, self.signs)

    def adjoint(self, values: Sequence[Box], adjoint: Box) -> list[Box | None]:
        del values
        zero = Box(torch.zeros_like(adjoint.centre))
        return [box_sum(adjoint, zero, (sign, 1.0)) for sign in self.signs]


@dataclass(frozen=True)
class MultiplyOp(Operator):
    """a * b, of shapes that broadcast: gates, and derivatives that torch writes out."""

    name = "mul"

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        a, b = inputs
        product = box_product(a, b)
        if not ball.unit:
            return product
        return product.widened(rounding(4, ball.unit, a.size * b.size))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        a, b = inputs
        return linear_product(a, b, ball)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        a, b = (over_directions(value) for value in values)
        return box_sum(box_product(a, jacobians[1]), box_product(b, jacobians[0]))


def over_directions(box: Box) -> Box:
    """A value's box (B, ...) in a shape that multiplies derivatives (B, n, ...)."""
    return Box(box.centre[:, None], None if box.spread is None else box.spread[:, None])


@register(aten.add.Tensor, aten.add.Scalar)
def _add(call: Call) -> Made:
    return _signed_sum(call, (1.0, float(call["alpha"])))


@register(aten.sub.Tensor, aten.sub.Scalar)
def _sub(call: Call) -> Made:
    return _signed_sum(call, (1.0, -float(call["alpha"])))


@register(aten.rsub.Scalar, aten.rsub.Tensor)
def _rsub(call: Call) -> Made:
    return _signed_sum(call, (-float(call["alpha"]), 1.0))


def _signed_sum(call: Call, signs: tuple[float, float]) -> Made:
    """signs[0] * self + signs[1] * other."""
    if call.moves("self") and call.moves("other"):
        a, b = _of_one_shape(call)
        return AddOp(signs), (a, b)
    moving, fixed, sign, shift = "self", "other", *signs
    if not call.moves("self"):
        moving, fixed, sign, shift = "other", "self", signs[1], signs[0]
    value = call.expanded(moving, whole=True)
    offset = shift * call.over_row(fixed, value)
    scale = Scale(torch.tensor(sign, dtype=offset.dtype), offset, whole=value.whole)
    return scale, (value,)


def _of_one_shape(call: Call) -> tuple[Value, Value]:
    return call.expanded("self"), call.expanded("other")


@register(aten.mul.Tensor, aten.mul.Scalar)
def _mul(call: Call) -> Made:
    if call.moves("self") and call.moves("other"):
        return MultiplyOp(), _of_one_shape(call)
    moving, fixed = ("self", "other") if call.moves("self") else ("other", "self")
    value = call.expanded(moving)
    return Scale(call.over_row(fixed, value)), (value,)


@register(aten.neg.default)
def _neg(call: Call) -> Made:
    return Scale(torch.tensor(-1.0, dtype=torch.float64)), (call.value("self", grouped=True),)
