"""A network and its backward pass as one graph of operators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from r2et.certify.operators.activation import ActivationBackwardOp
from r2et.certify.operators.base import LinearCombination, LinearOperator, Operator, Shape

# The graph's two inputs: x, and the derivative of what is explained by the logits.
INPUT, OUTPUT_GRADIENT = 0, 1


@dataclass(frozen=True)
class Node:
    """An operator, and the values it is given."""

    operator: Operator
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """(x, output gradient) -> (logits, gradient by x), as the model's own arithmetic runs it.

    nodes: by the number of the value that each makes, in order; 0 and 1 are the inputs.
    logits: the value (B, C).
    gradient: the value of x's shape.
    classes: C.
    shapes: of one row of each value.
    dtype: of the weights.
    lasting: its operators hold the model's own weights, so that it follows when these are trained.
    """

    nodes: dict[int, Node]
    logits: int
    gradient: int
    classes: int
    shapes: dict[int, Shape]
    dtype: torch.dtype
    lasting: bool = False

    @cached_property
    def width(self) -> int:
        """Numbers per row in all values together."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @cached_property
    def bent_width(self) -> int:
        """Numbers per row in what goes into the linear suffix and is not affine in x."""
        used = self.ancestors(self.logits, *self.linear_suffix[0])
        return sum(math.prod(self.shapes[v]) for v in used if v not in self.affine_prefix)

    @cached_property
    def nonlinear_width(self) -> int:
        """Numbers per row in all values that nonlinear operators make."""
        made = (v for v, node in self.nodes.items() if not _is_linear(node.operator))
        return sum(math.prod(self.shapes[v]) for v in made)

    @cached_property
    def is_smooth_somewhere(self) -> bool:
        """Whether some operator is neither linear nor kinked, as tanh and gates are."""
        return any(not _is_linear(o) and not o.kinked for o in self.operators())

    def ancestors(self, *values: int) -> list[int]:
        """What these values are made of, themselves included, in order."""
        if values not in self._ancestors:
            needed = set(values)
            for value in sorted(self.nodes, reverse=True):
                if value in needed:
                    needed.update(self.nodes[value].inputs)
            self._ancestors[values] = sorted(needed)
        return self._ancestors[values]

    @cached_property
    def _ancestors(self) -> dict[tuple[int, ...], list[int]]:
        return {}

    @cached_property
    def affine_prefix(self) -> frozenset[int]:
        """The values that are affine in x."""
        prefix = {INPUT}
        for value, node in self.nodes.items():
            if _is_linear(node.operator) and prefix.issuperset(node.inputs):
                prefix.add(value)
        return frozenset(prefix)

    @cached_property
    def constants(self) -> frozenset[int]:
        """The values that depend on the output gradient alone."""
        constants = {OUTPUT_GRADIENT}
        for value, node in self.nodes.items():
            if node.inputs and constants.issuperset(node.inputs):
                constants.add(value)
        return frozenset(constants)

    @cached_property
    def linear_suffix(self) -> tuple[list[int], list[int]]:
        """The last linear operators before the gradient: the values that go in, and their own.

        gradient = M u, u what goes in: what is proved about pairs of entries is proved by M.
        """
        inside: list[int] = []
        sources: set[int] = set()
        reached = {self.gradient}
        for value in sorted(self.ancestors(self.gradient), reverse=True):
            if value not in reached:
                continue
            node = self.nodes.get(value)
            if node is not None and _is_linear(node.operator):
                inside.append(value)
                reached.update(node.inputs)
            else:
                sources.add(value)
        return sorted(sources), sorted(inside)

    @cached_property
    def suffix_map(self) -> tuple[Tensor, Tensor]:
        """M (n, H) and c (n,) of gradient = M u + c, u what goes into the linear suffix, in order.

        c is 0 unless something is added to a gradient, as hooks may.
        """
        sources, _ = self.linear_suffix
        sizes = [math.prod(self.shapes[v]) for v in sources]
        # One row for each entry of u, and one that is 0 throughout.
        rows = torch.split(torch.eye(sum(sizes) + 1, sum(sizes), dtype=self.dtype), sizes, 1)
        values = {v: r.reshape(-1, *self.shapes[v]) for v, r in zip(sources, rows, strict=True)}
        for value in self.linear_suffix[1]:
            node = self.nodes[value]
            inputs = [values[i] for i in node.inputs]
            if isinstance(node.operator, LinearOperator):
                values[value] = node.operator.value(inputs[0])
            else:
                assert isinstance(node.operator, LinearCombination)
                values[value] = node.operator.combined(inputs, "signed")
        made = values[self.gradient].flatten(1)
        return (made[:-1] - made[-1]).T.contiguous(), made[-1]

    @cached_property
    def piecewise_linear_layers(self) -> list[int]:
        """The values that backward operators of piecewise-linear activations make."""
        used = self.ancestors(self.gradient)
        return [v for v in used if v in self.nodes and _is_piecewise_linear(self.nodes[v].operator)]

    def operators(self) -> Iterable[Operator]:
        """All those that the logits or the gradient depend on."""
        for value in self.ancestors(self.logits, self.gradient):
            if value in self.nodes:
                yield self.nodes[value].operator


def _is_linear(operator: Operator) -> bool:
    return isinstance(operator, LinearOperator | LinearCombination)


def _is_piecewise_linear(operator: Operator) -> bool:
    return isinstance(operator, ActivationBackwardOp) and operator.curve.piecewise_linear
