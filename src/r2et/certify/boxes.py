"""Intervals of every value of a network over a ball, and of its gradient on the way back.

A value y over the ball lies in centre - spread .. centre + spread. With `unit`, the spacing of the
model's floating-point numbers, spreads also cover what a float evaluation adds: each sum of m terms
is off by at most about m * unit * (sum of the terms' sizes), in any order of summation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from r2et.certify.activation import Activation
from r2et.certify.rounding import Sums, rounding
from r2et.certify.steps import Affine, Join, MaxPool, Program

Norm: TypeAlias = Literal["l2", "linf"]


class Box(NamedTuple):
    """centre -+ spread; a spread of None is 0."""

    centre: Tensor
    spread: Tensor | None = None

    @property
    def low(self) -> Tensor:
        return self.centre if self.spread is None else self.centre - self.spread

    @property
    def high(self) -> Tensor:
        return self.centre if self.spread is None else self.centre + self.spread

    @property
    def size(self) -> Tensor:
        """The largest absolute value."""
        size = self.centre.abs()
        return size if self.spread is None else size + self.spread


def between(low: Tensor, high: Tensor) -> Box:
    """The box with these ends."""
    return Box((low + high) / 2, (high - low) / 2)


def added(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """a + b, where None is 0."""
    if a is None or b is None:
        return a if b is None else b
    return a + b


def times(a: Box, b: Box) -> Box:
    """The smallest box of all products."""
    if a.spread is None or b.spread is None:
        point, other = (a.centre, b) if a.spread is None else (b.centre, a)
        spread = None if other.spread is None else point.abs() * other.spread
        return Box(point * other.centre, spread)
    ends = torch.stack([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
    return between(ends.amin(0), ends.amax(0))


@dataclass(frozen=True)
class Ball:
    """The values x + d with ||d|| <= radius (B,) in a norm, and the rounding unit of the model."""

    x: Tensor
    radius: Tensor
    norm: Norm
    unit: float = 0.0
    exact: bool = False  # x alone
    soft: float = 0.0  # give the jumps of a derivative the gradient of a sigmoid this wide

    def over_rows(self, like: Tensor) -> Tensor:
        """The radius in a shape that multiplies rows."""
        return self.radius.view(-1, *[1] * (like.ndim - 1))


@dataclass(frozen=True)
class Trail:
    """What a forward pass leaves: the box of each value, and of each activation's derivative.

    zone: the values that are affine in x. slopes[i]: derivative of the activation making value i.
    """

    boxes: dict[int, Box]
    slopes: dict[int, Box]
    zone: frozenset[int]


def affine_zone(program: Program) -> frozenset[int]:
    """Values that depend on x by affine steps alone."""
    zone = {0}
    for i, step in enumerate(program.steps, 1):
        if isinstance(step.kind, Affine | Join) and zone.issuperset(step.inputs):
            zone.add(i)
    return frozenset(zone)


def forward(
    program: Program, ball: Ball, point: Trail | None = None, *, logits: bool = True
) -> Trail:
    """Boxes over the ball of all values that the gradient, or also the logits, depend on.

    point: what is known at x itself.
    """
    zone = affine_zone(program)
    boxes: dict[int, Box] = {}
    scales: dict[int, Tensor] = {}
    slopes: dict[int, Box] = {}
    boxes[0] = Box(ball.x, None)
    if not ball.exact:
        scales[0] = torch.ones_like(ball.x[:1])
        boxes[0] = Box(ball.x, ball.over_rows(ball.x) * scales[0])
    used = set(program.used())
    needed = used if logits else program.bending() | (zone & used)
    for i, step in enumerate(program.steps, 1):
        if i not in used:
            continue
        kind, inputs = step.kind, step.inputs
        if isinstance(kind, Activation):
            slopes[i] = _slope(kind, boxes[inputs[0]], ball)
        if i not in needed:
            continue
        first = boxes[inputs[0]]
        if isinstance(kind, Affine):
            known = point.boxes[i].centre if point is not None and i in zone else None
            boxes[i] = _affine(kind, first, ball, scales.get(inputs[0]), known)
            if kind.local and inputs[0] in scales:
                scales[i] = kind.push(scales[inputs[0]], "absolute")
        elif isinstance(kind, Join):
            other = boxes[inputs[1]]
            centre = kind.signs[0] * first.centre + kind.signs[1] * other.centre
            spread = added(first.spread, other.spread)
            if ball.unit:
                spread = added(spread, rounding(4, ball.unit, first.size + other.size))
            boxes[i] = Box(centre, spread)
        elif isinstance(kind, MaxPool):
            boxes[i] = between(kind(first.low), kind(first.high))
        else:
            boxes[i] = _value(kind, first, ball)
    return Trail(boxes, slopes, zone)


def _affine(
    kind: Affine, box: Box, ball: Ball, scale: Tensor | None, centre: Tensor | None = None
) -> Box:
    if centre is None:
        centre, shift = kind.push(box.centre), kind.shift()
        centre = centre if shift is None else centre + shift
    spread = None
    if scale is not None:
        # Straight from the ball: the norm of each row of W, where a box would take its sum.
        if ball.norm == "l2" and not kind.local:
            spread = kind.push(scale.square(), "square").clamp(min=0).sqrt()
        else:
            spread = kind.push(scale, "absolute")
        spread = ball.over_rows(centre) * spread
    elif box.spread is not None:
        spread = kind.push(box.spread, "absolute")
    if ball.unit:
        if kind.terms:
            size, extra = kind.push(box.size, "absolute"), kind.size()
            size = size if extra is None else size + extra
            spread = added(spread, rounding(kind.terms + 4, ball.unit, size))
        if scale is not None and box.spread is not None:
            # The local steps before, if any, were rounded, too.
            left = box.spread - ball.over_rows(box.centre) * scale
            spread = added(spread, kind.push(left.clamp(min=0), "absolute"))
    return Box(centre, spread)


def _value(kind: Activation, box: Box, ball: Ball) -> Box:
    """An activation of a box."""
    if box.spread is None:
        return Box(kind.curves[0](box.centre))
    value = between(*kind.range(0, box.low, box.high))
    if not ball.unit:
        return value
    noise = rounding(8, ball.unit, value.size + kind.steep * box.size)
    noise = noise + ball.unit * kind.noise + kind.step
    return Box(value.centre, added(value.spread, noise))


def _slope(kind: Activation, box: Box, ball: Ball) -> Box:
    """An activation's derivative over a box."""
    if box.spread is None:
        return Box(kind.curves[1](box.centre))
    if ball.soft and kind.flat:
        ends = kind.left[1], kind.right[1], ball.soft
        a, b = _Step.apply(box.low, *ends), _Step.apply(box.high, *ends)  # type: ignore[no-untyped-call]
        return Box((a + b) / 2, (b - a) / 2 if kind.left[1] < kind.right[1] else (a - b) / 2)
    slope = between(*kind.range(1, box.low, box.high))
    if not ball.unit:
        return slope
    noise = ball.unit * (kind.noise + kind.wide * box.size) + kind.step
    return Box(slope.centre, added(slope.spread, noise + rounding(4, ball.unit, slope.size)))


