"""Which operator stands for which operation of torch: one function each, in one registry.

Torch's tracer hands over operations of ATen, forward and backward ones alike. `register` names the
operations that a function reads; the function looks at a Call and returns what it makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeAlias

import torch
from torch import Tensor
from torch._ops import OpOverload

from r2et.certify.operators.base import Operator, Shape
from r2et.errors import InputError

aten = torch.ops.aten

# As messages name it; docs/certify/operators.md has the operations.
SUPPORTED = (
    "Linear, Conv, BatchNorm, LayerNorm, Embedding, pooling, softmax, sums, products, "
    "cat, slices, and activations such as ReLU, Softplus, Tanh, SELU, GELU, GLU and clamp"
)


# By operation, what to use instead of one that is not read.
INSTEAD = {
    "native_group_norm": "LayerNorm or BatchNorm",
    "log_sigmoid_forward": "-softplus(-z)",
    "erf": "GELU",
    "abs": "sqrt(z * z + eps)",
    "scaled_dot_product_flash_attention_for_cpu": "matmul and softmax",
    "scaled_dot_product_efficient_attention": "matmul and softmax",
    "scaled_dot_product_flash_attention": "matmul and softmax",
    "embedding_bag": "Embedding and a mean",
    **dict.fromkeys(("max", "amax", "maximum", "topk", "sort"), "logsumexp or max_pool2d"),
    **dict.fromkeys(("min", "amin", "minimum"), "-logsumexp(-z)"),
    **dict.fromkeys(("round", "floor", "ceil"), ".long() of a frozen column, and Embedding"),
}


class Layout(NamedTuple):
    """How torch's tensor holds a value's rows.

    shape: of one row; it starts with `groups` where that is above 1.
    groups: how many rows of torch's tensor belong to one row of x.
    axis: the dimension that torch's tensor has its rows along.
    """

    shape: Shape
    groups: int = 1
    axis: int = 0

    @property
    def rank(self) -> int:
        """Of torch's tensor."""
        return len(self.shape) + (1 if self.groups == 1 else 0)

    def sizes(self, rows: int) -> list[int]:
        """The shape of torch's tensor for this many rows of x."""
        sizes = list(self.shape if self.groups == 1 else self.shape[1:])
        sizes.insert(self.axis, rows * self.groups)
        return sizes

    def to_torch(self, v: Tensor) -> Tensor:
        """Rows (B, ...) as torch's tensor."""
        v = v if self.groups == 1 else v.flatten(0, 1)
        return v.movedim(0, self.axis)

    def from_torch(self, tensor: Tensor) -> Tensor:
        """Rows (B, ...) from torch's tensor."""
        v = tensor.movedim(self.axis, 0)
        return v if self.groups == 1 else v.reshape(-1, self.groups, *v.shape[1:])

    def row_dim(self, dim: int) -> int | None:
        """Where a dimension of torch's tensor is in (B, ...); None for that of the rows."""
        dim = dim % self.rank
        if dim == self.axis:
            return None
        return (dim + 1 if dim < self.axis else dim) + (0 if self.groups == 1 else 1)


@dataclass(frozen=True)
class Value:
    """A value that depends on x: its number in the graph, one row's shape, and what made it.

    groups, axis: as in Layout.
    output: which output of its operation this is; only the first has bounds.
    whole: it holds whole numbers, as torch's integers.
    """

    index: int
    shape: Shape
    groups: int = 1
    operator: Operator | None = None
    inputs: tuple[int, ...] = ()
    output: int = 0
    axis: int = 0
    whole: bool = False

    @property
    def layout(self) -> Layout:
        return Layout(self.shape, self.groups, self.axis)


@dataclass(frozen=True)
class RowConstant:
    """A constant that has a row for each row of x, all alike.

    row: one of them, of the layout's shape.
    """

    row: Tensor
    layout: Layout

    def rows(self, count: int) -> Tensor:
        """As torch holds it for this many rows of x."""
        return self.layout.to_torch(self.row.expand(count, *self.row.shape)).contiguous()


