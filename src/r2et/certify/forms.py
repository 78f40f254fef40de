"""Values of a network as linear functions of the perturbation, with what is left over bounded.

Over the ball a value is y(d) = centre + slope . d -+ spread. Unlike boxes, forms remember that all
units move with the same d: their sum moves by the norm of the summed slopes, not by the sum of the
norms. Every form also carries the interval that either way of bounding leaves.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from r2et.certify.activation import Activation
from r2et.certify.boxes import Ball, Box, Norm, affine_zone, between, forward, unpooled
from r2et.certify.rounding import Sums, rounding
from r2et.certify.steps import Affine, Join, MaxPool, Program

Sides: TypeAlias = dict[int, Tensor]  # by activation: (B, ...) of 1, -1 or 0 for unknown

SAMPLES = 6  # interior points at which a curve is compared with its line


class Form(NamedTuple):
    """centre, spread, low, high: (B, ...). slope: (B, n, ...), or (1, n, ...) for all rows."""

    centre: Tensor
    slope: Tensor
    spread: Tensor
    low: Tensor
    high: Tensor

    @property
    def size(self) -> Tensor:
        return torch.maximum(self.low.abs(), self.high.abs())


class Lines(NamedTuple):
    """What a forward pass leaves: the form of each value, and of each activation's derivative."""

    values: dict[int, Form]
    slopes: dict[int, Form]
    zone: frozenset[int]


def dual(slope: Tensor, norm: Norm) -> Tensor:
    """The largest slope . d over the unit ball: (B, n, ...) -> (B, ...)."""
    if norm == "l2":
        return slope.square().sum(1).sqrt()
    return slope.abs().sum(1)


def formed(centre: Tensor, slope: Tensor, spread: Tensor, ball: Ball, box: Box | None) -> Form:
    """A form with the smaller of its own interval and the one already known."""
    reach = ball.over_rows(centre) * dual(slope, ball.norm) + spread
    low, high = centre - reach, centre + reach
    if box is not None:
        low, high = torch.maximum(low, box.low), torch.minimum(high, box.high)
        # Both hold, so they meet; rounding must not turn a point inside out.
        low, high = torch.minimum(low, high), torch.maximum(low, high)
    return Form(centre, slope, spread, low, high)


def along(function: Affine, slope: Tensor, *, back: bool = False) -> Tensor:
    """W applied to each direction of a slope (B, n, ...)."""
    flat = slope.flatten(0, 1)
    moved = function.pull(flat) if back else function.push(flat)
    return moved.view(*slope.shape[:2], *moved.shape[1:])


def forward_forms(
    program: Program, ball: Ball, *, logits: bool = True, sides: Sides | None = None
) -> Lines:
    """Forms of all values over the ball that the gradient, or also the logits, depend on.

    sides: the part of the ball where chosen units of piecewise-linear activations are on one side.
    """
    zone = affine_zone(program)
    straight = forward(program, ball, logits=False)  # exact for values affine in x, up to rounding
    values: dict[int, Form] = {0: _input(ball)}
    slopes: dict[int, Form] = {}
    used, needed = set(program.used()), program.bending()
    needed = used if logits else needed | (zone & used)
    for i, step in enumerate(program.steps, 1):
        if i not in used:
            continue
        kind = step.kind
        if isinstance(kind, Activation):
            side = None if sides is None else sides.get(i)
            slopes[i] = _curved(kind, 1, values[step.inputs[0]], ball, side)
        if i not in needed:
            continue
        first = values[step.inputs[0]]
        if isinstance(kind, Affine):
            known = straight.boxes[i] if i in zone else None
            values[i] = _affine(kind, first, ball, known)
        elif isinstance(kind, Join):
            values[i] = _join(kind, first, values[step.inputs[1]], ball)
        elif isinstance(kind, MaxPool):
            values[i] = _pooled(kind, first)
        else:
            values[i] = _curved(kind, 0, first, ball, None if sides is None else sides.get(i))
    return Lines(values, slopes, zone)


def _input(ball: Ball) -> Form:
    x = ball.x
    n = x[0].numel()
    slope = torch.eye(n, dtype=x.dtype, device=x.device).view(1, n, *x.shape[1:])
    none = torch.zeros_like(x)
    reach = ball.over_rows(x) + none
    return Form(x, slope, none, x - reach, x + reach)


