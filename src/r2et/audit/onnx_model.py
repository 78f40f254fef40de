"""Networks of ONNX as PyTorch modules, where they are made of operators that are known here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from r2et.audit.onnx_network import OnnxNetwork, OnnxNode
from r2et.audit.onnx_operators import ENDS, OPERATORS, OPSETS, WHERE, OnnxOperator
from r2et.errors import InputError, first_line, printable, require

HOME = ("", "ai.onnx")  # the domain of ONNX's own operators
PROBE = 3  # rows whose shapes are followed through a network, without their values
KINDS = {"FLOAT16": torch.float16, "FLOAT": torch.float32, "DOUBLE": torch.float64}


def from_onnx(model: Any) -> nn.Module:
    """A feed-forward ONNX network, by its file or as a ModelProto, as a module in eval mode.

    A softmax or sigmoid at its end is left out: what comes before are logits. Only the package
    onnx is needed; a file's tensors must be in it, and nothing of it is run.
    """
    try:
        import onnx
    except ImportError as error:
        sentence = f"{WHERE}: onnx must be installed (pip install onnx), got no such package."
        raise InputError(sentence) from error
    if isinstance(model, str | os.PathLike):
        try:
            model = onnx.load(os.fspath(model), load_external_data=False)
        except Exception as error:  # of protocol buffers, and of the system
            got = f"{os.fspath(model)} ({first_line(error)})"
            sentence = f"{WHERE}: model must be an ONNX file, got {got}."
            raise InputError(printable(sentence)) from error
    is_valid = isinstance(model, onnx.ModelProto)
    require(is_valid, WHERE, "model", "an ONNX file or ModelProto", type(model).__name__)
    version = _operator_set(model)
    graph = model.graph
    _check_names(graph)
    stored = {tensor.name: tensor for tensor in graph.initializer}
    is_whole = len(stored) == len(graph.initializer) and not graph.sparse_initializer
    require(is_whole, WHERE, "model", "one of dense tensors, each with a name of its own", "others")
    entries = [value for value in graph.input if value.name not in stored]
    require(len(entries) == 1, WHERE, "model", "of one input", f"{len(entries)}")
    require(len(graph.output) == 1, WHERE, "model", "of one output", f"{len(graph.output)}")
    entry, output = entries[0], graph.output[0].name
    end = next((n for n in graph.node if n.op_type in ENDS and list(n.output) == [output]), None)
    if end is not None:
        output = _node(end, ENDS, version, set()).inputs[0]
    nodes: list[OnnxNode] = []
    known = {entry.name, *stored}
    for listed in graph.node:
        if listed is end:
            continue
        if listed.op_type == "Constant" and listed.domain in HOME:
            name = _only_output(listed, known)
            stored[name] = _constant(listed, name)
        else:
            node = _node(listed, OPERATORS, version, known)
            strange = [name for name in node.inputs if name not in known]
            expected = "made of nodes that read what was made before them"
            require(not strange, WHERE, "model", expected, f"{node.kind} of {strange[:1]}")
            nodes.append(node)
        known.add(listed.output[0])
    made = {node.output for node in nodes}
    require(output in made, WHERE, "model", "of at least one operator before its end", "none")
    nodes = _needed(nodes, output)
    read = {name for node in nodes for name in node.inputs}
    kind = _kind(entry.type.tensor_type.elem_type)
    require(kind in KINDS, WHERE, "input", f"of {', '.join(KINDS)}", kind)
    constants = {name: _tensor(stored[name], name, kind) for name in stored if name in read}
    last = None if end is None else end.op_type
    network = OnnxNetwork(nodes, constants, entry.name, output, last, _features(entry)).eval()
    _check_shapes(network, KINDS[kind])
    return network


def _operator_set(model: Any) -> int:
    """Version of ONNX's own operators: one that computes what is computed here."""
    versions = sorted({own.version for own in model.opset_import if own.domain in HOME})
    first, last = OPSETS
    is_known = len(versions) == 1 and first <= versions[0] <= last
    got = ", ".join(map(str, versions)) or "none"
    require(is_known, WHERE, "model", f"of one operator set of ONNX, {first} to {last}", got)
    own = [str(f.name) for f in model.functions if f.domain in HOME]
    require(not own, WHERE, "model", "of ONNX's own operators", f"another {', '.join(own[:3])}")
    return int(versions[0])


def _check_names(graph: Any) -> None:
    """Every name is a text: of bytes that are none the package gives the bytes."""
    nodes = graph.node
    names = [each.name for each in (*graph.input, *graph.output, *graph.initializer)]
    names += [name for n in nodes for name in (n.op_type, n.domain, *n.input, *n.output)]
    names += [name for n in nodes for a in n.attribute for name in (a.name, a.ref_attr_name)]
    strange = [name for name in names if not isinstance(name, str)]
    require(not strange, WHERE, "model", "one whose names are texts", strange[:1])


def _only_output(node: Any, known: set[str]) -> str:
    name = str(node.output[0]) if len(node.output) == 1 else ""
    names = ", ".join(node.output) or "none"
    require(bool(name), WHERE, f"output of {node.op_type}", "one", names)
    require(name not in known, WHERE, "model", "one that names each value once", f"{name} twice")
    return name


