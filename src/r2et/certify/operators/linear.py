"""Operators that are linear in what they are given: products with weights, scales, means, moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from r2et.certify.operators.base import Entries, LinearOperator, Shape, entries
from r2et.certify.operators.registry import (
    Call,
    Made,
    RowConstant,
    Transposed,
    Value,
    aten,
    call_by_name,
    register,
)


@dataclass(frozen=True)
class Dense(LinearOperator):
    """W v + b over the last dimension.

    weight: (out, in), or (in, out) where it is transposed.
    """

    weight: Tensor
    bias: Tensor | None = None
    transposed: bool = False
    name = "linear"

    @property
    def matrix(self) -> Tensor:
        """W (out, in)."""
        return self.weight.t() if self.transposed else self.weight

    @property
    def terms(self) -> int:  # type: ignore[override]
        return self.matrix.shape[1]

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        return F.linear(v, entries(self.matrix, kind))

    def shift(self) -> Tensor | None:
        return self.bias


@dataclass(frozen=True)
class ConvGeometry:
    """stride, padding, dilation: one number for each direction. See torch.nn.functional.conv2d."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool
    output_padding: list[int]
    groups: int


@dataclass(frozen=True)
class Conv(LinearOperator):
    """A convolution with zero padding, in one to three directions, transposed or not."""

    weight: Tensor
    bias: Tensor | None
    geometry: ConvGeometry
    name = "convolution"

    @property
    def terms(self) -> int:  # type: ignore[override]
        per_output = self.weight[0].numel()
        return self.weight[:, 0].numel() if self.geometry.transposed else per_output

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        s, weight = self.geometry, entries(self.weight, kind)
        moved: Tensor = torch.ops.aten.convolution(
            v,
            weight,
            None,
            s.stride,
            s.padding,
            s.dilation,
            s.transposed,
            s.output_padding,
            s.groups,
        )
        return moved

    def shift(self) -> Tensor | None:
        directions = self.weight.ndim - 2
        return None if self.bias is None else self.bias.view(-1, *[1] * directions)


@dataclass(frozen=True)
class ConvBackward(LinearOperator):
    """The gradient of a convolution by its input, from that by its output.

    shape: of one input of the convolution.
    """

    weight: Tensor
    geometry: ConvGeometry
    shape: Shape
    name = "convolution_backward"

    @property
    def terms(self) -> int:  # type: ignore[override]
        per_input = self.weight[:, 0].numel()
        return self.weight[0].numel() if self.geometry.transposed else per_input

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        s, weight = self.geometry, entries(self.weight, kind)
        moved: Tensor = torch.ops.aten.convolution_backward(
            v,
            v.new_empty(1).expand(len(v), *self.shape),
            weight,
            None,
            s.stride,
            s.padding,
            s.dilation,
            s.transposed,
            s.output_padding,
            s.groups,
            [True, False, False],
        )[0]
        return moved


@dataclass(frozen=True)
class Scale(LinearOperator):
    """factor * v + offset: numbers, or a normalisation in eval mode.

    offset_size: what the float evaluation adds and subtracts beside factor * v, at most.
    """

    factor: Tensor
    offset: Tensor | None = None
    offset_size: Tensor | None = None
    whole: bool = False
    terms = 4
    local = True
    name = "scale"

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        return v * entries(self.factor, kind)

    def shift(self) -> Tensor | None:
        return self.offset

    def shift_size(self) -> Tensor | None:
        return super().shift_size() if self.offset_size is None else self.offset_size


@dataclass(frozen=True)
class Move(LinearOperator):
    """The same numbers in another order or shape, some of them left out or repeated.

    function: (B, ...) -> (B, ...), for any B.
    local: no number is repeated. Of repeated ones a later sum moves by more than by a norm.
    """

    function: Callable[[Tensor], Tensor]
    local: bool = True
    whole: bool = False
    terms = 0
    name = "move"

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:  # noqa: ARG002
        return self.function(v)


@dataclass(frozen=True)
class WeightedSum(LinearOperator):
    """A sum or mean over windows or positions, no weight of which is outside 0..1.

    function: (B, ...) -> (B, ...), for any B. terms: the longest of its sums.
    """

    function: Callable[[Tensor], Tensor]
    terms: int = 1
    name = "sum"

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:  # noqa: ARG002
        # W * W <= W for these weights: enough for an upper bound.
        return self.function(v)


@register(aten.mm.default)
def _mm(call: Call) -> Made:
    value = _in_rows(call, "self")
    return _dense(call, None), (value,)


@register(aten.addmm.default)
def _addmm(call: Call) -> Made:
    if call["beta"] != 1 or call["alpha"] != 1:
        call.refuse("with beta or alpha")
    value = _in_rows(call, "mat1")
    bias = call.constant("self")
    if isinstance(bias, RowConstant):
        if bias.layout.axis or bias.layout.groups != value.groups:
            call.refuse("with a constant in other rows")
        bias = bias.row
    elif bias.ndim > 1:
        if len(bias) != 1:
            call.refuse("with a bias for each row")
        bias = bias[0]
    return _dense(call, bias), (value,)


def _in_rows(call: Call, name: str) -> Value:
    value = call.value(name, grouped=True)
    if value.axis:
        call.refuse("of rows that are not along the first dimension")
    return value


def _dense(call: Call, bias: Tensor | None) -> Dense:
    """v @ mat2 + bias; a layer's weight stands there transposed."""
    matrix = call.constant("mat2")
    if isinstance(matrix, Transposed):
        return Dense(matrix.tensor, bias)
    return Dense(matrix, bias, transposed=True)


def _conv_geometry(call: Call) -> ConvGeometry:
    names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    return ConvGeometry(*(call[name] for name in names))


