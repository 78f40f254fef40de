"""Values put side by side, and taken apart: cat, stack, split, unbind, entries by number, pads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box
from r2et.certify.bounds.linear_bounds import LinearBound
from r2et.certify.bounds.symbols import padded
from r2et.certify.operators.base import Entries, LinearCombination
from r2et.certify.operators.linear import Move, WeightedSum
from r2et.certify.operators.registry import (
    Call,
    Layout,
    Made,
    RowConstant,
    Value,
    aten,
    register,
)


@dataclass(frozen=True)
class CatOp(LinearCombination):
    """Values one after the other along a dimension of (B, ...).

    constants: in order, what does not depend on x, one row of it; None where a value stands.
    """

    dim: int
    constants: tuple[Tensor | None, ...]
    name = "cat"

    def _parts(self, parts: Sequence[Tensor], *, lead: int, shift: bool) -> list[Tensor]:
        """Values and constants in order; lead: how many dimensions stand before a row's."""
        moving, made = iter(parts), []
        rows = [max(part.shape[i] for part in parts) for i in range(lead)]  # all rows, or one
        for constant in self.constants:
            if constant is None:
                part = next(moving)
                made.append(part.expand(*rows, *part.shape[lead:]))
            else:
                fill = constant if shift else torch.zeros_like(constant)
                made.append(fill.to(parts[0]).expand(*rows, *constant.shape))
        return made

    def _joined(self, parts: Sequence[Tensor], *, lead: int = 1, shift: bool = False) -> Tensor:
        return torch.cat(self._parts(parts, lead=lead, shift=shift), self.dim + lead - 1)

    def combined(self, parts: Sequence[Tensor], kind: Entries, *, shift: bool = True) -> Tensor:
        joined = self._joined(parts, shift=shift)
        # Parts are sizes already; constants may be negative.
        return joined.abs() if kind == "absolute" else joined

    def _box(self, boxes: Sequence[Box], *, lead: int, shift: bool) -> Box:
        centre = self._joined([box.centre for box in boxes], lead=lead, shift=shift)
        if all(box.spread is None for box in boxes):
            return Box(centre)
        spreads = [torch.zeros_like(b.centre) if b.spread is None else b.spread for b in boxes]
        return Box(centre, self._joined(spreads, lead=lead))

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        del ball
        return self._box(inputs, lead=1, shift=True)

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        count = max(part.slope.shape[1] for part in inputs)
        slopes = [padded(part.slope, count) for part in inputs]
        joined = LinearBound(
            self._joined([part.centre for part in inputs], shift=True),
            self._joined(slopes, lead=2),
            self._joined([part.spread for part in inputs]),
            self._joined([part.low for part in inputs], shift=True),
            self._joined([part.high for part in inputs], shift=True),
        )
        if ball.symbols is None:
            return joined
        return joined._replace(reach=ball.moved(joined.slope) + joined.spread)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values
        return self._box(jacobians, lead=2, shift=False)

    def adjoint(self, values: Sequence[Box], adjoint: Box) -> list[Box | None]:
        moving, start, parts = iter(values), 0, []
        for constant in self.constants:
            if constant is not None:
                start += constant.shape[self.dim - 1]
                continue
            size = next(moving).centre.shape[self.dim]
            ends = (
                None if end is None else end.narrow(self.dim + 1, start, size)
                for end in (adjoint.centre, adjoint.spread)
            )
            parts.append(Box(*ends))  # type: ignore[arg-type]
            start += size
        return list(parts)


@register(aten.cat.default)
def _cat(call: Call) -> Made:
    dim = call.layout.row_dim(call["dim"])
    return _side_by_side(call, list(call["tensors"]), dim)


@register(aten.stack.default)
def _stack(call: Call) -> Made:
    layout = call.layout
    dim = layout.row_dim(call["dim"])
    if dim is None:
        call.refuse("across rows")
    shape = (*layout.shape[: dim - 1], 1, *layout.shape[dim:])
    parts: list[Value | RowConstant] = []
    for part in call["tensors"]:
        if isinstance(part, RowConstant):
            parts.append(RowConstant(part.row.unsqueeze(dim - 1), Layout(shape, *layout[1:])))
        else:
            value = call.checked(part, "tensors", grouped=True)
            move = Move(lambda v: v.unsqueeze(dim))
            parts.append(call.add(move, (value,), Layout(shape, *layout[1:])))
    return _side_by_side(call, parts, dim)


def _side_by_side(call: Call, parts: list[Value | RowConstant], dim: int | None) -> Made:
    if dim is None:
        call.refuse("across rows")
    values: list[Value] = []
    constants: list[Tensor | None] = []
    for part in parts:
        if isinstance(part, Tensor):
            call.refuse("with a constant that has no row for each of x")
        if part.layout[1:] != call.layout[1:]:
            call.refuse("of values in other rows")
        if isinstance(part, RowConstant):
            constants.append(part.row)
        else:
            values.append(call.checked(part, "tensors", grouped=True))
            constants.append(None)
    return CatOp(dim, tuple(constants)), tuple(values)


@register(aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int)
def _split(call: Call) -> Made:
    value = call.value("self", grouped=True, whole=True)
    if value.layout.row_dim(call["dim"]) is None:
        call.refuse("across rows")
    made = []
    for place, layout in enumerate(call.outputs):
        assert layout is not None
        move = Move(call.at_rows("self", place), whole=value.whole)
        made.append(call.add(move, (value,), layout))
    return made


@register(aten.index.Tensor, aten.index_select.default)
def _places(call: Call) -> Made:
    """Entries by their numbers, which may be repeated."""
    if any(isinstance(part, Value) for part in call.arguments.get("indices") or ()):
        call.refuse("by numbers that depend on x (use torch.nn.functional.embedding)")
    value = call.value("self", grouped=True, whole=True)
    return Move(call.at_rows("self"), local=False, whole=value.whole), (value,)


@register(aten.index_put.default)
def _put(call: Call) -> Made:
    return _added_up(call, "values")


@register(aten.index_add.default)
def _index_add(call: Call) -> Made:
    if call["alpha"] != 1:
        call.refuse("with alpha")
    return _added_up(call, "source")


def _added_up(call: Call, source: str) -> Made:
    """Into zeros, at places by their numbers: the backward pass of taking them."""
    into, value = call.constant("self"), call.value(source, grouped=True)
    row = into.row if isinstance(into, RowConstant) else into
    if bool((row != 0).any()) or not call.arguments.get("accumulate", True):
        call.refuse("other than of a gradient")
    function = call.at_rows(source)
    most = function(torch.ones(1, *value.shape, dtype=call.weights_dtype)).max()
    return WeightedSum(function, int(most) + 1), (value,)


@register(aten.constant_pad_nd.default)
def _pad(call: Call) -> Made:
    if call["value"] != 0:
        call.refuse("with another number than 0")
    return Move(call.at_rows("self")), (call.value("self", grouped=True),)
