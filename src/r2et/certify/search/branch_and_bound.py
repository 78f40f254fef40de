"""Branch and bound: units that may switch in the ball, looked at on one side and on the other.

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

from r2et.certify.bounds.domain import Domain
from r2et.certify.bounds.interval_bounds import Ball, Box, Norm
from r2et.certify.bounds.propagation import LinearBounds, Sides, interval_bounds
from r2et.certify.graph import INPUT, OUTPUT_GRADIENT
from r2et.certify.operators.activation import ActivationBackwardOp
from r2et.certify.problem import CertificationProblem

# The ball around the part beyond a plane also holds points outside the first ball; it is taken
# only where it is clearly smaller.
SHRUNK = 0.75
PLANES = 256  # widest first layer whose planes are looked at together
STEPS = 60  # of the search for a proof that they do not meet in the ball


class Plane(NamedTuple):
    """Units whose inputs are affine in x: z = centre + slope . d -+ noise."""

    centre: Tensor  # (B, H)
    noise: Tensor  # (B, H)
    slope: Tensor  # (n, H)


class Parts(NamedTuple):
    """Pieces of balls: the row each belongs to, a ball that holds it, and its units' sides."""

    rows: Tensor
    x: Tensor
    radius: Tensor
    sides: Sides


def proved_in_parts(
    problem: CertificationProblem, radius: Tensor, norm: Norm, depth: int
) -> Tensor:
    """(B,) bool: the top k cannot change within the radius (B,), with up to `depth` splits."""
    radius = problem.outer_radius(radius)
    proved = torch.ones(len(radius), dtype=torch.bool, device=radius.device)
    rows = torch.arange(len(radius), device=radius.device)
    parts = Parts(rows, problem.x, radius, {})
    for level in range(depth + 1):
        if level:
            # Much cheaper than bounds: is there a point inside at which the top k is another?
            proved[parts.rows[_flips(problem, radius, norm, parts)]] = False
            parts = _some(parts, proved[parts.rows])
            if not len(parts.rows):
                break
        here = replace(problem.rows(parts.rows), x=parts.x)
        pairs, bounds = here.pairwise_bounds(here.ball(parts.radius, norm), parts.sides)
        weights, planes = open_units(here, parts, norm, bounds)
        ball = here.ball(parts.radius, norm)
        ok = pairs.border(here.top, here.side) > here.visible(*pairs.interval(), ball.reach)
        if level and norm == "l2" and not bool(ok.all()):
            ok = ok | _empty(problem, radius, parts, planes, ok)
        flat = torch.cat(list(weights.values()), 1) if weights else None
        largest = flat.amax(1) if flat is not None else torch.zeros_like(parts.radius)
        lost = ~ok & ((largest <= 0) | (level == depth))
        proved[parts.rows[lost]] = False
        going = ~ok & proved[parts.rows]
        if not bool(going.any()):
            break
        assert flat is not None
        parts = _split(parts, weights, planes, going, flat.argmax(1), norm, problem.domain)
    return proved


def open_units(
    here: CertificationProblem, parts: Parts, norm: Norm, bounds: LinearBounds
) -> tuple[Sides, dict[int, Plane]]:
    """Which units may switch, by the value that they are applied to.

    First how much their derivatives leave open, times the size of the gradient that they multiply:
    (B, units). Then, of those applied to values that are affine in x, the planes.
    """
    graph, ball = here.graph, here.ball(parts.radius, norm)
    weights: Sides = {}
    planes: dict[int, Plane] = {}
    for value in graph.piecewise_linear_layers:
        operator, (gradient, source) = graph.nodes[value].operator, graph.nodes[value].inputs
        assert isinstance(operator, ActivationBackwardOp)
        z = bounds[source]
        slope = operator.derivative_bound(ball, z, parts.sides.get(source))
        leeway = (slope.high - slope.low - 1e-3).clamp(min=0)
        weight = (leeway * bounds[gradient].size).reshape(len(leeway), -1)
        weights[source] = weights[source] + weight if source in weights else weight
        if source in graph.affine_prefix and norm == "l2":
            flat = (v.reshape(len(v), -1) for v in (z.centre, z.spread, z.slope[0]))
            planes[source] = Plane(*flat)
    return weights, planes


def _some(parts: Parts, chosen: Tensor) -> Parts:
    sides = {i: side[chosen] for i, side in parts.sides.items()}
    return Parts(parts.rows[chosen], parts.x[chosen], parts.radius[chosen], sides)