def _node(node: Any, operators: dict[str, OnnxOperator], version: int, known: set[str]) -> OnnxNode:
    """A node in plain data, every attribute said."""
    listed = ", ".join(sorted([*OPERATORS, "Constant"]))
    expected = f"made of {listed} (or give the PyTorch model it was exported from)"
    is_known = node.op_type in operators and node.domain in HOME
    called = node.op_type if node.domain in HOME else f"{node.op_type} of {node.domain}"
    require(is_known, WHERE, "model", expected, called or "one without a name")
    operator, output = operators[node.op_type], _only_output(node, known)
    is_there = version >= operator.since
    require(is_there, WHERE, node.op_type, f"of operator set {operator.since} or later", version)
    inputs = list(node.input)
    while inputs and not inputs[-1]:  # ONNX's way to leave out an optional one
        inputs.pop()
    fewest, most = operator.inputs
    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    fits = fewest <= len(inputs) <= most and all(inputs)
    got = ", ".join(name or "one left out" for name in inputs) or "none"
    require(fits, WHERE, f"inputs of {node.op_type}", count, got)
    attributes = dict(operator.attributes)
    seen: set[str] = set()
    for own in node.attribute:
        place = f"{own.name} of {node.op_type}"
        names = ", ".join(operator.attributes) or "none"
        is_known = own.name in operator.attributes and own.name not in seen
        require(is_known, WHERE, f"attribute of {node.op_type}", f"of {names}, once", own.name)
        seen.add(own.name)
        value = _value(own)
        kind = type(operator.attributes[own.name])
        require(type(value) is kind, WHERE, place, f"of type {kind.__name__}", value)
        only = operator.only.get(own.name)
        expected = "" if only is None else " or ".join(map(str, only))
        require(only is None or value in only, WHERE, place, expected, value)
        attributes[own.name] = value
    return OnnxNode(node.op_type, tuple(inputs), output, attributes)


def _value(attribute: Any) -> Any:
    """A number or a text; None of anything else."""
    if attribute.ref_attr_name:
        return None
    if attribute.type == attribute.FLOAT:
        return float(attribute.f)
    if attribute.type == attribute.INT:
        return int(attribute.i)
    return attribute.s.decode(errors="replace") if attribute.type == attribute.STRING else None


def _constant(node: Any, name: str) -> Any:
    """The tensor, or the floats, of a Constant."""
    import onnx

    values = [own for own in node.attribute if own.name in ("value", "value_float", "value_floats")]
    is_valid = len(node.attribute) == 1 == len(values) and not node.input
    got = ", ".join(own.name for own in node.attribute) or "nothing"
    require(is_valid, WHERE, f"Constant {name}", "value, value_float or value_floats", got)
    (own,) = values
    kind = {"value": own.TENSOR, "value_float": own.FLOAT, "value_floats": own.FLOATS}[own.name]
    require(own.type == kind, WHERE, f"{own.name} of Constant {name}", "of its type", own.type)
    if own.name == "value":
        return own.t
    floats, shape = ([own.f], []) if own.name == "value_float" else (own.floats, [len(own.floats)])
    return onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, shape, floats)


def _kind(number: int) -> str:
    """The name of a data type."""
    import onnx

    names = {value: key for key, value in onnx.TensorProto.DataType.items()}
    return str(names.get(number, number))


def _tensor(stored: Any, name: str, kind: str) -> Tensor:
    """A tensor's values, of the input's type: ONNX has no other arithmetic."""
    from onnx import numpy_helper

    place = f"tensor {name}"
    is_here = stored.data_location != stored.EXTERNAL
    require(is_here, WHERE, place, "in the model's own file", "one elsewhere")
    own = _kind(stored.data_type)
    require(own == kind, WHERE, place, f"{kind}, as the input is", own)
    try:
        return torch.from_numpy(numpy_helper.to_array(stored).copy())
    except Exception as error:  # of protocol buffers, and of NumPy
        sentence = f"{WHERE}: {place} must be one that can be read, got {first_line(error)}."
        raise InputError(printable(sentence)) from error


def _features(entry: Any) -> tuple[int | None, ...] | None:
    """Shape of a row as the graph declares it."""
    if not entry.type.tensor_type.HasField("shape"):
        return None
    sizes = [int(size.dim_value) for size in entry.type.tensor_type.shape.dim]
    require(len(sizes) > 1, WHERE, "input", "rows of features, (B, ...)", f"of shape {sizes}")
    return tuple(size if size > 0 else None for size in sizes[1:])


def _needed(nodes: Iterable[OnnxNode], output: str) -> list[OnnxNode]:
    """The nodes that the output is made by."""
    wanted, kept = {output}, []
    for node in reversed(list(nodes)):
        if node.output in wanted:
            wanted.update(node.inputs)
            kept.append(node)
    return kept[::-1]


def _check_shapes(network: OnnxNetwork, kind: torch.dtype) -> None:
    """Where a row's shape is declared, rows can go through: shapes alone are computed."""
    if network.features is None or None in network.features:
        return
    state = {name: value.to("meta") for name, value in network.named_buffers()}
    try:
        rows = torch.empty((PROBE, *network.features), dtype=kind, device="meta")  # type: ignore[arg-type]
        out = torch.func.functional_call(network, state, (rows,))
    except InputError:
        raise
    except Exception as error:  # torch's, of shapes that do not fit
        sentence = f"{WHERE}: model must be one whose shapes fit, got {first_line(error)}."
        raise InputError(printable(sentence)) from error
    shape = f"outputs of shape {tuple(out.shape)} of {PROBE} rows"
    is_by_row = out.ndim > 0 and len(out) == PROBE
    require(is_by_row, WHERE, "model", "one that computes row by row", shape)
