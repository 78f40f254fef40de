"""Embeddings of categories that are columns of x: constant where the column does not move.

A category read as x[:, j].long() has no gradient. In a region that holds the column still it is
one row of the table; elsewhere the embedding may be any of its rows, and nothing is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from r2et.certify.bounds.interval_bounds import Ball, Box, between
from r2et.certify.bounds.linear_bounds import LinearBound, interval_only
from r2et.certify.operators.base import Operator
from r2et.certify.operators.linear import Move
from r2et.certify.operators.registry import Call, Made, aten, register


@dataclass(frozen=True)
class TruncateOp(Operator):
    """z without its fraction, as a whole number."""

    name = "long"
    kinked = True
    whole = True

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        del ball
        (z,) = inputs
        return Box(z.centre.trunc()) if z.spread is None else between(z.low.trunc(), z.high.trunc())

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (z,) = inputs
        return interval_only(self.interval(ball, z.box), z.slope.shape[1])

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values, jacobians
        raise RuntimeError("a category has no Hessian")


@dataclass(frozen=True)
class EmbeddingOp(Operator):
    """The row of a table (categories, ...) with a whole number."""

    table: Tensor
    name = "embedding"
    kinked = True

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        del ball
        (z,) = inputs
        last = len(self.table) - 1
        if z.spread is None:
            return Box(self._rows(z.centre.round()))
        # A whole number between low and high: rounding does not add one.
        first, end = z.low.ceil(), z.high.floor()
        known = (first == end) & (first >= 0) & (end <= last)
        known = known.view(*known.shape, *[1] * (self.table.ndim - 1))
        row = self._rows(torch.where(first == end, first, 0.0))
        least, most = self.table.amin(0), self.table.amax(0)
        return between(torch.where(known, row, least), torch.where(known, row, most))

    def _rows(self, number: Tensor) -> Tensor:
        flat = self.table.flatten(1)
        rows = F.embedding(number.clamp(0, len(flat) - 1).long(), flat)
        return rows.view(*number.shape, *self.table.shape[1:])

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (z,) = inputs
        return interval_only(self.interval(ball, z.box), z.slope.shape[1])

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values, jacobians
        raise RuntimeError("an embedding has no Hessian")


@register(aten._to_copy.default)
def _to_copy(call: Call) -> Made:
    value = call.value("self", grouped=True, whole=True)
    if call["dtype"] in (torch.int32, torch.int64):
        return value if value.whole else (TruncateOp(), (value,))
    # As numbers again.
    return (Move(lambda v: v), (value,)) if value.whole else value


@register(aten.embedding.default)
def _embedding(call: Call) -> Made:
    value = call.value("indices", grouped=True, whole=True)
    if not value.whole:
        call.refuse("of what is not made by .long()")
    return EmbeddingOp(call.constant("weight")), (value,)
