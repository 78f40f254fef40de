"""Operators of ONNX that are known here: what each computes, reads and may be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from r2et.errors import require

WHERE = "from_onnx"
# From 7 on broadcasting is NumPy's; what follows the last was not compared.
OPSETS = (7, 28)
SLOPE = 0.009999999776482582  # of LeakyRelu: ONNX's default is a float32


@dataclass(frozen=True)
class OnnxOperator:
    """One operator.

    compute: of its inputs, and of its attributes by their names.
    inputs: the fewest and the most that it reads.
    attributes: those that it may have, as they are where a node says nothing of them.
    only: values that an attribute may have, where not every one is computed here.
    since: the first operator set that has it.
    """

    compute: Callable[..., Tensor]
    inputs: tuple[int, int] = (1, 1)
    attributes: Mapping[str, float | int | str] = field(default_factory=dict)
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    since: int = OPSETS[0]


def gemm(a: Tensor, b: Tensor, *c: Tensor, alpha: float, beta: float, **turned: int) -> Tensor:
    """alpha A' B' + beta C, of matrices; C is broadcast to the product, never the reverse.

    turned: transA and transB, whether A and B are transposed.
    """
    ranks = f"{a.ndim} and {b.ndim} dimensions"
    require(a.ndim == 2 and b.ndim == 2, WHERE, "Gemm", "of two matrices", ranks)
    product = (a.T if turned["transA"] else a) @ (b.T if turned["transB"] else b)
    scaled = product if alpha == 1 else alpha * product
    if not c:
        return scaled
    total = scaled + (c[0] if beta == 1 else beta * c[0])
    shapes = f"{tuple(c[0].shape)} beside {tuple(scaled.shape)}"
    is_broadcast = total.shape == scaled.shape
    require(is_broadcast, WHERE, "C of Gemm", "broadcast to the product's shape", shapes)
    return total


GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
TWO = (2, 2)
OPERATORS = {
    "Add": OnnxOperator(torch.add, TWO),
    "Div": OnnxOperator(torch.div, TWO),
    "Elu": OnnxOperator(functional.elu, attributes={"alpha": 1.0}),
    "Flatten": OnnxOperator(
        lambda x, axis: x.flatten(axis), attributes={"axis": 1}, only={"axis": (1,)}
    ),
    "Gelu": OnnxOperator(
        functional.gelu,
        attributes={"approximate": "none"},
        only={"approximate": ("none", "tanh")},
        since=20,
    ),
    "Gemm": OnnxOperator(gemm, (2, 3), GEMM),
    "Identity": OnnxOperator(lambda x: x),
    "LeakyRelu": OnnxOperator(
        lambda x, alpha: functional.leaky_relu(x, alpha), attributes={"alpha": SLOPE}
    ),
    "MatMul": OnnxOperator(torch.matmul, TWO),
    "Mul": OnnxOperator(torch.mul, TWO),
    "Neg": OnnxOperator(torch.neg),
    "Relu": OnnxOperator(torch.relu),
    "Sigmoid": OnnxOperator(torch.sigmoid),
    "Softplus": OnnxOperator(functional.softplus),
    "Sub": OnnxOperator(torch.sub, TWO),
    "Tanh": OnnxOperator(torch.tanh),
}
# At the end they make probabilities of logits, which are what explanations are of.
CLASS_AXIS = OnnxOperator(torch.softmax, attributes={"axis": -1}, only={"axis": (1, -1)})
ENDS = {"Softmax": CLASS_AXIS, "LogSoftmax": CLASS_AXIS, "Sigmoid": OPERATORS["Sigmoid"]}
WORDS = {"Softmax": "softmax", "LogSoftmax": "log-softmax", "Sigmoid": "sigmoid"}


def check_logits(end: str, logits: Tensor) -> None:
    """What was left out of the end made these logits' probabilities, row by row.

    A softmax does of two logits or more, along the second dimension; a sigmoid of one, since those
    of several classes are no distribution over them.
    """
    shape = f"outputs of shape {tuple(logits.shape)}"
    width = logits.shape[1] if logits.ndim == 2 else 1
    if end == "Sigmoid":
        one = logits.ndim in (1, 2) and width == 1
        require(one, WHERE, "Sigmoid at its end", "of one logit for each row", shape)
    else:
        require(width > 1, WHERE, f"{end} at its end", "of two logits or more for each row", shape)
