"""Networks of ONNX as PyTorch modules, where they are made of operators that are known here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from r2et.errors import InputError, first_line, require

WHERE = "from_onnx"
LARGEST = 2**31  # bytes, which is what a file of protocol buffers can have


def _gemm(a: Tensor, b: Tensor, *c: Tensor, attributes: Mapping[str, Any]) -> Tensor:
    a = a.transpose(-1, -2) if attributes.get("transA", 0) else a
    b = b.transpose(-1, -2) if attributes.get("transB", 0) else b
    scaled = attributes.get("alpha", 1.0) * (a @ b) if attributes.get("alpha", 1.0) != 1 else a @ b
    if not c:
        return scaled
    beta = attributes.get("beta", 1.0)
    return scaled + (c[0] if beta == 1 else beta * c[0])


def _plain(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *inputs, attributes: function(*inputs)  # noqa: ARG005


def _flatten(x: Tensor, *, attributes: Mapping[str, Any]) -> Tensor:
    require(attributes.get("axis", 1) == 1, WHERE, "Flatten", "of axis 1", attributes)
    return x.flatten(1)


def _constant(*, attributes: Mapping[str, Any]) -> Tensor:
    require("value" in attributes, WHERE, "Constant", "a tensor", ", ".join(attributes))
    value: Tensor = attributes["value"]
    return value


OPERATORS: dict[str, Callable[..., Tensor]] = {
    "Add": _plain(torch.add),
    "Constant": _constant,
    "Div": _plain(torch.div),
    "Elu": lambda x, *, attributes: functional.elu(x, attributes.get("alpha", 1.0)),
    "Flatten": _flatten,
    "Gelu": lambda x, *, attributes: (
        functional.gelu(x, approximate=attributes["approximate"])
        if "approximate" in attributes
        else functional.gelu(x)
    ),
    "Gemm": _gemm,
    "Identity": _plain(lambda x: x),
    "LeakyRelu": lambda x, *, attributes: functional.leaky_relu(x, attributes.get("alpha", 0.01)),
    "MatMul": _plain(torch.matmul),
    "Mul": _plain(torch.mul),
    "Neg": _plain(torch.neg),
    "Relu": _plain(torch.relu),
    "Sigmoid": _plain(torch.sigmoid),
    "Softplus": _plain(functional.softplus),
    "Sub": _plain(torch.sub),
    "Tanh": _plain(torch.tanh),
}
# At the end they make probabilities of logits, which are what explanations are of.
ENDS = {"Softmax": "softmax", "LogSoftmax": "log-softmax", "Sigmoid": "sigmoid"}


class OnnxNetwork(nn.Module):
    """The nodes of an ONNX graph, one after another; its constants are buffers.

    left_out: the operator at the end that was left out, since logits come before it.
    """

    def __init__(self, graph: Any, constants: dict[str, Tensor], left_out: str | None) -> None:
        super().__init__()
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = graph
        self.left_out = left_out
        self.places = {name: f"constant_{i}" for i, name in enumerate(constants)}
        for name, value in constants.items():
            self.register_buffer(self.places[name], value)

    def forward(self, x: Tensor) -> Tensor:
        values: dict[str, Tensor] = {"": x, **{n: getattr(self, p) for n, p in self.places.items()}}
        out = x
        for kind, inputs, output, attributes in self.nodes:
            out = OPERATORS[kind](*(values[name] for name in inputs), attributes=attributes)
            values[output] = out
        return out


def from_onnx(model: Any) -> nn.Module:
    """A feed-forward ONNX network, by its file or as a ModelProto, as a module in eval mode.

    A softmax or sigmoid at its end is left out: what comes before are logits. Only the package
    onnx is needed; a file's tensors must be in it, and nothing of it is run.
    """
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        sentence = f"{WHERE}: onnx must be installed (pip install onnx), got no such package."
        raise InputError(sentence) from error
    if isinstance(model, str | os.PathLike):
        try:
            model = onnx.load(os.fspath(model), load_external_data=False)
        except Exception as error:  # of protocol buffers, and of the system
            got = f"{os.fspath(model)} ({first_line(error)})"
            raise InputError(f"{WHERE}: model must be an ONNX file, got {got}.") from error
    is_valid = isinstance(model, onnx.ModelProto)
    require(is_valid, WHERE, "model", "an ONNX file or ModelProto", type(model).__name__)
    graph = model.graph
    outside = [t.name for t in graph.initializer if t.data_location == t.EXTERNAL]
    require(not outside, WHERE, "model", "one file with its tensors", f"{outside[:1]} elsewhere")
    constants = {
        tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy())
        for tensor in graph.initializer
    }
    inputs = [value.name for value in graph.input if value.name not in constants]
    require(len(inputs) == 1, WHERE, "model", "of one input", f"{len(inputs)}")
    require(len(graph.output) == 1, WHERE, "model", "of one output", f"{len(graph.output)}")
    listed = list(graph.node)
    end = listed[-1] if listed else None
    is_end = end is not None and end.op_type in ENDS and list(end.output) == [graph.output[0].name]
    left_out = ENDS[end.op_type] if end is not None and is_end else None
    nodes = [_node(node, inputs[0], numpy_helper) for node in (listed[:-1] if is_end else listed)]
    require(bool(nodes), WHERE, "model", "of at least one operator before its end", "none")
    last = end.input[0] if end is not None and is_end else graph.output[0].name
    require(nodes[-1][2] == last, WHERE, "model", "one whose last node is its output", last)
    return OnnxNetwork(nodes, constants, left_out).eval()


def _node(node: Any, entry: str, helper: Any) -> tuple[str, list[str], str, dict[str, Any]]:
    """A node in plain data; the network's input is called by the empty name."""
    expected = f"made of {', '.join(OPERATORS)} (or give the PyTorch model it was exported from)"
    is_known = node.op_type in OPERATORS and node.domain in ("", "ai.onnx")
    require(is_known, WHERE, "model", expected, node.op_type)
    require(len(node.output) == 1, WHERE, node.op_type, "of one output", len(node.output))
    attributes: dict[str, Any] = {}
    for own in node.attribute:
        if own.type == own.TENSOR:
            attributes[own.name] = torch.from_numpy(helper.to_array(own.t).copy())
        elif own.type in (own.FLOAT, own.INT):
            attributes[own.name] = own.f if own.type == own.FLOAT else own.i
        elif own.type == own.STRING:
            attributes[own.name] = own.s.decode()
    inputs = ["" if name == entry else name for name in node.input]
    return node.op_type, inputs, node.output[0], attributes
