"""A smooth hinge, slope z + weight softplus(z), joined into one activation, and its derivative.

Read as a sum of two values it would be bounded as if they could move apart.
"""

from __future__ import annotations

from typing import NamedTuple

from r2et.certify.graph.graph import Node
from r2et.certify.operators.activation import ActivationBackwardOp, ActivationOp
from r2et.certify.operators.arithmetic import AddOp
from r2et.certify.operators.curve import Curve
from r2et.certify.operators.curves import curve
from r2et.certify.operators.linear import Scale


class Multiple(NamedTuple):
    """factor * value."""

    factor: float
    value: int


def joined_hinges(nodes: dict[int, Node]) -> dict[int, Node]:
    """The same nodes, with sums that are smooth hinges, or derivatives of such, made one."""
    joined = dict(nodes)
    for value, node in nodes.items():
        if isinstance(node.operator, AddOp):
            a, b = (
                Multiple(sign * part.factor, part.value)
                for sign, part in zip(
                    node.operator.signs, (multiple(nodes, i) for i in node.inputs), strict=True
                )
            )
            hinge = _hinge(nodes, a, b) or _hinge(nodes, b, a)
            joined[value] = hinge or _derivative(nodes, a, b) or _derivative(nodes, b, a) or node
    return joined


def multiple(nodes: dict[int, Node], value: int) -> Multiple:
    """What a value is a plain multiple of, as far back as that goes."""
    factor = 1.0
    while value in nodes:
        node = nodes[value]
        scale = node.operator
        # A number; what is a weight may be trained.
        if not isinstance(scale, Scale) or scale.factor.ndim or scale.factor.requires_grad:
            break
        if scale.offset is not None and bool((scale.offset != 0).any()):
            break
        factor, value = factor * float(scale.factor), node.inputs[0]
    return Multiple(factor, value)


def _softplus(
    nodes: dict[int, Node], value: int, kind: type[ActivationOp] | type[ActivationBackwardOp]
) -> Curve | None:
    """The curve of a plain softplus that this value is made by."""
    operator = nodes[value].operator if value in nodes else None
    if not isinstance(operator, kind):
        return None
    made = operator.curve
    return made if made.name == "softplus" and made.settings[1:3] == (1.0, 0.0) else None


def _hinge(nodes: dict[int, Node], line: Multiple, bend: Multiple) -> Node | None:
    """slope z + weight softplus(z)."""
    plain = _softplus(nodes, bend.value, ActivationOp)
    if plain is None:
        return None
    (source,) = nodes[bend.value].inputs
    z = multiple(nodes, source)
    if z.value != line.value or z.factor == 0:
        return None
    made = _with(plain, bend.factor, line.factor / z.factor)
    return Node(ActivationOp(made), (source,))


def _derivative(nodes: dict[int, Node], line: Multiple, bend: Multiple) -> Node | None:
    """slope g + softplus'(z) weight g."""
    plain = _softplus(nodes, bend.value, ActivationBackwardOp)
    if plain is None:
        return None
    gradient, z = nodes[bend.value].inputs
    weighted = multiple(nodes, gradient)
    if weighted.value != line.value:
        return None
    made = _with(plain, bend.factor * weighted.factor, line.factor)
    return Node(ActivationBackwardOp(made), (line.value, z))


def _with(plain: Curve, weight: float, slope: float) -> Curve:
    beta, _, _, threshold = plain.settings
    return curve("softplus", beta, weight, slope, threshold)