@dataclass(frozen=True)
class BatchSize:
    """A number that grows with the batch: `times` of its rows."""

    times: int


@dataclass(frozen=True)
class Transposed:
    """A constant matrix, turned over: kept apart, so that an operator holds the weight itself."""

    tensor: Tensor


@dataclass(frozen=True)
class Comparison:
    """Whether a value is between two ends: what masks a gradient, and nothing else.

    least, most: the ends, in a shape that broadcasts over rows; infinite where there is none.
    inclusive: whether an end itself counts as between them.
    """

    value: Value
    least: Tensor
    most: Tensor
    inclusive: bool


Made: TypeAlias = tuple[Operator, tuple[Value, ...]] | Value | list[Value] | Comparison | Tensor
Reader: TypeAlias = Callable[["Call"], Made]


@dataclass(frozen=True)
class Call:
    """One operation of torch: its arguments by their names in the schema, defaults filled in.

    target: the operation.
    arguments: Values, constant tensors (in the precision of the analysis), numbers, lists.
    outputs: the layouts of what it makes; None for what is no tensor with rows.
    dtype: the model's precision.
    weights_dtype: that of the analysis, in which constant tensors are.
    where: whom a message is from.
    makers: operator and inputs of earlier values, by number.
    add: put an operator with its inputs and the layout of its result into the graph.
    expand: repeat a value's numbers to fill a layout, as torch broadcasts.
    """

    target: OpOverload
    arguments: dict[str, Any]
    outputs: tuple[Layout | None, ...]
    dtype: torch.dtype
    weights_dtype: torch.dtype
    where: str
    makers: dict[int, Value] = field(repr=False)
    add: Callable[[Operator, tuple[Value, ...], Layout], Value] = field(repr=False)
    expand: Callable[[Value, Layout], Value] = field(repr=False)

    @property
    def layout(self) -> Layout:
        """Of what it makes; of its first output where it makes several."""
        layout = self.outputs[0]
        assert layout is not None
        return layout

    @property
    def shape(self) -> Shape:
        """Of one row of what it makes."""
        return self.layout.shape

    @property
    def name(self) -> str:
        """As messages call it: relu, native_layer_norm."""
        return str(self.target.overloadpacket.__name__).strip("_")

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def moves(self, name: str) -> bool:
        """Whether this argument depends on x."""
        return isinstance(self.arguments[name], Value | Comparison)

    def value(self, name: str, *, grouped: bool = False, whole: bool = False) -> Value:
        """This argument, which must depend on x; grouped: in any layout; whole: of any numbers."""
        return self.checked(self.arguments[name], name, grouped=grouped, whole=whole)

    def checked(
        self, value: Any, name: str, *, grouped: bool = False, whole: bool = False
    ) -> Value:
        """The same of one that is part of an argument."""
        if isinstance(value, Comparison):
            self.refuse("of a comparison")
        if not isinstance(value, Value):
            self.refuse(f"whose {name} does not depend on x")
        if value.output:
            self.refuse("of another output than the first")
        if value.whole and not whole:
            self.refuse("of whole numbers")
        if (value.groups > 1 or value.axis) and not grouped:
            self.refuse("of rows that are not those of x")
        return value

    def expanded(self, name: str, *, whole: bool = False) -> Value:
        """This argument, repeated to the shape of the result where it is smaller."""
        value = self.value(name, grouped=True, whole=whole)
        return value if value.layout == self.layout else self.expand(value, self.layout)

    def constant(self, name: str) -> Any:
        """This argument, which must not depend on x; a matrix may be Transposed."""
        if self.moves(name):
            self.refuse(f"whose {name} depends on x")
        return self.arguments[name]

    def over_row(self, name: str, like: Value) -> Tensor:
        """A constant that broadcasts over rows like this value's, as a tensor."""
        given = plain_tensor(self.constant(name))
        if isinstance(given, RowConstant):
            if given.layout[1:] != like.layout[1:] or given.layout.rank != like.layout.rank:
                self.refuse("with a constant in other rows")
            tensor = given.row
        else:
            tensor = (
                given if isinstance(given, Tensor) else torch.tensor(given, dtype=torch.float64)
            )
            # Where its dimensions reach back to that of the rows, it may be the same for all only.
            place = like.axis - (like.layout.rank - tensor.ndim)
            if place >= 0:
                if tensor.shape[place] != 1:
                    self.refuse("with a weight for each row")
                tensor = tensor.select(place, 0)
        tensor = tensor if tensor.is_floating_point() else tensor.to(self.dtype)
        if tensor.ndim > len(like.shape) or self.shape != like.shape:
            self.refuse("that changes the shape")
        return tensor

    def source(self, name: str, operator: type[Operator]) -> Value:
        """What an argument was made of, where this kind of operator made it."""
        made = self.makers[self.value(name, grouped=True).index]
        if not isinstance(made.operator, operator):
            self.refuse(f"of what was not made by {operator.__name__}")
        return made

    def at_rows(self, argument: str, output: int = 0) -> Callable[[Tensor], Tensor]:
        """The operation as a function of one argument (B, ...), for any B, the others as here."""
        others = {k: v for k, v in self.arguments.items() if k != argument}
        before, after = self.arguments[argument].layout, self.outputs[output]
        assert after is not None

        def function(v: Tensor) -> Tensor:
            rest = {name: for_rows(value, len(v)) for name, value in others.items()}
            made = call_by_name(self.target, {argument: before.to_torch(v), **rest})
            return after.from_torch(made[output] if isinstance(made, list | tuple) else made)

        return function

    def refuse(self, why: str) -> NoReturn:
        """Raise InputError that names the operation."""
        text = f"{self.where}: model must be made of {SUPPORTED}, got {self.name} {why}"
        raise InputError(f"{text.rstrip()}.")