@register(aten.convolution.default)
def _convolution(call: Call) -> Made:
    value = call.value("input")
    bias = call.constant("bias")
    return Conv(call.constant("weight"), bias, _conv_geometry(call)), (value,)


@register(aten.convolution_backward.default)
def _convolution_backward(call: Call) -> Made:
    value, weight = call.value("grad_output"), call.constant("weight")
    shape = call["input"].shape if call.moves("input") else tuple(call["input"].shape[1:])
    return ConvBackward(weight, _conv_geometry(call), shape), (value,)


def _norm_factor(call: Call) -> tuple[Tensor, tuple[int, ...]]:
    """1 / deviation, times the weight if there is one, and the shape in which it scales a row."""
    # Of an operation that is for evaluation alone, which older torch calls, the schema has neither.
    if any(call.arguments.get(name) for name in ("train", "training")):
        call.refuse("by the batch's own statistics")
    variance, weight = call.constant("running_var"), call.constant("weight")
    factor = (variance + call["eps"]).rsqrt()
    factor = factor if weight is None else factor * weight
    return factor, (-1, *[1] * (len(call.shape) - 1))


@register(aten.native_batch_norm.default, aten._native_batch_norm_legit_no_training.default)
def _batch_norm(call: Call) -> Made:
    factor, shape = _norm_factor(call)
    bias, offset = call.constant("bias"), -call.constant("running_mean") * factor
    size = offset.abs()
    if bias is not None:
        offset, size = offset + bias, size + bias.abs()
    scale = Scale(factor.view(shape), offset.view(shape), size.view(shape))
    return scale, (call.value("input"),)


@register(aten.native_batch_norm_backward.default)
def _batch_norm_backward(call: Call) -> Made:
    factor, shape = _norm_factor(call)
    return Scale(factor.view(shape)), (call.value("grad_out"),)


@register(
    aten.detach.default,
    aten.clone.default,
    aten.alias.default,
    aten.contiguous.default,
    aten.lift_fresh_copy.default,
)
def _same(call: Call) -> Made:
    return call.value("self", grouped=True, whole=True)


@register(aten.copy_.default)
def _copied_over(call: Call) -> Made:
    source = call.value("src", grouped=True)
    if source.shape != call.shape:
        call.refuse("that changes the shape")
    return source


@register(
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
)
def _view(call: Call) -> Made:
    value = call.value("self", grouped=True, whole=True)
    before, after = value.layout, call.layout

    def function(v: Tensor) -> Tensor:
        return after.from_torch(before.to_torch(v).reshape(after.sizes(len(v))))

    return Move(function, whole=value.whole), (value,)


@register(
    aten.t.default,
    aten.transpose.int,
    aten.permute.default,
    aten.select.int,
    aten.slice.Tensor,
)
def _move(call: Call) -> Made:
    value = call.value("self", grouped=True, whole=True)
    return Move(call.at_rows("self"), whole=value.whole), (value,)


@register(aten.expand.default, aten.repeat.default)
def _expand(call: Call) -> Made:
    value = call.value("self", grouped=True, whole=True)
    return Move(call.at_rows("self"), local=False, whole=value.whole), (value,)


@register(aten.select_backward.default, aten.slice_backward.default)
def _move_back(call: Call) -> Made:
    return Move(call.at_rows("grad_output")), (call.value("grad_output", grouped=True),)


@register(aten.mean.dim, aten.sum.dim_IntList)
def _sum(call: Call) -> Made:
    value = call.value("self", grouped=True)
    dims = [value.layout.row_dim(d) for d in call["dim"] or []]
    if not dims or None in dims:
        call.refuse("over rows")
    if call["dtype"] is not None:
        call.refuse("with a dtype")
    count = math.prod(value.shape[d - 1] for d in dims if d is not None)
    return WeightedSum(call.at_rows("self"), count), (value,)


@register(aten.avg_pool2d.default)
def _avg_pool(call: Call) -> Made:
    return WeightedSum(call.at_rows("self"), _window(call)), (call.value("self"),)


@register(aten.avg_pool2d_backward.default)
def _avg_pool_backward(call: Call) -> Made:
    return _pool_backward(call, _window(call))


def _window(call: Call) -> int:
    if (call["divisor_override"] or 1) < 0:
        call.refuse("with a negative divisor")
    kernel = call["kernel_size"]
    return int(math.prod(kernel)) if len(kernel) > 1 else kernel[0] ** 2


@register(aten._adaptive_avg_pool2d.default)
def _adaptive_pool(call: Call) -> Made:
    value = call.value("self")
    return WeightedSum(call.at_rows("self"), _most_in_a_window(value.shape, call.shape)), (value,)


@register(aten._adaptive_avg_pool2d_backward.default)
def _adaptive_pool_backward(call: Call) -> Made:
    # A place is in as many windows as a window would hold places, were sizes the other way round.
    return _pool_backward(call, _most_in_a_window(call.value("grad_output").shape, call.shape))


def _most_in_a_window(before: Shape, after: Shape) -> int:
    sizes = zip(before[-2:], after[-2:], strict=True)
    return math.prod(math.ceil(a / b) + 1 for a, b in sizes)


def _pool_backward(call: Call, terms: int) -> Made:
    """The backward pass of a mean over windows: of its input it needs the shape alone."""
    gradient, shape = call.value("grad_output"), call["self"].shape
    others = {k: v for k, v in call.arguments.items() if k not in ("grad_output", "self")}

    def function(v: Tensor) -> Tensor:
        given = {"grad_output": v, "self": v.new_empty(1).expand(len(v), *shape), **others}
        made: Tensor = call_by_name(call.target, given)
        return made

    return WeightedSum(function, terms), (gradient,)
