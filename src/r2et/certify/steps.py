"""The steps a network is made of: affine maps, sums, activations, max-pools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_input

from r2et.certify.activation import Activation

# The entries of a matrix W as they are, their sizes |W|, or their squares.
Entries: TypeAlias = Literal["signed", "absolute", "square"]
Shape: TypeAlias = tuple[int, ...]


def entries(weight: Tensor, kind: Entries) -> Tensor:
    """W, |W| or W * W."""
    if kind == "signed":
        return weight
    return weight.abs() if kind == "absolute" else weight.square()


class Affine(ABC):
    """y = W v + b, one row at a time; `terms` is the longest sum in W v, `back` in W' g.

    local: each y depends on one v only, so that a ball stays a ball of other scale. `size` is
    what the float evaluation adds and subtracts beside W v, at most |size|.
    """

    terms: int = 1
    back: int = 1
    local: bool = False

    @abstractmethod
    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        """W v of a batch (B, ...)."""

    @abstractmethod
    def pull(self, g: Tensor, kind: Entries = "signed") -> Tensor:
        """W' g of a batch (B, ...)."""

    def shift(self) -> Tensor | None:
        """b, in a shape that broadcasts over rows."""
        return None

    def size(self) -> Tensor | None:
        """|b|, or more where b itself is a difference."""
        bias = self.shift()
        return None if bias is None else bias.abs()


@dataclass(frozen=True)
class Dense(Affine):
    """F.linear."""

    weight: Tensor
    bias: Tensor | None

    @property
    def terms(self) -> int:  # type: ignore[override]
        return self.weight.shape[1]

    @property
    def back(self) -> int:  # type: ignore[override]
        return self.weight.shape[0]

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        return F.linear(v, entries(self.weight, kind))

    def pull(self, g: Tensor, kind: Entries = "signed") -> Tensor:
        return g @ entries(self.weight, kind)

    def shift(self) -> Tensor | None:
        return self.bias


@dataclass(frozen=True)
class Conv(Affine):
    """F.conv2d with zero padding; shape: of one input (C, H, W)."""

    weight: Tensor
    bias: Tensor | None
    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int
    shape: Shape

    @property
    def terms(self) -> int:  # type: ignore[override]
        return self.weight[0].numel()

    @property
    def back(self) -> int:  # type: ignore[override]
        return self.weight.numel() // self.weight.shape[1]

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        weight = entries(self.weight, kind)
        return F.conv2d(v, weight, None, self.stride, self.padding, self.dilation, self.groups)

    def pull(self, g: Tensor, kind: Entries = "signed") -> Tensor:
        weight = entries(self.weight, kind)
        size = (len(g), *self.shape)
        settings = (self.stride, self.padding, self.dilation, self.groups)
        found: Tensor = conv2d_input(size, weight, g, *settings)  # type: ignore[no-untyped-call]
        return found

    def shift(self) -> Tensor | None:
        return None if self.bias is None else self.bias[:, None, None]


@dataclass(frozen=True)
class Scale(Affine):
    """factor * v + offset: numbers, or a normalisation in eval mode."""

    factor: Tensor
    offset: Tensor | None = None
    sizes: Tensor | None = None
    local = True
    terms = 4
    back = 4

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        return v * entries(self.factor, kind)

    def pull(self, g: Tensor, kind: Entries = "signed") -> Tensor:
        return g * entries(self.factor, kind)

    def shift(self) -> Tensor | None:
        return self.offset

    def size(self) -> Tensor | None:
        return super().size() if self.sizes is None else self.sizes


@dataclass(frozen=True)
class Reshape(Affine):
    """The same numbers in another shape; both shapes are one row's."""

    before: Shape
    after: Shape
    local = True
    terms = 0
    back = 0

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:  # noqa: ARG002
        return v.reshape(len(v), *self.after)

    def pull(self, g: Tensor, kind: Entries = "signed") -> Tensor:  # noqa: ARG002
        return g.reshape(len(g), *self.before)


