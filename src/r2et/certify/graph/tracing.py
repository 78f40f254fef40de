"""From a model to its graph: torch's own tracer over the forward and the backward pass.

What is bounded is what runs. `make_fx` writes down every operation of ATen in
(x, g) -> (logits, g . d logits / dx), hooks and functions with a backward pass of their own
included. It is done twice, with batches of two sizes and other numbers: what differs in proportion
is the batch size, and a number or tensor that differs otherwise depends on data or on chance.
"""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import torch
from torch import Tensor, fx, nn
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from r2et.certify.operators.registry import SUPPORTED, BatchSize
from r2et.errors import InputError, R2ETError, first_line

SIZES = (2, 3)  # rows of the two traces
READS = {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__", "__index__"}
DECIDES = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
DATA_DEPENDENT = "a step that looks at values (a branch on the data, .item(), numpy)"
# Tracers of older torch take these apart, which autograd does not: what runs is one operation. A
# name of our own stands for each while it is traced.
WHOLE = (torch.ops.aten.silu_backward.default, torch.ops.aten.mish_backward.default)
_LIBRARY = torch.library.Library("r2et", "FRAGMENT")  # type: ignore[no-untyped-call]


def _named(operation: OpOverload) -> OpOverload:
    """An operation of the same arguments that no tracer takes apart."""
    name = operation.overloadpacket.__name__
    _LIBRARY.define(str(operation._schema).removeprefix("aten::"))  # type: ignore[no-untyped-call]
    _LIBRARY.impl(name, operation, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    named: OpOverload = getattr(torch.ops.r2et, name).default
    return named


NAMED = {operation: _named(operation) for operation in WHOLE}
MEANT = {named: operation for operation, named in NAMED.items()}


BatchShape: TypeAlias = list["int | BatchSize"]


@dataclass(frozen=True)
class Reference:
    """The result of an earlier call, or of one of its outputs."""

    call: int
    output: int | None = None


@dataclass(frozen=True)
class TracedCall:
    """An operation of torch; arguments: References, tensors, numbers, BatchSizes, lists of them.

    shapes: of its outputs, with batch sizes; None for what is no tensor.
    dtype: of its first output.
    """

    target: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shapes: tuple[BatchShape | None, ...]
    dtype: torch.dtype | None


@dataclass(frozen=True)
class Trace:
    """What torch did: calls in order. Calls 0 and 1 stand for x and for the output's gradient.

    logits, gradient: what the model returned.
    reads_weights: a weight was read as a number, so that the trace is good for these weights only.
    """

    calls: tuple[TracedCall, ...]
    logits: Reference
    gradient: Reference
    x_shape: tuple[int, ...]
    classes: int
    dtype: torch.dtype
    reads_weights: bool


def trace(where: str, model: nn.Module, x: Tensor) -> Trace:
    """The operations of model(x), in eval mode, and of its gradient by x."""
    runs = [_run(where, model, x, rows) for rows in SIZES]
    return _Alignment(where, *runs).trace(x)


@dataclass(frozen=True)
class _Run:
    """One trace."""

    module: fx.GraphModule
    classes: int
    reads_weights: bool


def _run(where: str, model: nn.Module, x: Tensor, rows: int) -> _Run:
    inputs = x[:1].detach().expand(rows, *x.shape[1:]).clone()
    if rows == SIZES[1]:
        # Other numbers, but near enough not to leave what the model takes.
        inputs = inputs + torch.linspace(0.1, 0.3, rows).to(inputs).view(-1, *[1] * (x.ndim - 1))
    watch, reads = _FunctionWatch(), _DispatchWatch()  # type: ignore[no-untyped-call]

    def explained(x: Tensor, output_gradient: Tensor | None) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            out = model(x.clone())
            if not isinstance(out, Tensor):
                raise InputError(f"{where}: model must be one that returns a tensor, got {out}.")
            out = out[:, None] if out.ndim == 1 else out
            if output_gradient is None:
                return out, out
            (gradient,) = torch.autograd.grad(out, x, output_gradient)
        return out.detach(), gradient

    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            out = explained(inputs, None)[0].detach()
            if out.ndim != 2 or len(out) != rows:
                shape = tuple(out.shape)
                raise InputError(
                    f"{where}: model must be one that returns logits of shape ({rows}, C), "
                    f"got a tensor of shape {shape}."
                )
            seed = torch.linspace(0.5, 1.0, out.numel()).to(out).view_as(out)
            with watch, reads:
                module = make_fx(explained, decomposition_table=dict(NAMED))(inputs, seed)
    except R2ETError:
        raise
    except Exception as error:
        text = first_line(error)
        got = DATA_DEPENDENT if "tracing tensor" in text else f"{type(error).__name__}: {text}"
        raise InputError(f"{where}: model must be made of {SUPPORTED}, got {got}.") from error
    return _Run(module, out.shape[1], watch.reads_weights or reads.reads_weights)


class _DispatchWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notices weights that operations read as numbers, or whose values decide on shapes."""

    reads_weights = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        if not DECIDES.isdisjoint(func.tags):
            self.reads_weights = True
        return func(*args, **(kwargs or {}))


class _FunctionWatch(TorchFunctionMode):
    """Notices weights that Python reads as numbers, without an operation."""

    reads_weights = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        if getattr(func, "__name__", "") in READS:
            self.reads_weights = True
        return func(*args, **(kwargs or {}))


class _Alignment:
    """Two traces of one model, read side by side."""

    def __init__(self, where: str, first: _Run, second: _Run) -> None:
        self.where, self.first, self.second = where, first, second
        self.calls: list[TracedCall] = []
        self.places: dict[fx.Node, Reference | Tensor] = {}
        self.twins: dict[fx.Node, fx.Node] = {}
        self.roots: dict[fx.Node, fx.Node] = {}  # whose memory a node's result lies in
        self.stale: set[fx.Node] = set()  # results that were overwritten later

    def trace(self, x: Tensor) -> Trace:
        nodes = [list(run.module.graph.nodes) for run in (self.first, self.second)]
        if len(nodes[0]) != len(nodes[1]):
            self.refuse(DATA_DEPENDENT)
        inputs, outputs = 0, None
        for a, b in zip(*nodes, strict=True):
            if a.op != b.op or (a.op == "call_function" and a.target is not b.target):
                self.refuse(DATA_DEPENDENT)
            self.twins[a], self.roots[a] = b, a
            if a.op == "placeholder":
                self.places[a] = Reference(inputs)
                inputs += 1
            elif a.op == "get_attr":
                self.places[a] = self._constant(a, b)
            elif a.op == "output":
                outputs = self._aligned(a.args[0], b.args[0])
            else:
                self.places[a] = self._call(a, b)
        assert outputs is not None
        logits, gradient = outputs
        for part in (logits, gradient):
            if not isinstance(part, Reference):
                self.refuse("an output that does not depend on x")
        return Trace(
            tuple(self.calls),
            logits,
            gradient,
            tuple(x.shape[1:]),
            self.first.classes,
            x.dtype,
            self.first.reads_weights,
        )

    def _constant(self, a: fx.Node, b: fx.Node) -> Tensor:
        one, two = getattr(self.first.module, a.target), getattr(self.second.module, b.target)  # type: ignore[arg-type]
        same = one is two or (one.shape == two.shape and torch.equal(one, two))
        if not same:
            self.refuse("a tensor made of data or of chance")
        tensor: Tensor = one
        return tensor

    def _call(self, a: fx.Node, b: fx.Node) -> Reference | Tensor:
        args, kwargs = self._aligned(a.args, b.args), self._aligned(a.kwargs, b.kwargs)
        if a.target is operator.getitem:
            self.roots[a] = self.roots[a.args[0]]  # type: ignore[index]
            return Reference(args[0].call, args[1])
        if not isinstance(a.target, OpOverload):
            self.refuse(str(a.target))
        self._check_memory(a)
        dtype = next((part.dtype for part in _outputs(a) if part is not None), None)
        target = MEANT.get(a.target, a.target)
        self.calls.append(TracedCall(target, tuple(args), dict(kwargs), self._shapes(a, b), dtype))
        return Reference(len(self.calls) + 1)

    def _shapes(self, a: fx.Node, b: fx.Node) -> tuple[BatchShape | None, ...]:
        pairs = zip(_outputs(a), _outputs(b), strict=True)
        return tuple(
            None if s is None or t is None else self._aligned(tuple(s.shape), tuple(t.shape))
            for s, t in pairs
        )

    def _check_memory(self, node: fx.Node) -> None:
        """What is overwritten may be no weight, and nobody may look at it by another name later."""
        target = node.target
        assert isinstance(target, OpOverload)
        root = node
        for argument, given in zip(target._schema.arguments, node.args, strict=False):
            alias = argument.alias_info
            if alias is None or not isinstance(given, fx.Node):
                continue
            root = self.roots[given]
            if alias.is_write:
                name = target.overloadpacket.__name__.strip("_")
                if root.op == "get_attr":
                    self.refuse(f"{name} in place, on a weight")
                self.stale |= {n for n, r in self.roots.items() if r is root}
        if target._schema.is_mutable and any(
            a.alias_info and a.alias_info.is_write for a in target._schema.arguments if a.kwarg_only
        ):
            self.refuse(f"{node.name} with out=")
        self.roots[node] = root

    def _aligned(self, one: Any, two: Any) -> Any:
        """The argument that both traces show, references and batch sizes told apart."""
        if isinstance(one, fx.Node):
            if self.twins.get(one) is not two:
                self.refuse(DATA_DEPENDENT)
            if one in self.stale:
                self.refuse("a step in place, on a tensor that has other views")
            return self.places[one]
        if isinstance(one, dict):
            return {name: self._aligned(value, two[name]) for name, value in one.items()}
        if isinstance(one, list | tuple):
            if len(one) != len(two):
                self.refuse(DATA_DEPENDENT)
            return [self._aligned(p, q) for p, q in zip(one, two, strict=True)]
        if isinstance(one, int) and one != two and one * SIZES[1] == two * SIZES[0]:
            return BatchSize(one // SIZES[0])
        if one != two:
            self.refuse("numbers that change with the data, the batch or by chance")
        return one

    def refuse(self, got: str) -> NoReturn:
        raise InputError(f"{self.where}: model must be made of {SUPPORTED}, got {got}.")


def _outputs(node: fx.Node) -> list[Tensor | None]:
    """What a node makes, by shape and kind; None for what is no tensor."""
    made = node.meta.get("val")
    parts = made if isinstance(made, tuple | list) else [made]
    return [part if isinstance(part, Tensor) else None for part in parts]
