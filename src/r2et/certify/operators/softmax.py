"""Softmax, log_softmax and logsumexp along a dimension, and their backward passes.

Along a line through z with steps D, the softmax p has p_m'' = p_m ((D_m - mean)^2 - variance),
between -1/4 and 1 times p_m R^2, R the range of the D; logsumexp has the variance, in 0..R^2 / 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, between, box_product, box_sum
from r2et.certify.bounds.linear_bounds import LinearBound, linear_bound
from r2et.certify.bounds.rounding import limits, rounding
from r2et.certify.operators.arithmetic import AddOp, MultiplyOp, over_directions
from r2et.certify.operators.base import Operator
from r2et.certify.operators.linear import Move, WeightedSum
from r2et.certify.operators.registry import Call, Layout, Made, Value, aten, register

DIFFERENCE = AddOp((1.0, -1.0))


def share(mine: Tensor, others: Tensor) -> Tensor:
    """exp(mine_m) / (exp(mine_m) + sum over l != m of exp(others_l)), along the last dimension."""
    eye = torch.eye(mine.shape[-1], dtype=torch.bool, device=mine.device)
    rest = others[..., None, :].masked_fill(eye, -torch.inf).logsumexp(-1)
    return torch.sigmoid(mine - rest)


@dataclass(frozen=True)
class SoftmaxOp(Operator):
    """exp(z_m) / sum of exp(z_l), along a dimension of (B, ...)."""

    dim: int
    name = "softmax"

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        (z,) = inputs
        if z.spread is None:
            return Box(z.centre.softmax(self.dim))
        low, high = z.low.movedim(self.dim, -1), z.high.movedim(self.dim, -1)
        least, most = share(low, high), share(high, low)
        box = between(least.movedim(-1, self.dim), most.movedim(-1, self.dim))
        return box.widened(self._noise(ball, z.size, box.size)) if ball.unit else box

    def _noise(self, ball: Ball, size: Tensor, share: Tensor) -> Tensor:
        """Of z less the largest z, of exp, of the sum; or of exp(log_softmax)."""
        count = size.shape[self.dim]
        largest = size.amax(self.dim, keepdim=True)
        # A share below the normal numbers is good to one of their spacings only.
        least = limits(ball.unit)[0] / ball.unit
        terms = count + 32 * (1 + largest + math.log(count))
        noise = ball.unit * terms * (share + least)
        return torch.where(largest <= limits(ball.unit)[1], noise, torch.inf)

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (z,) = inputs
        # The line from the centre to any point must not leave the interval.
        low, high = torch.minimum(z.low, z.centre), torch.maximum(z.high, z.centre)
        box = self.interval(ball, between(low, high))
        p = z.centre.softmax(self.dim)
        along = p[:, None] * z.slope
        slope = along - p[:, None] * along.sum(self.dim + 1, keepdim=True)
        mean = (p * z.spread).sum(self.dim, keepdim=True)
        spread = p * ((1 - 2 * p) * z.spread + mean)
        bend = box.size.clamp(max=1.0) * step_range(z, self.dim).square()
        noise = self._noise(ball, torch.maximum(low.abs(), high.abs()), box.size)
        return linear_bound(p + 3 / 16 * bend, slope, spread + 5 / 16 * bend + noise, ball, box)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        """p_m (J_m - mean of J under p)."""
        (z,) = values
        p = over_directions(self.interval(Ball.point(z.centre), z))
        mean = _box_total(box_product(p, jacobians[0]), self.dim + 1)
        return box_product(p, box_sum(jacobians[0], mean, (1.0, -1.0)))


@dataclass(frozen=True)
class LogSumExpOp(Operator):
    """log of the sum of exp(z), along a dimension of (B, ...), which is kept."""

    dim: int
    name = "logsumexp"

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        (z,) = inputs
        if z.spread is None:
            return Box(z.centre.logsumexp(self.dim, keepdim=True))
        ends = (end.logsumexp(self.dim, keepdim=True) for end in (z.low, z.high))
        box = between(*ends)
        return box.widened(self._noise(ball, z.size)) if ball.unit else box

    def _noise(self, ball: Ball, size: Tensor) -> Tensor:
        count = size.shape[self.dim]
        return rounding(count + 16, ball.unit, 2 + size.amax(self.dim, keepdim=True))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (z,) = inputs
        low, high = torch.minimum(z.low, z.centre), torch.maximum(z.high, z.centre)
        box = self.interval(ball, between(low, high))
        p = z.centre.softmax(self.dim)
        bend = step_range(z, self.dim).square() / 16
        noise = self._noise(ball, torch.maximum(low.abs(), high.abs()))
        return linear_bound(
            z.centre.logsumexp(self.dim, keepdim=True) + bend,
            (p[:, None] * z.slope).sum(self.dim + 1, keepdim=True),
            (p * z.spread).sum(self.dim, keepdim=True) + bend + noise,
            ball,
            box,
        )

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        (z,) = values
        p = over_directions(SoftmaxOp(self.dim).interval(Ball.point(z.centre), z))
        return _box_total(box_product(p, jacobians[0]), self.dim + 1)


def step_range(z: LinearBound, dim: int) -> Tensor:
    """How far apart two entries of z - centre may be."""
    up, down = (z.high - z.centre).clamp(min=0), (z.low - z.centre).clamp(max=0)
    return up.amax(dim, keepdim=True) - down.amin(dim, keepdim=True)


def _box_total(box: Box, dim: int) -> Box:
    spread = None if box.spread is None else box.spread.sum(dim, keepdim=True)
    return Box(box.centre.sum(dim, keepdim=True), spread)


def _dim(call: Call, value: Value, dim: int) -> int:
    place = value.layout.row_dim(dim)
    if place is None:
        call.refuse("across rows")
    return place


def _kept(value: Value, dim: int) -> Layout:
    """The layout of what is left where a dimension is summed over and kept."""
    shape = (*value.shape[: dim - 1], 1, *value.shape[dim:])
    return Layout(shape, value.groups, value.axis)


def _total(call: Call, value: Value, dim: int) -> Value:
    total = WeightedSum(lambda v: v.sum(dim, keepdim=True), value.shape[dim - 1])
    return call.add(total, (value,), _kept(value, dim))


@register(aten._softmax.default)
def _softmax(call: Call) -> Made:
    value = call.value("self", grouped=True)
    return SoftmaxOp(_dim(call, value, call["dim"])), (value,)


@register(aten._softmax_backward_data.default)
def _softmax_backward(call: Call) -> Made:
    """p (g - sum of g p)."""
    gradient, p = call.value("grad_output", grouped=True), call.value("output", grouped=True)
    dim = _dim(call, p, call["dim"])
    weighted = call.add(MultiplyOp(), (gradient, p), p.layout)
    away = call.add(DIFFERENCE, (gradient, _total(call, weighted, dim)), p.layout)
    return MultiplyOp(), (p, away)


@register(aten._log_softmax.default)
def _log_softmax(call: Call) -> Made:
    value = call.value("self", grouped=True)
    dim = _dim(call, value, call["dim"])
    total = call.add(LogSumExpOp(dim), (value,), _kept(value, dim))
    return DIFFERENCE, (value, total)


@register(aten._log_softmax_backward_data.default)
def _log_softmax_backward(call: Call) -> Made:
    """g - p sum of g."""
    gradient, output = call.value("grad_output", grouped=True), call.source("output", AddOp)
    z, total = (call.makers[i] for i in output.inputs)
    dim = _dim(call, z, call["dim"])
    if total.operator != LogSumExpOp(dim) or total.inputs != (z.index,):
        call.refuse("of what was not made by log_softmax")
    p = call.add(SoftmaxOp(dim), (z,), z.layout)
    part = call.add(MultiplyOp(), (p, _total(call, gradient, dim)), z.layout)
    return DIFFERENCE, (gradient, part)


@register(aten.logsumexp.default)
def _logsumexp(call: Call) -> Made:
    value = call.value("self", grouped=True)
    if len(call["dim"]) != 1:
        call.refuse("over several dimensions")
    dim = _dim(call, value, call["dim"][0])
    total = call.add(LogSumExpOp(dim), (value,), _kept(value, dim))
    shape = call.shape
    return Move(lambda v: v.reshape(len(v), *shape)), (total,)
