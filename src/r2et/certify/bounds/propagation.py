"""Bounds of every value of a graph over a ball: one pass over its operators, in order."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box
from r2et.certify.bounds.linear_bounds import (
    LinearBound,
    constant_bound,
    input_bound,
    promoted,
)
from r2et.certify.bounds.output_gradient import (
    is_constant,
    output_gradient,
    output_gradient_bound,
    output_gradient_box,
)
from r2et.certify.graph.graph import INPUT, OUTPUT_GRADIENT, Graph
from r2et.certify.operators.base import LinearCombination, LinearOperator
from r2et.explain.base import Of

# By value: (B, units) of 1 or -1 where it is known to be above or below 0, else 0.
Sides: TypeAlias = dict[int, Tensor]
Boxes: TypeAlias = dict[int, Box]
LinearBounds: TypeAlias = dict[int, LinearBound]


def extend_boxes(graph: Graph, ball: Ball, boxes: Boxes, end: int, point: Boxes | None) -> None:
    """Add the boxes of what `end` depends on to those that are known."""
    for value in graph.ancestors(end):
        if value in boxes:
            continue
        node = graph.nodes[value]
        operator, inputs = node.operator, [boxes[i] for i in node.inputs]
        prefix = isinstance(operator, LinearOperator) and value in graph.affine_prefix
        if point is not None and prefix:
            assert isinstance(operator, LinearOperator)
            boxes[value] = operator.interval(ball, *inputs, centre=point[value].centre)
        else:
            boxes[value] = operator.interval(ball, *inputs)


def interval_bounds(
    graph: Graph,
    ball: Ball,
    target: Tensor,
    of: Of,
    *,
    end: int | None = None,
    point: Boxes | None = None,
) -> Boxes:
    """Boxes of all values that the gradient, or the value `end`, depends on.

    point: what is known at x itself.
    """
    boxes: Boxes = {INPUT: ball.box()}
    if is_constant(graph.classes, of):
        zero = ball.x.new_zeros(len(ball.x), graph.classes)
        boxes[OUTPUT_GRADIENT] = Box(output_gradient(zero, target, of))
    else:
        extend_boxes(graph, ball, boxes, graph.logits, point)
        logits = boxes[graph.logits]
        boxes[OUTPUT_GRADIENT] = output_gradient_box(logits, target, of, ball.unit)
    extend_boxes(graph, ball, boxes, graph.gradient if end is None else end, point)
    return boxes


def linear_bounds(
    graph: Graph,
    ball: Ball,
    target: Tensor,
    of: Of,
    *,
    ends: list[int],
    sides: Sides | None = None,
) -> LinearBounds:
    """Linear bounds of all that these values depend on.

    sides: the part of the ball where chosen values are on one side of 0.
    """
    bounds: LinearBounds = {INPUT: input_bound(ball)}

    def extend(*wanted: int) -> None:
        for value in graph.ancestors(*wanted):
            if value not in bounds:
                node = graph.nodes[value]
                side = None if sides is None else sides.get(node.inputs[-1])
                inputs = [bounds[i] for i in node.inputs]
                made = node.operator.linear(ball, *inputs, side=side)
                linear = isinstance(node.operator, LinearOperator | LinearCombination)
                bounds[value] = made if linear else promoted(made, ball)

    if is_constant(graph.classes, of):
        zero = ball.x.new_zeros(len(ball.x), graph.classes)
        head = constant_bound(output_gradient(zero, target, of), ball.x[0].numel())
    else:
        extend(graph.logits)
        head = output_gradient_bound(bounds[graph.logits], target, of, ball)
    bounds[OUTPUT_GRADIENT] = head
    extend(*ends)
    return bounds
