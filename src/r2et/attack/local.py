"""Steps that need no gradient of the ranking: across activation boundaries, and around the best."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from r2et.attack.base import Judge, Proposal
from r2et.attack.problem import Problem
from r2et.attack.surrogate import preactivations
from r2et.explain.base import CHUNK_NUMBERS


def climb(
    problem: Problem, judge: Judge, generator: torch.Generator, rounds: int, points: int
) -> Iterator[Proposal]:
    """Random points around the best one so far, from far to near."""
    for step in range(rounds):
        rows = judge.open_rows()
        if len(rows) == 0:
            return
        part, best = problem.rows(rows), judge.x_adv[rows]
        # From over half the region's size down to a fiftieth of it.
        size = 0.6 * 0.035 ** (step / max(1, rounds - 1))
        spread = part.region.sample(part.x, points, generator=generator) - part.x
        found = (best + size * spread).flatten(0, 1)
        x = part.x.repeat(points, *[1] * (part.x.ndim - 1))
        yield Proposal(part.region.project(found, x), rows)


def cross_boundaries(
    problem: Problem, judge: Judge, generator: torch.Generator, rounds: int, units: int
) -> Iterator[Proposal]:
    """From the best point so far, just across the nearest boundary of each of `units` units.

    Inside one linear region of a piecewise-linear network nothing changes; the ranking changes
    where a unit switches. The way to a unit's boundary is its pre-activation over its gradient.
    """
    for _ in range(rounds):
        rows = judge.open_rows()
        if len(rows) == 0:
            return
        part, best = problem.rows(rows), judge.x_adv[rows]
        crossings = boundary_steps(part, best, generator, units)
        if crossings is None:
            return
        together = max(1, CHUNK_NUMBERS // part.x.numel())
        for some in crossings.split(together):  # type: ignore[no-untyped-call]
            found = (best + 1.001 * some).flatten(0, 1)
            x = part.x.repeat(len(some), *[1] * (part.x.ndim - 1))
            yield Proposal(part.region.project(found, x), rows)


def boundary_steps(
    problem: Problem, at: Tensor, generator: torch.Generator, units: int
) -> Tensor | None:
    """Shortest steps (U, B, ...) from `at` to where each of up to `units` units switches."""
    with torch.enable_grad(), preactivations(problem.model) as seen:
        point = at.detach().requires_grad_()
        problem.model(point)
    usable = [a for a in seen if a.requires_grad and len(a) == len(at)]
    if not usable:
        return None
    flat = torch.cat([a.flatten(1) for a in usable], 1)
    chosen = torch.arange(flat.shape[1])
    if len(chosen) > units:
        chosen = torch.randperm(len(chosen), generator=generator)[:units]
    steps = []
    for unit in chosen.tolist():
        value = flat[:, unit]
        (slope,) = torch.autograd.grad(
            value.sum(), point, retain_graph=True, materialize_grads=True
        )
        norm2 = slope.flatten(1).square().sum(1)
        length = torch.where(norm2 > 0, -value.detach() / norm2, 0.0)
        steps.append(length.view(-1, *[1] * (at.ndim - 1)) * slope)
    return torch.stack(steps)
