"""From a trace to a graph: constants evaluated, operations read, smooth hinges joined."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from r2et.certify.graph.fusion import joined_hinges
from r2et.certify.graph.graph import INPUT, OUTPUT_GRADIENT, Graph, Node
from r2et.certify.graph.tracing import BatchShape, Reference, Trace, TracedCall, trace
from r2et.certify.operators.base import Operator, Shape
from r2et.certify.operators.linear import Move, WeightedSum
from r2et.certify.operators.registry import (
    INSTEAD,
    SUPPORTED,
    BatchSize,
    Call,
    Comparison,
    Layout,
    RowConstant,
    Transposed,
    Value,
    aten,
    call_by_name,
    for_rows,
    reader_of,
)
from r2et.errors import InputError

# Of a value that depends on x these look at the shape alone.
FACTORIES = {
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.full_like.default,
    aten.new_zeros.default,
    aten.new_ones.default,
    aten.new_full.default,
}
CHECKED_ROWS = 3


def graph_of(where: str, model: nn.Module, x: Tensor) -> Graph:
    """The graph of a model, in eval mode, with copies of its weights in float64."""
    return build(where, trace(where, model, x), exact=True)


def build(where: str, traced: Trace, *, exact: bool) -> Graph:
    """The graph of a trace. exact: weights as copies in float64, else as they are, with gradients.

    Rows must not influence each other: what moves numbers is tried on rows of noise.
    """
    with torch.set_grad_enabled(not exact and torch.is_grad_enabled()):
        return _Builder(where, traced, exact).graph()


@dataclass
class _Builder:
    where: str
    traced: Trace
    exact: bool
    made: dict[int, Any] = field(default_factory=dict)  # by call: a Value, or a constant
    nodes: dict[int, Node] = field(default_factory=dict)
    values: dict[int, Value] = field(default_factory=dict)
    derived: bool = False  # some weights are made of others

    def graph(self) -> Graph:
        traced = self.traced
        for index, shape in ((INPUT, traced.x_shape), (OUTPUT_GRADIENT, (traced.classes,))):
            self.made[index] = self.values[index] = Value(index, shape)
        needed = _needed(traced)
        for place, call in enumerate(traced.calls, 2):
            if place in needed:
                self.made[place] = self._made(call)
        ends = [self._resolved(end) for end in (traced.logits, traced.gradient)]
        for end in ends:
            if not isinstance(end, Value):
                self.refuse("an output that does not depend on x")
        return Graph(
            joined_hinges(self.nodes),
            ends[0].index,
            ends[1].index,
            traced.classes,
            {index: value.shape for index, value in self.values.items()},
            torch.float64 if self.exact else traced.dtype,
            lasting=not self.derived and holds_weights_alone(self.nodes, traced),
        )

    def _made(self, call: TracedCall) -> Any:
        arguments = self._arguments(call)
        name = call.target.overloadpacket.__name__.strip("_")
        if torch.Tag.nondeterministic_seeded in call.target.tags:
            self.refuse(f"{name}, a random number")
        if not any(isinstance(a, Value | Comparison) for a in _leaves(list(arguments.values()))):
            return self._constant(call, arguments)
        if call.target in FACTORIES and isinstance(arguments["self"], Value):
            return self._filled(call, arguments)
        # Comparisons mask, whole numbers choose; nothing else is made of other numbers.
        if call.dtype not in (self.traced.dtype, torch.bool, torch.int32, torch.int64):
            self.refuse(f"{name} with a result of {call.dtype}")
        first = self._layout(call.shapes[0], name)
        outputs = (first, *(_rows_of(shape) for shape in call.shapes[1:]))
        read = reader_of(call.target)
        if read is None:
            instead = INSTEAD.get(name)
            self.refuse(name if instead is None else f"{name} (use {instead} instead)")
        arguments = {key: self._converted(value) for key, value in arguments.items()}
        for argument in call.target._schema.arguments:
            sized = isinstance(arguments.get(argument.name), BatchSize)
            if sized and "SymInt" not in str(argument.real_type):
                self.refuse(f"{name} with a number that grows with the batch")
        kind = torch.float64 if self.exact else self.traced.dtype
        seen = Call(
            call.target,
            arguments,
            outputs,
            self.traced.dtype,
            kind,
            self.where,
            self.values,
            self._added,
            self._expanded,
        )
        try:
            result = read(seen)
            if isinstance(result, tuple):
                operator, inputs = result
                result = self._added(operator, inputs, seen.layout)
        except (AttributeError, LookupError, RuntimeError, TypeError) as error:
            self.refuse(f"{name} called in a way that is not known ({type(error).__name__})")
        made = result[0] if isinstance(result, list) else result
        kinds = isinstance(made, Comparison), bool(getattr(made, "whole", False))
        if kinds != (call.dtype == torch.bool, call.dtype in (torch.int32, torch.int64)):
            self.refuse(f"{name} with a result of {call.dtype}")
        return result

    def _added(self, operator: Operator, inputs: tuple[Value, ...], layout: Layout) -> Value:
        moves = isinstance(operator, Move | WeightedSum)
        kind = torch.float64 if self.exact else self.traced.dtype
        if moves and not rows_apart(operator, inputs[0], layout.shape, kind):  # type: ignore[arg-type]
            self.refuse(f"{operator.name} across rows")
        index = len(self.values)
        places = tuple(value.index for value in inputs)
        self.nodes[index] = Node(operator, places)
        shape, groups, axis = layout
        value = Value(index, shape, groups, operator, places, axis=axis, whole=operator.whole)
        self.values[index] = value
        return value

    def _expanded(self, value: Value, layout: Layout) -> Value:
        before = value.layout

        def function(v: Tensor) -> Tensor:
            return layout.from_torch(before.to_torch(v).expand(layout.sizes(len(v))))

        return self._added(Move(function, local=False, whole=value.whole), (value,), layout)

    def _arguments(self, call: TracedCall) -> dict[str, Any]:
        """All arguments by name, with the schema's defaults."""
        schema = call.target._schema.arguments
        given = {a.name: a.default_value for a in schema if a.has_default_value()}
        positional = [a.name for a in schema if not a.kwarg_only]
        given |= dict(zip(positional, call.args, strict=False)) | call.kwargs
        return {name: self._resolved(value) for name, value in given.items()}

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, Reference):
            made = self.made[value.call]
            if value.output is None:
                return made
            if isinstance(made, Value):
                return replace(made, output=value.output) if value.output else made
            return made[value.output]
        if isinstance(value, list | tuple):
            return [self._resolved(part) for part in value]
        return value

    def _converted(self, value: Any) -> Any:
        """A constant in the precision of the analysis."""
        if isinstance(value, Transposed):
            return Transposed(self._converted(value.tensor))
        if isinstance(value, RowConstant):
            return replace(value, row=self._converted(value.row))
        if isinstance(value, list):
            return [self._converted(part) for part in value]
        if isinstance(value, Tensor) and self.exact and value.is_floating_point():
            return value.detach().to(torch.float64, copy=True)
        return value

    def _constant(self, call: TracedCall, arguments: dict[str, Any]) -> Any:
        """What is made of weights alone; of what has a row for each of x, one."""
        if call.target is aten.t.default:
            matrix = arguments["self"]
            return matrix.tensor if isinstance(matrix, Transposed) else Transposed(matrix)
        self.derived = True
        leaves = _leaves(list(arguments.values()))
        sized = any(isinstance(a, BatchSize | RowConstant) for a in leaves)
        rows = {name: for_rows(value, CHECKED_ROWS) for name, value in arguments.items()}
        try:
            made = call_by_name(call.target, rows)
        except RuntimeError:
            self.refuse(f"{call.target.overloadpacket.__name__} of a constant, in an unknown way")
        if not sized or not isinstance(made, Tensor):
            return made
        return self._row_constant(call, made)

    def _filled(self, call: TracedCall, arguments: dict[str, Any]) -> Any:
        like = torch.zeros(CHECKED_ROWS, *arguments["self"].shape, dtype=self.traced.dtype)
        rest = {name: for_rows(value, CHECKED_ROWS) for name, value in arguments.items()}
        like = arguments["self"].layout.to_torch(like)
        return self._row_constant(call, call_by_name(call.target, rest | {"self": like}))

    def _row_constant(self, call: TracedCall, made: Tensor) -> RowConstant:
        layout = _rows_of(call.shapes[0])
        rows = None if layout is None else layout.from_torch(made)
        if rows is None or not torch.equal(rows, rows[:1].expand_as(rows)):
            self.refuse(f"{call.target.overloadpacket.__name__} with a number for each row")
        assert layout is not None
        return RowConstant(rows[0], layout)

    def _layout(self, shape: BatchShape | None, name: str) -> Layout:
        """How the rows of x are in a result."""
        sizes = [size for size in shape or [] if isinstance(size, BatchSize)]
        if not sizes:
            self.refuse(f"{name}, whose result is not one value per row")
        layout = _rows_of(shape)
        if layout is None:
            self.refuse(f"{name}, whose result mixes rows")
        return layout

    def refuse(self, got: str) -> NoReturn:
        raise InputError(f"{self.where}: model must be made of {SUPPORTED}, got {got}.")