class _Step(torch.autograd.Function):
    """A step at 0, with the gradient of a sigmoid: how a unit that switches learns not to."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, left: float, right: float, width: float) -> Tensor:
        ctx.save_for_backward(z)
        ctx.jump, ctx.width = right - left, width
        return torch.where(z > 0, z.new_tensor(right), z.new_tensor(left))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (z,) = ctx.saved_tensors
        share = torch.sigmoid(z / ctx.width)
        return gradient * (share * (1 - share)) * (ctx.jump / ctx.width), None, None, None


def backward(
    program: Program,
    trail: Trail,
    head: Box,
    unit: float = 0.0,
    *,
    to_input: bool = False,
    seen: dict[int, Box] | None = None,
) -> dict[int, Box]:
    """Boxes of the gradient of head . logits by those values affine in x that others build on.

    to_input: go on through these to x itself, value 0. seen: is given the gradient by each value.
    """
    gradients: dict[int, Box] = {program.output: head}
    sums = Sums(unit)
    for i in range(len(program.steps), 0, -1):
        if i not in gradients or (i in trail.zone and not to_input):
            continue
        step, gradient = program.steps[i - 1], gradients.pop(i)
        if seen is not None:
            seen[i] = gradient
        kind, inputs = step.kind, step.inputs
        if isinstance(kind, Affine):
            passed = [_pulled(kind, gradient, unit)]
        elif isinstance(kind, Join):
            passed = [Box(sign * gradient.centre, gradient.spread) for sign in kind.signs]
        elif isinstance(kind, MaxPool):
            passed = [unpooled(kind, trail.boxes[inputs[0]], gradient, unit)]
        else:
            passed = [times(gradient, trail.slopes[i])]
            if unit:
                first = passed[0]
                passed = [Box(first.centre, added(first.spread, rounding(4, unit, first.size)))]
        for value, box in zip(inputs, passed, strict=True):
            before = gradients.get(value)
            if before is not None:
                spread = added(before.spread, box.spread)
                if unit:
                    spread = added(spread, sums.noise(value, before.size, box.size))
                box = Box(before.centre + box.centre, spread)
            gradients[value] = box
    return gradients


def _pulled(kind: Affine, gradient: Box, unit: float) -> Box:
    centre = kind.pull(gradient.centre)
    spread = None if gradient.spread is None else kind.pull(gradient.spread, "absolute")
    if unit and kind.back:
        size = kind.pull(gradient.size, "absolute")
        spread = added(spread, rounding(kind.back + 4, unit, size))
    return Box(centre, spread)


def unpooled(kind: MaxPool, box: Box, gradient: Box, unit: float) -> Box:
    """Each window's gradient goes to its largest entry; to one of them where they tie."""
    infinity = torch.inf
    low, high = kind.windows(box.low, -infinity), kind.windows(box.high, -infinity)
    most_low, most_high = _others_largest(low), _others_largest(high)
    ones = torch.ones_like(low)
    # Not a number, from an overflow, is neither above nor below: it can be the largest.
    can = torch.where((high < most_low) | (high == -infinity), 0.0, ones)
    must = torch.where(low > most_high, ones, 0.0)
    share = between(must, can)
    flat = Box(
        gradient.centre.flatten(2)[:, :, None],
        None if gradient.spread is None else gradient.spread.flatten(2)[:, :, None],
    )
    parts = times(share, flat)
    centre = kind.gather(parts.centre)
    assert parts.spread is not None
    spread = kind.gather(parts.spread)
    if unit:
        window = kind.kernel[0] * kind.kernel[1]
        spread = spread + rounding(window + 4, unit, kind.gather(parts.size))
    return Box(centre, spread)


def _others_largest(windows: Tensor) -> Tensor:
    """For each entry of a window (B, C, window, positions), the largest of the others."""
    if windows.shape[2] == 1:
        return torch.full_like(windows, -torch.inf)
    top = windows.topk(2, dim=2)
    largest, second = top.values[:, :, :1], top.values[:, :, 1:]
    place = torch.arange(windows.shape[2], device=windows.device).view(1, 1, -1, 1)
    return torch.where(place == top.indices[:, :, :1], second, largest)
