"""Intervals of the second derivative of what is explained, over a ball.

The gradient is a value of the graph, so its derivative by x is the Hessian:

    H = sum over the nonlinear operators of the backward pass of A J

J the derivative by x of what the operator makes of values of the forward pass, and A that of the
gradient by what it makes. Each factor has a box over the ball, and so has the product. For an
activation, whose backward operator makes g sigma'(z), this is A diag(g sigma''(z)) dz/dx.
"""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, added, box_sum
from r2et.certify.bounds.output_gradient import is_constant, output_gradient_jacobian
from r2et.certify.bounds.propagation import Boxes, interval_bounds
from r2et.certify.graph.graph import INPUT, OUTPUT_GRADIENT, Graph
from r2et.explain.base import Of


def hessian_box(graph: Graph, ball: Ball, target: Tensor, of: Of) -> Box:
    """The box of the Hessian, (B, n, n), of the explained log-odds or logit."""
    x = ball.x
    n = x[0].numel()
    boxes = interval_bounds(graph, ball, target, of)
    eye = torch.eye(n, dtype=x.dtype, device=x.device).view(1, n, *x.shape[1:])
    jacobians: Boxes = {INPUT: Box(eye)}
    if is_constant(graph.classes, of):
        jacobians[OUTPUT_GRADIENT] = Box(x.new_zeros(1, n, graph.classes))
    else:
        logits = _jacobian(graph, boxes, jacobians, graph.logits)
        head = boxes[OUTPUT_GRADIENT]
        jacobians[OUTPUT_GRADIENT] = output_gradient_jacobian(head, logits, target, of)
    total = Box(x.new_zeros(len(x), n, n))
    adjoints: Boxes = {graph.gradient: Box(eye)}
    for value in reversed(graph.ancestors(graph.gradient)):
        if value not in adjoints:
            continue
        adjoint, node = adjoints.pop(value), graph.nodes.get(value)
        if node is None:  # x itself, or the output's gradient
            total = box_sum(total, _contracted(adjoint, jacobians[value]))
            continue
        values = [boxes[i] for i in node.inputs]
        passed = node.operator.adjoint(values, adjoint)
        for source, part in zip(node.inputs, passed, strict=True):
            if part is not None:
                known = adjoints.get(source)
                adjoints[source] = part if known is None else box_sum(known, part)
        if None in passed:
            moved = [
                _jacobian(graph, boxes, jacobians, source) if part is None else _still(box, n)
                for source, part, box in zip(node.inputs, passed, values, strict=True)
            ]
            own = node.operator.jacobian(values, moved)
            total = box_sum(total, _contracted(adjoint, own))
    return total


def _jacobian(graph: Graph, boxes: Boxes, jacobians: Boxes, end: int) -> Box:
    """The box of the derivative by x (B or 1, n, ...) of a value; adds it to the known ones."""
    for value in graph.ancestors(end):
        if value not in jacobians:
            node = graph.nodes[value]
            values = [boxes[i] for i in node.inputs]
            jacobians[value] = node.operator.jacobian(values, [jacobians[i] for i in node.inputs])
    return jacobians[end]


def _still(box: Box, n: int) -> Box:
    """The derivative of a value that is held."""
    return Box(box.centre.new_zeros(1, n, *box.centre.shape[1:]))


def _contracted(a: Box, b: Box) -> Box:
    """A B' of boxes (B or 1, n, ...), over all but the first two dimensions: (B or 1, n, n)."""
    one, two = a.centre.flatten(2), b.centre.flatten(2).transpose(1, 2)
    spread: Tensor | None = None
    if a.spread is not None:
        spread = a.spread.flatten(2) @ b.size.flatten(2).transpose(1, 2)
    if b.spread is not None:
        spread = added(spread, one.abs() @ b.spread.flatten(2).transpose(1, 2))
    return Box(one @ two, spread)