def _affine(kind: Affine, form: Form, ball: Ball, known: Box | None) -> Form:
    centre, shift = kind.push(form.centre), kind.shift()
    centre = centre if shift is None else centre + shift
    slope, spread = along(kind, form.slope), kind.push(form.spread, "absolute")
    inside = between(form.low, form.high)
    assert inside.spread is not None
    middle = kind.push(inside.centre)
    middle = middle if shift is None else middle + shift
    wide = kind.push(inside.spread, "absolute")
    if kind.terms:
        size, extra = kind.push(form.size, "absolute"), kind.size()
        noise = rounding(kind.terms + 4, ball.unit, size if extra is None else size + extra)
        spread, wide = spread + noise, wide + noise
    box = Box(middle, wide)
    if known is not None:
        box = between(torch.maximum(box.low, known.low), torch.minimum(box.high, known.high))
    return formed(centre, slope, spread, ball, box)


def _join(kind: Join, a: Form, b: Form, ball: Ball) -> Form:
    one, two = kind.signs
    noise = rounding(4, ball.unit, a.size + b.size)
    return _added(_signed(a, one), _signed(b, two), ball, noise)


def _added(a: Form, b: Form, ball: Ball, noise: Tensor) -> Form:
    box_a, box_b = between(a.low, a.high), between(b.low, b.high)
    assert box_a.spread is not None
    assert box_b.spread is not None
    box = Box(box_a.centre + box_b.centre, box_a.spread + box_b.spread + noise)
    return formed(a.centre + b.centre, a.slope + b.slope, a.spread + b.spread + noise, ball, box)


def _pooled(kind: MaxPool, form: Form) -> Form:
    """Only the interval survives a max-pool."""
    box = between(kind(form.low), kind(form.high))
    assert box.spread is not None
    slope = box.centre.new_zeros(1, form.slope.shape[1], *box.centre.shape[1:])
    return Form(box.centre, slope, box.spread, box.low, box.high)


def _curved(
    kind: Activation, order: int, form: Form, ball: Ball, side: Tensor | None = None
) -> Form:
    """The activation (order 0) or its derivative (1) of a form: a line and what it leaves.

    side: 1 or -1 where a unit is known to be right or left of its kink, 0 elsewhere.
    """
    low, high = form.low, form.high
    if side is not None:
        side = side.view(form.centre.shape)
        # Beyond the kink by a hair at most, where a float evaluation may be on the other side.
        low = torch.where(side > 0, low.clamp(min=0), low)
        high = torch.where(side < 0, high.clamp(max=0), torch.maximum(high, low))
        low = torch.minimum(low, high)
    rate, least, most = line(kind, order, low, high)
    if side is not None:
        slope = torch.where(side > 0, kind.right[1], kind.left[1]).to(low)
        rate = torch.where(side != 0, slope if order == 0 else 0.0, rate)
        constant = torch.zeros_like(slope) if order == 0 else slope
        least = torch.where(side != 0, constant, least)
        most = torch.where(side != 0, constant, most)
    middle, wide = (least + most) / 2, (most - least) / 2
    noise = ball.unit * (kind.noise + kind.wide * form.size) + kind.step
    bottom, top = kind.range(order, low, high)
    if side is not None and order == 1:
        bottom, top = torch.where(side != 0, least, bottom), torch.where(side != 0, most, top)
    box = between(bottom, top)
    assert box.spread is not None
    if order == 0:
        noise = rounding(8, ball.unit, box.size + kind.steep * form.size)
        noise = noise + ball.unit * kind.noise + kind.step
    noise = noise + rounding(8, ball.unit, box.size + rate.abs() * form.size)
    box = Box(box.centre, box.spread + noise)
    centre = rate * form.centre + middle
    return formed(
        centre, rate[:, None] * form.slope, rate.abs() * form.spread + wide + noise, ball, box
    )