def _empty(
    problem: CertificationProblem,
    radius: Tensor,
    parts: Parts,
    planes: dict[int, Plane],
    done: Tensor,
) -> Tensor:
    """(B,) bool: no point of the row's own ball is on all of these sides of first-layer planes.

    Being on a side is A d >= b. For any l >= 0, b . l <= l . A d <= ||A' l|| ||d||, so that the
    part is empty if b . l > r ||A' l||. The best l maximises b . l - ||A' l||^2 / 2.
    """
    empty = torch.zeros_like(done)
    chosen = (~done).nonzero().flatten()
    rows = parts.rows[chosen]
    normals, needs, forced = [], [], []
    for i, (centre, noise, slope) in planes.items():
        if i not in parts.sides or slope.shape[1] > PLANES:
            continue
        side = parts.sides[i][chosen]
        moved = problem.space.unscaled((parts.x[chosen] - problem.x[rows]).flatten(1))
        at_x = centre[chosen] - moved @ slope
        normals.append(slope)
        forced.append(side)
        needs.append(-side * at_x - (1 + 1e-6) * noise[chosen] - 1e-12)
    if not normals:
        return empty
    matrix, side, need = torch.cat(normals, 1), torch.cat(forced, 1), torch.cat(needs, 1)
    used = (side != 0).any(0)
    matrix, side, need = matrix[:, used], side[:, used], need[:, used]
    gram = side[:, :, None] * (matrix.T @ matrix) * side[:, None]
    step = 1 / gram.diagonal(dim1=1, dim2=2).sum(1).clamp(min=1e-300)[:, None]
    need = torch.where(side != 0, need, 0.0)
    multipliers = need.clamp(min=0) * step
    ahead, momentum = multipliers, 1.0
    for _ in range(STEPS):
        new = (ahead + step * (need - (gram @ ahead[..., None])[..., 0])).clamp(min=0)
        faster = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = (new + (momentum - 1) / faster * (new - multipliers)).clamp(min=0)
        multipliers, momentum = new, faster
    reach = ((multipliers * side) @ matrix.T).square().sum(1).sqrt()
    gain = (need * multipliers).sum(1)
    slack = 1e-9 * (need.abs() * multipliers).sum(1)
    empty[chosen] = gain - slack > (1 + 1e-9) * radius[rows] * reach
    return empty


def _flips(problem: CertificationProblem, radius: Tensor, norm: Norm, parts: Parts) -> Tensor:
    """(B,) bool: the top k is another at the middle of the part itself: no use going on."""
    here = replace(problem.rows(parts.rows), x=parts.x)
    graph, ball = here.graph, Ball.point(here.x)
    far = (problem.domain or Domain(norm)).distance(here.x - problem.x[parts.rows])
    real = far <= radius[parts.rows]
    point = interval_bounds(graph, ball, here.target, here.of)
    for source, side in parts.sides.items():
        z = point[source].centre.reshape(len(side), -1)
        real &= (side * z >= -1e-6 * (1 + z.abs())).all(1)
    boxes = {i: point[i] for i in (INPUT, OUTPUT_GRADIENT)}
    for value in graph.ancestors(graph.gradient):
        if value in boxes:
            continue
        node = graph.nodes[value]
        boxes[value] = node.operator.interval(ball, *(boxes[i] for i in node.inputs))
        source = node.inputs[-1]
        if source in parts.sides and value in graph.piecewise_linear_layers:
            side = parts.sides[source]
            assert isinstance(node.operator, ActivationBackwardOp)
            curve, gradient = node.operator.curve, boxes[node.inputs[0]].centre
            forced = torch.where(side > 0, curve.right[1], curve.left[1]).view_as(gradient)
            known = (side != 0).view_as(gradient)
            boxes[value] = Box(torch.where(known, forced * gradient, boxes[value].centre))
    signed = here.scores.of_gradient(here.x, boxes[graph.gradient].centre.flatten(1))
    scores = signed if here.signed else signed.abs()
    weakest = scores.masked_fill(~here.top, torch.inf).amin(1)
    return real & (weakest <= scores.masked_fill(here.top, -torch.inf).amax(1))


def _split(
    parts: Parts,
    weights: Sides,
    planes: dict[int, Plane],
    going: Tensor,
    pick: Tensor,
    norm: Norm,
    space: Domain | None = None,
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
    across = (value.sign() * far)[:, None] * unit
    beyond = x - (across if space is None else space.scaled(across)).view(x.shape)
    smaller = (radius.square() - far.square()).clamp(min=0).sqrt() * (1 + 1e-9)
    halves = []
    for side in (1.0, -1.0):
        shrinks = plane & (value.sign() == -side) & (smaller < SHRUNK * radius)
        shape = (-1, *[1] * (x.ndim - 1))
        halves.append(
            (
                torch.where(shrinks.view(shape), beyond, x),
                torch.where(shrinks, smaller, radius),
                ~(plane & (value.sign() == -side) & (far > radius)),
            )
        )
    there, sizes, possible = (torch.cat(part) for part in zip(*halves, strict=True))
    return _some(Parts(rows.repeat(2), there, sizes, sides), possible)