OPERATORS: dict[OpOverload, Reader] = {}


def register(*targets: OpOverload) -> Callable[[Reader], Reader]:
    """Let a function read these operations of torch, and what they do in place."""

    def add(reader: Reader) -> Reader:
        for target in targets:
            OPERATORS[target] = reader
        return reader

    return add


def reader_of(target: OpOverload) -> Reader | None:
    """Who reads this operation; one in place is read as its twin that is not."""
    twin = functional_twin(target)
    return OPERATORS.get(target) or (OPERATORS.get(twin) if twin is not None else None)


def functional_twin(target: OpOverload) -> OpOverload | None:
    """Of an operation in place, the one that leaves its argument alone: relu for relu_."""
    packet = target.overloadpacket.__name__
    if not (target._schema.is_mutable and packet.endswith("_")):
        return None
    return getattr(getattr(aten, packet[:-1], None), target._overloadname, None)


def plain_tensor(value: Any) -> Any:
    """A constant as torch holds it."""
    return value.tensor.t() if isinstance(value, Transposed) else value


def for_rows(value: Any, rows: int) -> Any:
    """An argument as torch takes it, its batch sizes as they are for this many rows."""
    if isinstance(value, BatchSize):
        return value.times * rows
    if isinstance(value, RowConstant):
        return value.rows(rows)
    if isinstance(value, Transposed):
        return plain_tensor(value)
    if isinstance(value, list | tuple):
        return type(value)(for_rows(part, rows) for part in value)
    return value


def call_by_name(target: OpOverload, arguments: dict[str, Any]) -> Any:
    """Call an operation with arguments by their names in its schema."""
    args, kwargs = [], {}
    for argument in target._schema.arguments:
        if argument.name not in arguments:
            continue
        if argument.kwarg_only:
            kwargs[argument.name] = arguments[argument.name]
        else:
            args.append(arguments[argument.name])
    return target(*args, **kwargs)
