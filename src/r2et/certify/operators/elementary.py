"""Elementary functions, as derivatives are written out in them: sin, cos, exp, log, powers, div."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from r2et.certify.operators.activation import ActivationOp
from r2et.certify.operators.arithmetic import MultiplyOp
from r2et.certify.operators.curve import Curve, Function
from r2et.certify.operators.curves import CURVES, curve
from r2et.certify.operators.linear import Scale
from r2et.certify.operators.registry import Call, Made, aten, functional_twin, register


def wave(quarters: int) -> Curve:
    """sin(z), or cos(z) for one quarter of a turn."""

    def derivative(order: int) -> Function:
        turn, sign = (order + quarters) % 4, 1.0
        sign, function = (-1.0 if turn > 1 else 1.0), (torch.cos if turn % 2 else torch.sin)
        return lambda z: sign * function(z)

    def turns(order: int) -> tuple[float, ...]:
        start = (1 - order - quarters) * math.pi / 2  # where sin(z + quarters) is 1
        return start, start + math.pi

    return Curve(
        "cos" if quarters else "sin",
        tuple(derivative(order) for order in range(4)),
        tuple(turns(order) for order in range(4)),
        period=2 * math.pi,
        value_terms=0.0,
    )


def exponential() -> Curve:
    return Curve("exp", (torch.exp,) * 4, ((),) * 4, value_terms=0.0, derivative_ulps=0.0)


def logarithm() -> Curve:
    """Of positive numbers."""

    def derivative(order: int) -> Function:
        sign = -1.0 if order == 2 else float(order - 1 or 1)
        return lambda z: torch.where(z > 0, sign * z**-order, torch.nan)

    curves = (torch.log, *(derivative(order) for order in (1, 2, 3)))
    return Curve("log", curves, ((),) * 4, value_terms=0.0)


def power(exponent: float) -> Curve:
    """z to a number: of positive z only, unless it is whole; not at 0, where it is negative."""
    whole = exponent == int(exponent)

    def derivative(order: int) -> Function:
        factor = math.prod(exponent - m for m in range(order))
        if factor == 0:
            return torch.zeros_like
        if exponent == order:
            return lambda z: torch.full_like(z, factor)
        return lambda z: factor * z ** (int(exponent) - order if whole else exponent - order)

    return Curve(
        "pow",
        tuple(derivative(order) for order in range(4)),
        ((0.0,),) * 4 if whole and exponent > 0 else ((),) * 4,
        value_terms=0.0,
        derivative_ulps=0.0,
        pole=0.0 if exponent < 0 else None,
    )


CURVES |= {"wave": wave, "exp": exponential, "log": logarithm, "pow": power}


def _power(call: Call) -> Curve:
    exponent = call.constant("exponent")
    if isinstance(exponent, Tensor) and (exponent.ndim or exponent.requires_grad):
        call.refuse("with an exponent that is not a number")
    return curve("pow", float(exponent))


ELEMENTARY: dict[Any, Callable[[Call], Curve]] = {
    aten.sin.default: lambda _: curve("wave", 0),
    aten.cos.default: lambda _: curve("wave", 1),
    aten.exp.default: lambda _: curve("exp"),
    aten.log.default: lambda _: curve("log"),
    aten.sqrt.default: lambda _: curve("pow", 0.5),
    aten.rsqrt.default: lambda _: curve("pow", -0.5),
    aten.reciprocal.default: lambda _: curve("pow", -1.0),
    aten.square.default: lambda _: curve("pow", 2.0),
    aten.pow.Tensor_Scalar: _power,
}


@register(*ELEMENTARY)
def _elementary(call: Call) -> Made:
    twin = call.target if call.target in ELEMENTARY else functional_twin(call.target)
    return ActivationOp(ELEMENTARY[twin](call)), (call.value("self", grouped=True),)


@register(aten.div.Tensor, aten.div.Scalar)
def _div(call: Call) -> Made:
    if not call.moves("other"):
        value = call.expanded("self")
        return Scale(1 / call.over_row("other", value)), (value,)
    below = call.value("other", grouped=True)
    inverse = call.add(ActivationOp(curve("pow", -1.0)), (below,), below.layout)
    inverse = inverse if inverse.layout == call.layout else call.expand(inverse, call.layout)
    if call.moves("self"):
        return MultiplyOp(), (call.expanded("self"), inverse)
    return Scale(call.over_row("self", inverse)), (inverse,)