@dataclass(frozen=True)
class Average(Affine):
    """A mean over windows or positions: `function` is linear, and none of its weights negative."""

    function: Callable[[Tensor], Tensor]
    shape: Shape
    terms: int
    back: int

    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        # Weights are at most 1, so that W * W <= W: enough for an upper bound.
        del kind
        return self.function(v)

    def pull(self, g: Tensor, kind: Entries = "signed") -> Tensor:
        del kind
        with torch.enable_grad():
            v = g.new_zeros(len(g), *self.shape).requires_grad_()
            graph = g.requires_grad
            (found,) = torch.autograd.grad(self.function(v), v, g, create_graph=graph)
        return found if graph else found.detach()


@dataclass(frozen=True)
class MaxPool:
    """F.max_pool2d without dilation; shape: of one input (C, H, W)."""

    kernel: Shape
    stride: Shape
    padding: Shape
    shape: Shape

    def __call__(self, v: Tensor) -> Tensor:
        return F.max_pool2d(v, self.kernel, self.stride, self.padding)

    def windows(self, v: Tensor, fill: float) -> Tensor:
        """(B, C, window, positions): what each window looks at, `fill` outside."""
        high, wide = self.padding
        padded = F.pad(v, (wide, wide, high, high), value=fill)
        found = F.unfold(padded.flatten(0, 1)[:, None], self.kernel, stride=self.stride)
        return found.view(*v.shape[:2], *found.shape[1:])

    def gather(self, parts: Tensor) -> Tensor:
        """Sum (B, C, window, positions) back into one input's places: (B, C, H, W)."""
        flat = parts.flatten(0, 1)
        size = self.shape[1:]
        found = F.fold(flat, size, self.kernel, padding=self.padding, stride=self.stride)
        return found.view(*parts.shape[:2], *size)


@dataclass(frozen=True)
class Join:
    """sign[0] * a + sign[1] * b."""

    signs: tuple[float, float]


Kind: TypeAlias = Affine | MaxPool | Join | Activation


@dataclass(frozen=True)
class Step:
    """What is done, to which earlier values; value 0 is x, value i + 1 is made by step i."""

    kind: Kind
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A network as a list of steps, whose last one used gives the logits (B, C)."""

    steps: tuple[Step, ...]
    output: int
    derived: bool  # some weights are computed anew at each forward pass
    width: int = 1  # numbers per row in all values together
    classes: int = 1  # how many logits there are

    def exact(self) -> Program:
        """The same steps with copies of these very weights, in float64."""
        steps = tuple(replace(step, kind=_exact(step.kind)) for step in self.steps)
        return replace(self, steps=steps)

    def used(self) -> list[int]:
        """The values that the logits depend on, in order."""
        return sorted(self._sources({self.output}))

    def bending(self) -> set[int]:
        """The values, among those, that the network's derivative depends on."""
        used = self._sources({self.output})
        steps = enumerate(self.steps, 1)
        bent = [s for i, s in steps if i in used and not isinstance(s.kind, Affine | Join)]
        return self._sources({0, *(value for step in bent for value in step.inputs)})

    def piecewise_linear(self) -> int:
        """How many piecewise-linear activations there are."""
        return sum(isinstance(step.kind, Activation) and step.kind.flat for step in self.steps)

    def _sources(self, found: set[int]) -> set[int]:
        for i in range(len(self.steps), 0, -1):
            if i in found:
                found.update(self.steps[i - 1].inputs)
        return found


def _exact(kind: Kind) -> Kind:
    """With copies of its tensors in float64."""
    if isinstance(kind, Dense | Conv | Scale):
        tensors = {f.name: getattr(kind, f.name) for f in fields(kind)}
        tensors = {name: t for name, t in tensors.items() if isinstance(t, Tensor)}
        copies = {name: t.detach().to(torch.float64, copy=True) for name, t in tensors.items()}
        return replace(kind, **copies)
    return kind
