"""Operations that are several others at once: GLU, PReLU, Hardsigmoid, Hardswish."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.operators.activation import ActivationBackwardOp, ActivationOp
from r2et.certify.operators.arithmetic import AddOp, MultiplyOp
from r2et.certify.operators.base import Operator
from r2et.certify.operators.clip import ClipBackwardOp, ClipOp
from r2et.certify.operators.curves import curve
from r2et.certify.operators.joining import CatOp
from r2et.certify.operators.linear import Move, Scale
from r2et.certify.operators.registry import Call, Layout, Made, RowConstant, Value, aten, register

SUM = AddOp((1.0, 1.0))


def _halves(call: Call, dim: int) -> tuple[Value, Value]:
    """self, cut in two along a dimension of (B, ...)."""
    value = call.value("self", grouped=True)
    size = value.shape[dim - 1] // 2
    shape = (*value.shape[: dim - 1], size, *value.shape[dim:])
    layout = Layout(shape, value.groups, value.axis)
    first = call.add(Move(lambda v: v.narrow(dim, 0, size)), (value,), layout)
    return first, call.add(Move(lambda v: v.narrow(dim, size, size)), (value,), layout)


def _glu_dim(call: Call) -> int:
    dim = call.value("self", grouped=True).layout.row_dim(call["dim"])
    if dim is None:
        call.refuse("across rows")
    return dim


@register(aten.glu.default)
def _glu(call: Call) -> Made:
    """a sigmoid(b)."""
    a, b = _halves(call, _glu_dim(call))
    return MultiplyOp(), (a, call.add(ActivationOp(curve("sigmoid")), (b,), b.layout))


@register(aten.glu_backward.default)
def _glu_backward(call: Call) -> Made:
    """g sigmoid(b) beside g a sigmoid'(b)."""
    dim = _glu_dim(call)
    a, b = _halves(call, dim)
    gradient = call.value("grad_output", grouped=True)
    gate = call.add(ActivationOp(curve("sigmoid")), (b,), b.layout)
    first = call.add(MultiplyOp(), (gradient, gate), a.layout)
    weighted = call.add(MultiplyOp(), (gradient, a), a.layout)
    second = call.add(ActivationBackwardOp(curve("sigmoid")), (weighted, b), a.layout)
    return CatOp(dim, (None, None)), (first, second)


def _prelu_slope(call: Call, value: Value) -> Tensor:
    """The slope of what is below 0, in a shape that broadcasts over rows."""
    weight = call.constant("weight")
    if isinstance(weight, RowConstant):
        call.refuse("with a slope for each row")
    return call.over_row("weight", value)


@register(aten._prelu_kernel.default)
def _prelu(call: Call) -> Made:
    """w z + (1 - w) relu(z)."""
    value = call.value("self", grouped=True)
    slope = _prelu_slope(call, value)
    bent = call.add(ActivationOp(curve("relu", 0.0)), (value,), value.layout)
    line = call.add(Scale(slope), (value,), value.layout)
    return SUM, (line, call.add(Scale(1 - slope), (bent,), value.layout))


@register(aten._prelu_kernel_backward.default)
def _prelu_backward(call: Call) -> Made:
    value, gradient = call.value("self", grouped=True), call.value("grad_output", grouped=True)
    slope = _prelu_slope(call, value)
    relu: Operator = ActivationBackwardOp(curve("relu", 0.0))
    bent = call.add(relu, (gradient, value), value.layout)
    line = call.add(Scale(slope), (gradient,), value.layout)
    return SUM, (line, call.add(Scale(1 - slope), (bent,), value.layout))


def _number(call: Call, number: float) -> Tensor:
    return torch.tensor(number, dtype=call.weights_dtype)


def _hard_share(call: Call, value: Value) -> Value:
    """(z + 3) / 6, held between 0 and 1."""
    clip = ClipOp(_number(call, -3.0), _number(call, 3.0))
    held = call.add(clip, (value,), value.layout)
    return call.add(Scale(_number(call, 1 / 6), _number(call, 0.5)), (held,), value.layout)


@register(aten.hardsigmoid.default)
def _hardsigmoid(call: Call) -> Made:
    return _hard_share(call, call.value("self", grouped=True))


@register(aten.hardsigmoid_backward.default)
def _hardsigmoid_backward(call: Call) -> Made:
    value, gradient = call.value("self", grouped=True), call.value("grad_output", grouped=True)
    mask = ClipBackwardOp(_number(call, -3.0), _number(call, 3.0), inclusive=False)
    passed = call.add(mask, (gradient, value), value.layout)
    sixth = torch.tensor(1 / 6).to(call.weights_dtype)  # of float32 in every precision, as torch's
    return Scale(sixth), (passed,)


@register(aten.hardswish.default)
def _hardswish(call: Call) -> Made:
    value = call.value("self", grouped=True)
    return MultiplyOp(), (value, _hard_share(call, value))


@register(aten.hardswish_backward.default)
def _hardswish_backward(call: Call) -> Made:
    """g (z / 3 + 1 / 2) between -3 and 3, g above."""
    value, gradient = call.value("self", grouped=True), call.value("grad_output", grouped=True)
    layout, three = value.layout, _number(call, 3.0)
    line = call.add(Scale(_number(call, 1 / 3), _number(call, 0.5)), (value,), layout)
    inner = call.add(MultiplyOp(), (gradient, line), layout)
    between = ClipBackwardOp(-three, three, inclusive=False)
    above = ClipBackwardOp(three, _number(call, torch.inf), inclusive=True)
    one = call.add(between, (inner, value), layout)
    return SUM, (one, call.add(above, (gradient, value), layout))