def line(kind: Activation, order: int, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """rate, least, most: the order-th derivative lies in rate z + least .. rate z + most.

    The rate is the chord's, or 0 where that is no worse. Between neighbouring samples at distance
    h a curve leaves its chord by at most h^2 / 8 times its largest second derivative there.
    """
    curve = kind.curves[order]
    width = high - low
    start, end = kind.limit(order, low, "right"), kind.limit(order, high, "left")
    flat = width <= 1e-9 * (1 + low.abs() + high.abs())
    rate = torch.where(flat, 0.0, (end - start) / torch.where(flat, 1.0, width))
    ends = [kind.limit(order, low, "left") - rate * low, kind.limit(order, high, "right")]
    ends[1] = ends[1] - rate * high
    ends += [start - rate * low, end - rate * high]
    if not kind.flat:
        for m in range(1, SAMPLES + 1):
            z = low + (m / (SAMPLES + 1)) * width
            ends.append(curve(z) - rate * z)
    if kind.kink is not None:
        inside = (low <= kind.kink) & (high >= kind.kink)
        for side in (kind.left[order], kind.right[order]):
            ends.append(torch.where(inside, side - rate * kind.kink, ends[0]))
    stacked = torch.stack(ends)
    least, most = stacked.amin(0), stacked.amax(0)
    if not kind.flat:
        bend = kind.range(order + 2, low, high)
        step = (width / (SAMPLES + 1)).square() / 8
        # Where the curve bends down it is above its chords, where it bends up below.
        least = least - step * bend[1].clamp(min=0)
        most = most - step * bend[0].clamp(max=0)
    # Over a wide interval a constant may be closer.
    bottom, top = kind.range(order, low, high)
    level = most - least >= top - bottom
    rate = torch.where(level, 0.0, rate)
    return rate, torch.where(level, bottom, least), torch.where(level, top, most)


def backward_forms(
    program: Program, lines: Lines, head: Form, ball: Ball, seen: dict[int, Form] | None = None
) -> dict[int, Form]:
    """Forms of the gradient of head . logits by the values affine in x that others build on.

    seen: is given the gradient by each value on the way.
    """
    gradients: dict[int, Form] = {program.output: head}
    used, sums = set(program.used()), Sums(ball.unit)
    for i in range(len(program.steps), 0, -1):
        if i not in used or i in lines.zone:
            continue
        step, form = program.steps[i - 1], gradients.pop(i)
        if seen is not None:
            seen[i] = form
        kind = step.kind
        if isinstance(kind, Affine):
            passed = [pulled(kind, form, ball)]
        elif isinstance(kind, Join):
            passed = [_signed(form, sign) for sign in kind.signs]
        elif isinstance(kind, MaxPool):
            passed = [_unpooled(kind, lines.values[step.inputs[0]], form, ball)]
        else:
            passed = [product(form, lines.slopes[i], ball)]
        for value, part in zip(step.inputs, passed, strict=True):
            if value in gradients:
                before = gradients[value]
                part = _added(before, part, ball, sums.noise(value, before.size, part.size))
            gradients[value] = part
    return gradients


def _signed(form: Form, sign: float) -> Form:
    if sign == 1:
        return form
    return Form(-form.centre, -form.slope, form.spread, -form.high, -form.low)


def pulled(kind: Affine, form: Form, ball: Ball) -> Form:
    """W' of a gradient."""
    inside = between(form.low, form.high)
    assert inside.spread is not None
    wide, spread = kind.pull(inside.spread, "absolute"), kind.pull(form.spread, "absolute")
    if kind.back:
        noise = rounding(kind.back + 4, ball.unit, kind.pull(form.size, "absolute"))
        wide, spread = wide + noise, spread + noise
    box = Box(kind.pull(inside.centre), wide)
    return formed(kind.pull(form.centre), along(kind, form.slope, back=True), spread, ball, box)


def product(a: Form, b: Form, ball: Ball) -> Form:
    """a b = a* b + b* a - a* b* + (a - a*)(b - b*), the last bounded, at the middles a* and b*."""
    mid_a, mid_b = (a.low + a.high) / 2, (b.low + b.high) / 2
    half_a, half_b = (a.high - a.low) / 2, (b.high - b.low) / 2
    centre = mid_a * b.centre + mid_b * a.centre - mid_a * mid_b
    slope = mid_a[:, None] * b.slope + mid_b[:, None] * a.slope
    spread = mid_a.abs() * b.spread + mid_b.abs() * a.spread + half_a * half_b
    ends = torch.stack([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
    box = between(ends.amin(0), ends.amax(0))
    assert box.spread is not None
    noise = rounding(8, ball.unit, a.size * b.size)
    return formed(centre, slope, spread + noise, ball, Box(box.centre, box.spread + noise))


def _unpooled(kind: MaxPool, value: Form, gradient: Form, ball: Ball) -> Form:
    """The interval of what each entry of a window receives; see boxes."""
    box = unpooled(
        kind, between(value.low, value.high), between(gradient.low, gradient.high), ball.unit
    )
    assert box.spread is not None
    slope = box.centre.new_zeros(1, gradient.slope.shape[1], *box.centre.shape[1:])
    return Form(box.centre, slope, box.spread, box.low, box.high)
