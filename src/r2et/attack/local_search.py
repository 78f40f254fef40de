"""Steps that need no gradient of the ranking: across activation boundaries, and around the best."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from r2et.attack.judge import Judge, Proposal
from r2et.attack.problem import AttackProblem
from r2et.attack.random_search import push_out
from r2et.attack.surrogate import preactivations
from r2et.models.output import CHUNK_NUMBERS, log_odds, logits
from r2et.region import L2, Linf

PROBES = 4  # random moves that tell how much a unit changes within the region
HOLD = 0.99  # of the way to a boundary that is not to be crossed


def climb(
    problem: AttackProblem, judge: Judge, generator: torch.Generator, rounds: int, points: int
) -> Iterator[Proposal]:
    """Random points around the best one so far, from far to near; in a box, half of them differ
    from it in some coordinates only, mostly put on a face.
    """
    for step in range(rounds):
        rows = judge.open_rows()
        if len(rows) == 0:
            return
        part, best = problem.rows(rows), judge.x_adv[rows]
        # From over half the region's size down to a fiftieth of it.
        size = 0.6 * 0.035 ** (step / max(1, rounds - 1))
        spread = part.region.sample(part.x, points, generator=generator) - part.x
        nearby = best + size * spread
        if isinstance(part.ball, Linf):
            some = points // 2
            nearby[:some] = replaced(part, best, spread[:some], generator)
        nearby = nearby.flatten(0, 1)
        x = part.x.repeat(points, *[1] * (part.x.ndim - 1))
        yield Proposal(part.region.project(nearby, x), rows)


def replaced(
    problem: AttackProblem, best: Tensor, spread: Tensor, generator: torch.Generator
) -> Tensor:
    """best (B, ...) with some coordinates drawn anew: at x + spread (m, B, ...), or on a face."""
    there = problem.x + spread
    corner = push_out(problem, there.flatten(0, 1)).view_as(there)
    draw = torch.rand(spread.shape, generator=generator).to(spread.device)
    share = max(0.1, 1 / problem.x[0].numel())  # of the coordinates, at least one of them
    return torch.where(draw < share, torch.where(draw < 0.7 * share, corner, there), best)


def cross_boundaries(
    problem: AttackProblem, judge: Judge, generator: torch.Generator, rounds: int, units: int
) -> Iterator[Proposal]:
    """From the best point so far, just across the boundaries of up to `units` units.

    Inside one linear region of a piecewise-linear network nothing changes; the ranking changes
    where a unit switches. The way to a unit's boundary is its pre-activation over its gradient.
    """
    for _ in range(rounds):
        for rows in row_blocks(judge.open_rows(), problem, units):
            part, best = problem.rows(rows), judge.x_adv[rows]
            steps = crossings(part, best, generator, units)
            if steps is None:
                return
            together = max(1, CHUNK_NUMBERS // part.x.numel())
            for i in range(0, len(steps), together):
                some = steps[i : i + together]
                across = (best + 1.001 * some).flatten(0, 1)
                x = part.x.repeat(len(some), *[1] * (part.x.ndim - 1))
                yield Proposal(part.region.project(across, x), rows)


def row_blocks(rows: Tensor, problem: AttackProblem, units: int) -> Iterator[Tensor]:
    """Rows (A,) in blocks: each of them has a step as large as x for every unit."""
    size = max(1, 16 * CHUNK_NUMBERS // (units * problem.x[0].numel()))
    for i in range(0, len(rows), size):
        yield rows[i : i + size]


def crossings(
    problem: AttackProblem, at: Tensor, generator: torch.Generator, units: int
) -> Tensor | None:
    """Steps (C, B, ...) from `at` to where units switch: each alone, with or without another, and
    without leaving the predicted class; None for a network without such units.
    """
    single = boundary_steps(problem, at, generator, units)
    ball = problem.ball
    if single is None or not isinstance(ball, L2) or ball.scale is not None:
        return single  # corners are found by Euclidean geometry
    flat = single.flatten(2)
    length = flat.norm(dim=2)
    near = torch.where(length > 0, length, torch.inf).argsort(dim=0, stable=True)[:8]
    closest = flat.gather(0, near[..., None].expand(-1, -1, flat.shape[2]))
    i, j = torch.triu_indices(len(closest), len(closest), offset=1, device=flat.device)
    a, b = closest[i], closest[j]
    # Across both, or across one and just not across the other: slivers lie between two planes.
    corners = torch.cat([meet(a, b, 1.0), meet(a, b, HOLD), meet(b, a, HOLD)])
    inside = meet(flat, _decision_step(problem, at).flatten(1).expand_as(flat), HOLD)
    return torch.cat([flat, corners, inside]).view(-1, *at.shape)


def meet(u: Tensor, v: Tensor, share: float) -> Tensor:
    """Shortest d with u . d = u . u and v . d = share * v . v: (P, B, n) each; 0 if parallel."""
    uu, vv, uv = (u * u).sum(2), (v * v).sum(2), (u * v).sum(2)
    scale = uu * vv - uv * uv
    crossing = scale > 1e-6 * uu * vv
    scale = torch.where(crossing, scale, 1.0)
    a = vv * (uu - share * uv) / scale
    b = uu * (share * vv - uv) / scale
    return torch.where(crossing[..., None], a[..., None] * u + b[..., None] * v, 0.0)


def _decision_step(problem: AttackProblem, at: Tensor) -> Tensor:
    """Shortest step (B, ...) to the linearised decision boundary."""
    with torch.enable_grad():
        point = at.detach().requires_grad_()
        margin = log_odds(logits(problem.model, point, problem.where), problem.label)
        (slope,) = torch.autograd.grad(margin.sum(), point, materialize_grads=True)
    return shortest(problem, margin.detach(), slope)


def shortest(problem: AttackProblem, value: Tensor, slope: Tensor) -> Tensor:
    """The step (B, ...), shortest in the region's norm, that brings value + slope . step to 0.

    value: (B,); slope: (B, ...). Bounds are left to the projection; no slope, no step.
    """
    way = problem.ball.steepest(slope)
    rise = (slope * way).flatten(1).sum(1)
    length = torch.where(rise > 0, -value / torch.where(rise > 0, rise, 1.0), 0.0)
    # Nothing beyond the region is of use, and a tiny slope must not make it infinite.
    length = length.clamp(-2 * problem.ball.radius, 2 * problem.ball.radius)
    return length.view(-1, *[1] * (slope.ndim - 1)) * way


def boundary_steps(
    problem: AttackProblem, at: Tensor, generator: torch.Generator, units: int
) -> Tensor | None:
    """Shortest steps (U, B, ...) from `at` to where units switch, of each row's `units` nearest."""
    with torch.enable_grad():
        point = at.detach().requires_grad_()
        usable = [a for a in preactivations(problem.model, point) if a.requires_grad]
        if not usable:
            return None
        values = torch.cat([a.flatten(1) for a in usable], 1)
        if values.shape[1] > units:
            values = values.gather(1, nearest_units(problem, at, values.detach(), generator, units))
        steps = []
        for value in values.unbind(1):
            (slope,) = torch.autograd.grad(
                value.sum(), point, retain_graph=True, materialize_grads=True
            )
            steps.append(shortest(problem, value.detach(), slope))
    return torch.stack(steps)


def nearest_units(
    problem: AttackProblem, at: Tensor, values: Tensor, generator: torch.Generator, units: int
) -> Tensor:
    """(B, units) those whose pre-activations (B, U) are least in terms of their typical change.

    The change is that of `PROBES` random moves as large as the region allows.
    """
    spread = problem.region.sample(problem.x, PROBES, generator=generator) - problem.x
    squares = torch.zeros_like(values)
    with torch.no_grad():
        for move in spread:
            there = preactivations(problem.model, at + move)
            moved = torch.cat([a.flatten(1) for a in there], 1)
            squares += (moved - values).square() if moved.shape == values.shape else 1.0
    far = values.abs() / squares.sqrt()  # infinite, or NaN, where nothing moves it
    return far.nan_to_num(torch.inf, torch.inf).topk(units, dim=1, largest=False).indices
