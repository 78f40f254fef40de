"""Batched products: of values with a stack of weights, and of two values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r2et.certify.operators.arithmetic import AddOp, MultiplyOp
from r2et.certify.operators.base import Entries, LinearOperator, entries
from r2et.certify.operators.linear import Move, Scale, WeightedSum
from r2et.certify.operators.registry import (
    Call,
    Layout,
    Made,
    RowConstant,
    Value,
    aten,
    plain_tensor,
    register,
)


@dataclass(frozen=True)
class BatchedDense(LinearOperator):
    """A product of each row with weights, one matrix for each member of an ensemble, say.

    equation: as torch.einsum takes it, for (rows, weight).
    terms: the length of its sums.
    """

    weight: Tensor
    equation: str
    terms: int = 1
    name = "bmm"

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        return torch.einsum(self.equation, v, entries(self.weight, kind))


@register(aten.bmm.default)
def _bmm(call: Call) -> Made:
    return _product(call, call["self"], call["mat2"])


@register(aten.baddbmm.default)
def _baddbmm(call: Call) -> Made:
    if call["beta"] != 1 or call["alpha"] != 1:
        call.refuse("with beta or alpha")
    made = _product(call, call["batch1"], call["batch2"])
    assert isinstance(made, tuple)
    product = call.add(*made, call.layout)
    if call.moves("self"):
        return AddOp((1.0, 1.0)), (call.expanded("self"), product)
    offset = call.over_row("self", product)
    return Scale(torch.tensor(1.0, dtype=offset.dtype), offset), (product,)


def _product(call: Call, one: Any, two: Any) -> Made:
    """one @ two, (N, M, P) and (N, P, Q)."""
    if isinstance(one, Value) and isinstance(two, Value):
        return _of_two_values(call, one, two)
    left = isinstance(one, Value)
    value = call.checked(one if left else two, "self", grouped=True)
    weight, per_row = plain_tensor(two if left else one), False
    if isinstance(weight, RowConstant):
        if weight.layout[1:] != (value.groups, 0):
            call.refuse("with weights in other rows")
        weight, per_row = weight.row, True
    # Which of the three dimensions the rows of x are along, and how many of torch's belong to one.
    kind = ("first" if value.groups == 1 else "grouped") if value.axis == 0 else "inner"
    summed_over = 2 if left else 1
    odd = value.groups > 1 and value.axis > 0
    if (kind == "inner") == per_row or odd or value.axis == summed_over:
        call.refuse("of rows that are not those of x")
    equations = {
        ("first", True): "bmp,pq->bmq",
        ("first", False): "bpq,mp->bmq",
        ("grouped", True): "bnmp,npq->bnmq",
        ("grouped", False): "bnpq,nmp->bnmq",
        ("inner", True): "bnp,npq->bnq",
        ("inner", False): "bnp,nmp->bnm",
    }
    terms = weight.shape[-2] if left else weight.shape[-1]
    return BatchedDense(weight, equations[kind, left], terms), (value,)


def _of_two_values(call: Call, one: Value, two: Value) -> Made:
    """Every product of two entries, then the sums."""
    a, b = call.checked(one, "self", grouped=True), call.checked(two, "mat2", grouped=True)
    if a.axis or b.axis or a.groups != b.groups:
        call.refuse("of rows that are not those of x")
    *lead, m, p = a.shape
    q = b.shape[-1]
    layout = Layout((*lead, m, p, q), a.groups)

    def along(v: Tensor) -> Tensor:
        return v.unsqueeze(-1).expand(len(v), *layout.shape)

    def across(v: Tensor) -> Tensor:
        return v.unsqueeze(-3).expand(len(v), *layout.shape)

    left = call.add(Move(along, local=False), (a,), layout)
    right = call.add(Move(across, local=False), (b,), layout)
    every = call.add(MultiplyOp(), (left, right), layout)
    return WeightedSum(lambda v: v.sum(-2), p), (every,)
