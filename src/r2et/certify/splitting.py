"""Units that may switch in the ball, looked at on one side and on the other.

Where the bounds of the whole ball fail, the unit of a piecewise-linear activation that leaves most
open is put on its right, then on its left; the ball is proved if both parts are, if need be by
splitting further. A unit of the first layer is a plane: the part of an l2 ball beyond it, at
distance t from the centre, lies in a smaller ball around the nearest point of the plane, of radius
sqrt(r^2 - t^2), so that units which cannot all switch at once do not count together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify.activation import Activation
from r2et.certify.boxes import Ball, Box, Norm, backward, forward
from r2et.certify.forms import Sides
from r2et.certify.head import head_at
from r2et.certify.pairs import Pairs, scores_over
from r2et.certify.question import Question

# The ball around the part beyond a plane also holds points outside the first ball; it is taken
# only where it is clearly smaller.
SHRUNK = 0.75


class Parts(NamedTuple):
    """Pieces of balls: the row each belongs to, a ball that holds it, and its units' sides."""

    rows: Tensor
    x: Tensor
    radius: Tensor
    sides: Sides


def proved_in_parts(question: Question, radius: Tensor, norm: Norm, depth: int) -> Tensor:
    """(B,) bool: the top k cannot change within the radius (B,), with up to `depth` splits."""
    proved = torch.ones(len(radius), dtype=torch.bool, device=radius.device)
    rows = torch.arange(len(radius), device=radius.device)
    parts = Parts(rows, question.x, radius, {})
    for level in range(depth + 1):
        here = replace(question.rows(parts.rows), x=parts.x)
        weights: Sides = {}
        planes: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        scores = scores_over(
            *(here.program, here.ball(parts.radius, norm), here.target, here.of),
            sides=parts.sides,
            weights=weights,
            planes=planes,
        )
        ok = Pairs(scores, parts.radius, norm, here.signed).border(here.top, here.side) > 0
        flat = torch.cat(list(weights.values()), 1) if weights else None
        largest = flat.amax(1) if flat is not None else torch.zeros_like(parts.radius)
        lost = ~ok & ((largest <= 0) | (level == depth))
        if not bool(lost.all()):
            lost = lost | (~ok & _flips(question, radius, norm, here, parts))
        proved[parts.rows[lost]] = False
        going = ~ok & proved[parts.rows]
        if not bool(going.any()):
            break
        assert flat is not None
        parts = _split(parts, weights, planes, going, flat.argmax(1), norm)
        if not len(parts.rows):
            break
    return proved


def _flips(question: Question, radius: Tensor, norm: Norm, here: Question, parts: Parts) -> Tensor:
    """(B,) bool: the top k is another at the middle of the part itself: no use going on."""
    program = here.program
    point = forward(program, Ball(here.x, parts.radius, "l2", exact=True))
    moved = (here.x - question.x[parts.rows]).flatten(1)
    far = moved.square().sum(1).sqrt() if norm == "l2" else moved.abs().amax(1)
    real = far <= radius[parts.rows]
    for i, side in parts.sides.items():
        kind, slope = program.steps[i - 1].kind, point.slopes[i]
        assert isinstance(kind, Activation)
        side = side.view(slope.centre.shape)
        z = point.boxes[program.steps[i - 1].inputs[0]].centre
        real &= (side * z >= -1e-6 * (1 + z.abs())).flatten(1).all(1)
        forced = torch.where(side > 0, kind.right[1], kind.left[1]).to(slope.centre)
        point.slopes[i] = Box(torch.where(side != 0, forced, slope.centre))
    head = head_at(point.boxes[program.output].centre, here.target, here.of)
    found = backward(program, point, Box(head), to_input=True)[0].centre.flatten(1)
    scores = found if here.signed else found.abs()
    weakest = scores.masked_fill(~here.top, torch.inf).amin(1)
    return real & (weakest <= scores.masked_fill(here.top, -torch.inf).amax(1))


def _split(
    parts: Parts,
    weights: Sides,
    planes: dict[int, tuple[Tensor, Tensor, Tensor]],
    going: Tensor,
    pick: Tensor,
    norm: Norm,
) -> Parts:
    """Each open part twice: with the picked unit right of its kink, and left of it."""
    pick, rows, radius = pick[going], parts.rows[going], parts.radius[going]
    x = parts.x[going]
    count, start = len(pick), 0
    sides: Sides = {}
    value, width = torch.zeros_like(radius), torch.zeros_like(radius)
    way = torch.zeros_like(x).flatten(1)
    for i, weight in weights.items():
        units = weight.shape[1]
        before = parts.sides[i][going] if i in parts.sides else weight.new_zeros(count, units)
        here = (pick >= start) & (pick < start + units)
        place = (pick - start).clamp(0, units - 1)[:, None]
        mark = torch.zeros_like(before).scatter(1, place, here.to(before)[:, None])
        sides[i] = torch.cat([before + mark, before - mark])
        if i in planes and norm == "l2":
            centre, noise, slope = planes[i]
            value = torch.where(here, centre[going].gather(1, place)[:, 0], value)
            width = torch.where(here, noise[going].gather(1, place)[:, 0], width)
            way = torch.where(here[:, None], slope.T[place[:, 0]], way)
        start += units
    length = way.square().sum(1).sqrt()
    plane = length > 0
    # A hair less far, for a float pre-activation may be on the other side within its rounding.
    far = (value.abs() - width).clamp(min=0) / torch.where(plane, length, 1.0) * (1 - 1e-9)
    unit = way / torch.where(plane, length, 1.0)[:, None]
    beyond = x - (value.sign() * far)[:, None].mul(unit).view(x.shape)
    smaller = (radius.square() - far.square()).clamp(min=0).sqrt() * (1 + 1e-9)
    found = []
    for side in (1.0, -1.0):
        across = plane & (value.sign() == -side) & (smaller < SHRUNK * radius)
        shape = (-1, *[1] * (x.ndim - 1))
        found.append(
            (
                torch.where(across.view(shape), beyond, x),
                torch.where(across, smaller, radius),
                ~(plane & (value.sign() == -side)) | (far <= radius),
            )
        )
    there, sizes, possible = (torch.cat(part) for part in zip(*found, strict=True))
    kept = {i: side[possible] for i, side in sides.items()}
    return Parts(rows.repeat(2)[possible], there[possible], sizes[possible], kept)
