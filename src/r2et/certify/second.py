"""Intervals of the second derivative of a network over a ball.

    H = sum over activations of J' diag(g sigma''(z)) J  (+ J' head'' J for more than two classes)

with J the derivative of the activation's input z by x, and g the gradient by its output. Each
factor has a box over the ball, and so has the product.
"""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.activation import Activation
from r2et.certify.boxes import Ball, Box, added, backward, between, forward, times
from r2et.certify.head import head_box
from r2et.certify.steps import Affine, Join, Program
from r2et.explain.base import Of


def hessian_box(program: Program, ball: Ball, target: Tensor, of: Of) -> Box:
    """The box of the Hessian, (B, n, n), of the explained log-odds or logit."""
    trail = forward(program, ball)
    logits = trail.boxes[program.output]
    head = head_box(logits, target, of)
    seen: dict[int, Box] = {}
    backward(program, trail, head, seen=seen)
    jacobians = jacobian_boxes(program, ball, trail.slopes)
    n = ball.x[0].numel()
    total = Box(ball.x.new_zeros(len(ball.x), n, n))
    for i, step in enumerate(program.steps, 1):
        if i not in seen or not isinstance(step.kind, Activation):
            continue
        z = trail.boxes[step.inputs[0]]
        bend = between(*step.kind.range(2, z.low, z.high))
        weight = times(seen[i], bend)
        part = _quadratic(jacobians[step.inputs[0]], weight)
        total = Box(total.centre + part.centre, added(total.spread, part.spread))
    if program.classes > 2 and of != "logit":
        part = _softmax_part(head, jacobians[program.output], target, of)
        total = Box(total.centre + part.centre, added(total.spread, part.spread))
    return total


def jacobian_boxes(program: Program, ball: Ball, slopes: dict[int, Box]) -> dict[int, Box]:
    """The box of the derivative by x of every value: (B or 1, n, ...)."""
    x = ball.x
    n = x[0].numel()
    eye = torch.eye(n, dtype=x.dtype, device=x.device).view(1, n, *x.shape[1:])
    found, used = {0: Box(eye)}, set(program.used())
    for i, step in enumerate(program.steps, 1):
        if i not in used:
            continue
        kind, first = step.kind, found[step.inputs[0]]
        if isinstance(kind, Affine):
            spread = None if first.spread is None else _along(kind, first.spread, absolute=True)
            found[i] = Box(_along(kind, first.centre), spread)
        elif isinstance(kind, Join):
            other = found[step.inputs[1]]
            centre = kind.signs[0] * first.centre + kind.signs[1] * other.centre
            found[i] = Box(centre, added(first.spread, other.spread))
        else:
            slope = slopes[i]
            wide = None if slope.spread is None else slope.spread[:, None]
            found[i] = times(first, Box(slope.centre[:, None], wide))
    return found


def _along(kind: Affine, slope: Tensor, *, absolute: bool = False) -> Tensor:
    moved = kind.push(slope.flatten(0, 1), "absolute" if absolute else "signed")
    return moved.view(*slope.shape[:2], *moved.shape[1:])


def _quadratic(jacobian: Box, weight: Box) -> Box:
    """J' diag(w) J for boxes (B or 1, n, units) and (B, units)."""
    flat = _flat(jacobian)
    wide = None if weight.spread is None else weight.spread.flatten(1)[:, None]
    return _matmul(times(flat, Box(weight.centre.flatten(1)[:, None], wide)), flat)


def _flat(box: Box) -> Box:
    return Box(box.centre.flatten(2), None if box.spread is None else box.spread.flatten(2))


def _matmul(a: Box, b: Box) -> Box:
    """A B' of boxes (B, n, units), (B, n, units) -> (B, n, n)."""
    back = b.centre.transpose(1, 2)
    centre = a.centre @ back
    spread: Tensor | None = None
    if a.spread is not None:
        spread = a.spread @ b.size.transpose(1, 2)
    if b.spread is not None:
        spread = added(spread, a.centre.abs() @ b.spread.transpose(1, 2))
    return Box(centre, spread)


def _softmax_part(head: Box, jacobian: Box, target: Tensor, of: Of) -> Box:
    """-J' (diag(p) - p p') J, p the softmax over the other classes."""
    sign = -1.0 if of == "loss" else 1.0
    own = torch.nn.functional.one_hot(target, head.centre.shape[1]).to(head.centre)
    share = Box(own - sign * head.centre, head.spread)
    first = _quadratic(jacobian, share)
    flat = _flat(jacobian)
    wide = None if share.spread is None else share.spread[:, None]
    mean = times(flat, Box(share.centre[:, None], wide))
    spread = None if mean.spread is None else mean.spread.sum(2, keepdim=True)
    centre = mean.centre.sum(2, keepdim=True)
    outer = _matmul(Box(centre, spread), Box(centre, spread))
    return Box(sign * (outer.centre - first.centre), added(outer.spread, first.spread))