def holds_weights_alone(nodes: dict[int, Node], traced: Trace) -> bool:
    """Whether every tensor in the operators is one of the model's, and not made of such."""
    leaves = [
        leaf for call in traced.calls for leaf in _leaves([*call.args, *call.kwargs.values()])
    ]
    weights = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if any(weight.ndim == 0 for weight in weights):  # not told from numbers
        return False
    known = set(map(id, weights))
    held = [getattr(n.operator, f.name) for n in nodes.values() for f in _fields(n.operator)]
    return all(id(t) in known for t in held if isinstance(t, Tensor) and t.ndim)


def rows_apart(
    operator: Move | WeightedSum, value: Value, shape: Shape, dtype: torch.dtype
) -> bool:
    """Whether each row of the result comes from that row alone: it is linear, so noise tells."""
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(CHECKED_ROWS, *value.shape, generator=generator, dtype=dtype)
    changed = v.clone()
    changed[1] = torch.randn(value.shape, generator=generator, dtype=dtype)
    with torch.no_grad():
        a, b = operator.push(v), operator.push(changed)
    whole = a.shape == (CHECKED_ROWS, *shape)
    return whole and torch.equal(a[0], b[0]) and torch.equal(a[2], b[2])


def _rows_of(shape: BatchShape | None) -> Layout | None:
    """The layout of a tensor of this shape; None where it has no rows, or rows along two axes."""
    places = [i for i, size in enumerate(shape or []) if isinstance(size, BatchSize)]
    if shape is None or len(places) != 1:
        return None
    (axis,) = places
    groups = shape[axis].times  # type: ignore[union-attr]
    rest = tuple(size for size in shape if isinstance(size, int))
    return Layout(rest if groups == 1 else (groups, *rest), groups, axis)


def _needed(traced: Trace) -> set[int]:
    """The calls that the outputs depend on."""
    needed = {traced.logits.call, traced.gradient.call}
    for place in range(len(traced.calls) + 1, 1, -1):
        if place in needed:
            call = traced.calls[place - 2]
            parts = _leaves([*call.args, *call.kwargs.values()])
            needed |= {part.call for part in parts if isinstance(part, Reference)}
    return needed


def _fields(operator: Operator) -> tuple[Field[Any], ...]:
    return fields(operator) if is_dataclass(operator) else ()


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]
