"""Max-pooling, and what its windows send back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from r2et.certify.bounds.interval_bounds import Ball, Box, between, box_product
from r2et.certify.bounds.linear_bounds import LinearBound, interval_only
from r2et.certify.bounds.rounding import rounding
from r2et.certify.operators.base import Operator, Shape
from r2et.certify.operators.registry import Call, Made, aten, register


@dataclass(frozen=True)
class Windows:
    """The windows of F.max_pool2d without dilation; shape: of one input (C, H, W)."""

    kernel: Shape
    stride: Shape
    padding: Shape
    shape: Shape

    def largest(self, v: Tensor) -> Tensor:
        return F.max_pool2d(v, self.kernel, self.stride, self.padding)

    def unfold(self, v: Tensor, fill: float) -> Tensor:
        """(B, C, window, positions): what each window looks at, `fill` outside."""
        high, wide = self.padding
        padded = F.pad(v, (wide, wide, high, high), value=fill)
        parts = F.unfold(padded.flatten(0, 1)[:, None], self.kernel, stride=self.stride)
        return parts.view(*v.shape[:2], *parts.shape[1:])

    def fold(self, parts: Tensor) -> Tensor:
        """Sum (B, C, window, positions) back into one input's places: (B, C, H, W)."""
        flat, size = parts.flatten(0, 1), self.shape[1:]
        total = F.fold(flat, size, self.kernel, padding=self.padding, stride=self.stride)
        return total.view(*parts.shape[:2], *size)


@dataclass(frozen=True)
class MaxPoolOp(Operator):
    """The largest of each window; no rounding, and only an interval is left."""

    windows: Windows
    name = "max_pool2d"
    kinked = True

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        del ball
        (box,) = inputs
        if box.spread is None:
            return Box(self.windows.largest(box.centre))
        return between(self.windows.largest(box.low), self.windows.largest(box.high))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (bound,) = inputs
        return interval_only(self.interval(ball, bound.box), bound.slope.shape[1])

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values, jacobians
        raise RuntimeError("a max-pool has no Hessian")


@dataclass(frozen=True)
class MaxPoolBackwardOp(Operator):
    """Each window's gradient goes to its largest entry; to one of them where they tie.

    Its inputs are the gradient by the pool's output, and the pool's input.
    """

    windows: Windows
    name = "max_pool2d_backward"
    kinked = True

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        gradient, value = inputs
        low = self.windows.unfold(value.low, -torch.inf)
        high = self.windows.unfold(value.high, -torch.inf)
        ones = torch.ones_like(low)
        # Not a number, from an overflow, is neither above nor below: it can be the largest.
        never = (high < largest_of_others(low)) | (high == -torch.inf)
        can = torch.where(never, 0.0, ones)
        must = torch.where(low > largest_of_others(high), ones, 0.0)
        flat = Box(
            gradient.centre.flatten(2)[:, :, None],
            None if gradient.spread is None else gradient.spread.flatten(2)[:, :, None],
        )
        parts = box_product(between(must, can), flat)
        assert parts.spread is not None
        received = Box(self.windows.fold(parts.centre), self.windows.fold(parts.spread))
        if not ball.unit:
            return received
        terms = self.windows.kernel[0] * self.windows.kernel[1]
        return received.widened(rounding(terms + 4, ball.unit, self.windows.fold(parts.size)))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        gradient, value = inputs
        return interval_only(self.interval(ball, gradient.box, value.box), gradient.slope.shape[1])

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values, jacobians
        raise RuntimeError("a max-pool has no Hessian")


def largest_of_others(windows: Tensor) -> Tensor:
    """For each entry of a window (B, C, window, positions), the largest of the others."""
    if windows.shape[2] == 1:
        return torch.full_like(windows, -torch.inf)
    top = windows.topk(2, dim=2)
    largest, second = top.values[:, :, :1], top.values[:, :, 1:]
    place = torch.arange(windows.shape[2], device=windows.device).view(1, 1, -1, 1)
    return torch.where(place == top.indices[:, :, :1], second, largest)


def _windows(call: Call, shape: Shape, pooled: Shape) -> Windows:
    kernel = _pair(call["kernel_size"])
    stride = _pair(call["stride"]) if call["stride"] else kernel
    padding, dilation = _pair(call["padding"]), _pair(call["dilation"])
    if dilation != (1, 1) or len(shape) != 3:
        call.refuse("with dilation or of other than (B, C, H, W)")
    sizes = zip(shape[1:], kernel, stride, padding, strict=True)
    if tuple((n + 2 * p - k) // s + 1 for n, k, s, p in sizes) != pooled[1:]:
        call.refuse("with ceil_mode")
    return Windows(kernel, stride, padding, shape)


def _pair(value: list[int]) -> tuple[int, int]:
    return (value[0], value[0]) if len(value) == 1 else (value[0], value[1])


@register(aten.max_pool2d_with_indices.default)
def _max_pool(call: Call) -> Made:
    value = call.value("self")
    return MaxPoolOp(_windows(call, value.shape, call.shape)), (value,)


@register(aten.max_pool2d_with_indices_backward.default)
def _max_pool_backward(call: Call) -> Made:
    value, gradient, indices = call.value("self"), call.value("grad_output"), call["indices"]
    windows = _windows(call, value.shape, gradient.shape)
    pool = indices.operator if indices.output == 1 else None
    if not (isinstance(pool, MaxPoolOp) and pool.windows == windows):
        call.refuse("by the places of another pool")
    if indices.inputs != (value.index,):
        call.refuse("of another value than was pooled")
    return MaxPoolBackwardOp(windows), (gradient, value)
