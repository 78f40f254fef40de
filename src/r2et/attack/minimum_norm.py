"""The smallest change that moves some feature out of the top k."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from r2et.attack import objectives
from r2et.attack.base import Attack
from r2et.attack.gradient_attacks import transferred
from r2et.attack.judge import Judge, Proposal
from r2et.attack.local_search import crossings, row_blocks, shortest
from r2et.attack.pgd import ProjectedDescent, held
from r2et.attack.problem import AttackProblem
from r2et.attack.random_search import scatter
from r2et.attack.strong import PLANS, Budget, Plan, StrongAttack
from r2et.attack.surrogate import surrogates
from r2et.defaults import BUDGET
from r2et.errors import require
from r2et.explain import Explainer
from r2et.region import as_ball

SHRINK = (0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 0.9997)
# Places around the border, in the current ranking, whose swap is tried: the closest pair first.
SWAPS = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2))


@final
@dataclass(frozen=True)
class MinimumNorm(Attack):
    """Per row, the smallest radius found at which some top-k feature is displaced.

    The prediction is kept. Rows that nothing in `region` moves come back clean, with P@k = 1 and an
    infinite `radius`. Every certified radius must stay below what this finds. Settings beside these
    are those of Attack.

    Args:
        budget: "fast", "standard" or "thorough".
        through: take gradients of this explanation instead of the attacked one.
    """

    budget: Budget = BUDGET
    through: Explainer | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_ball("MinimumNorm", self.region)
        known = isinstance(self.budget, str) and self.budget in PLANS
        require(known, "MinimumNorm", "budget", "fast, standard or thorough", self.budget)
        is_valid = self.through is None or isinstance(self.through, Explainer)
        require(is_valid, "MinimumNorm", "through", "None or an Explainer", self.through)
        require(self.keep == "best", "MinimumNorm", "keep", "best (the nearest)", self.keep)

    @property
    def judged_by(self) -> str:
        return "nearest"

    @property
    def length(self) -> int:
        plan = PLANS[self.budget]
        return plan.random + plan.steps * len(plan.sharpness) * 2 + plan.rounds * plan.around

    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        plan = PLANS[self.budget]
        yield from scatter(problem, judge, generator, plan.random // 2)
        yield from scatter(problem, judge, generator, plan.random - plan.random // 2, edge=True)
        yield from _shrink(problem, judge, 4)
        yield from _cross_nearest(problem, generator, plan.units)
        source = transferred(problem, self.through)
        if source.explainer.differentiable:
            for copy in surrogates(source, plan.sharpness):
                yield from _newton(source, copy, 6)
                yield from _descend_within(source, judge, copy, plan.steps)
                yield from _shrink(problem, judge, 4)
            yield from _newton(source, None, 6)
        yield from self._ask_strong(problem, judge, generator)
        yield from _walk(problem, judge, generator, plan)
        yield from _shrink(problem, judge, 8)

    def _ask_strong(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        """Rows that nothing has flipped so far get the whole of StrongAttack."""
        rows = judge.value.isinf().nonzero().flatten()
        if len(rows):
            part = problem.rows(rows)
            attack = StrongAttack(self.region, budget=self.budget, through=self.through)
            result = attack(
                part.model,
                part.explainer,
                part.x,
                k=part.k,
                target=part.target,
                generator=generator,
            )
            yield Proposal(result.x_adv, rows)


def _all_rows(problem: AttackProblem) -> Tensor:
    return torch.arange(len(problem.x), device=problem.x.device)


def _shrink(problem: AttackProblem, judge: Judge, rounds: int) -> Iterator[Proposal]:
    """Points between x and the nearest flip so far."""
    factors = torch.tensor(SHRINK).to(problem.x).view(-1, *[1] * problem.x.ndim)
    for _ in range(rounds):
        rows = judge.value.isfinite().nonzero().flatten()
        if len(rows) == 0:
            return
        x = problem.x[rows]
        yield Proposal((x + factors * (judge.x_adv[rows] - x)).flatten(0, 1), rows)


def _cross_nearest(
    problem: AttackProblem, generator: torch.Generator, units: int
) -> Iterator[Proposal]:
    """Just across the boundaries of a piecewise-linear network's units."""
    for rows in row_blocks(_all_rows(problem), problem, units):
        part = problem.rows(rows)
        steps = crossings(part, part.x, generator, units)
        if steps is None:
            return
        for step in steps:
            # A hair over the boundary, in units that the input's precision can tell apart.
            there = part.x + 1.0001 * step + 4 * torch.finfo(step.dtype).eps * step.sign()
            yield Proposal(part.region.project(there, part.x), rows)


def _newton(problem: AttackProblem, copy: nn.Module | None, steps: int) -> Iterator[Proposal]:
    """Newton steps to where a pair at the border ties, for the closest pairs in turn."""
    n = problem.scores.shape[1]
    for salient, other in SWAPS:
        if salient >= problem.k or other >= n - problem.k:
            continue
        x = problem.x
        for _ in range(steps):
            gap = _pair_gap(salient, other)
            value, slope = _value_and_slope(problem, copy, x, gap)
            step = shortest(problem, value + 0.02 * value.abs(), slope).to(x)
            x = problem.region.project(x + held(problem, x, step), problem.x)
            yield Proposal(x, _all_rows(problem))


def _descend_within(
    problem: AttackProblem, judge: Judge, copy: nn.Module | None, steps: int
) -> Iterator[Proposal]:
    """Descent on the smallest gap inside each row's own ball, a little smaller than its best."""
    x, shape = problem.x, (-1, *[1] * (problem.x.ndim - 1))
    descent = ProjectedDescent(objectives.border_gap, steps, size=lambda _: 1.0, surrogate=copy)
    for step in range(steps):
        most = (0.98 * judge.value).clamp(max=problem.ball.radius).to(x)
        _, slope = descent.gradient(problem, x)
        length = most * (0.5 * (1 - step / steps) + 0.02)
        move = (-length.view(shape) * problem.ball.steepest(slope)).to(x)
        x = problem.region.project(x + held(problem, x, move), problem.x)
        far = problem.region.distance(x, problem.x).to(x).clamp(min=torch.finfo(x.dtype).tiny)
        x = problem.x + (most / far).clamp(max=1.0).view(shape) * (x - problem.x)
        yield Proposal(x, _all_rows(problem))


def _walk(
    problem: AttackProblem, judge: Judge, generator: torch.Generator, plan: Plan
) -> Iterator[Proposal]:
    """Random steps along the border of what flips, a little towards x; and anywhere within it."""
    for step in range(plan.rounds):
        rows = judge.value.isfinite().nonzero().flatten()
        if len(rows) == 0:
            return
        part, best = problem.rows(rows), judge.x_adv[rows]
        near = judge.value[rows].to(best).view(1, -1, *[1] * (best.ndim - 1)) / part.ball.radius
        size = 0.5 * 0.02 ** (step / max(1, plan.rounds - 1))
        noise = near * (part.region.sample(part.x, plan.around, generator=generator) - part.x)
        aside = part.x + (1 - size / 4) * (best - part.x) + size * noise
        there = torch.cat([aside, part.x + noise]).flatten(0, 1)
        x = part.x.repeat(2 * plan.around, *[1] * (best.ndim - 1))
        yield Proposal(part.region.project(there, x), rows)


def _pair_gap(salient: int, other: int) -> Callable[[Tensor, AttackProblem], Tensor]:
    """Gap between the salient-th lowest of the top k and the other-th highest of the rest."""

    def gap(scores: Tensor, problem: AttackProblem) -> Tensor:
        low = scores.masked_fill(~problem.top, torch.inf).sort(dim=1).values[:, salient]
        high = scores.masked_fill(problem.top, -torch.inf).sort(dim=1, descending=True).values
        return low - high[:, other]

    return gap


def _value_and_slope(
    problem: AttackProblem,
    copy: nn.Module | None,
    x: Tensor,
    objective: Callable[[Tensor, AttackProblem], Tensor],
) -> tuple[Tensor, Tensor]:
    descent = ProjectedDescent(objective, 1, size=lambda _: 1.0, surrogate=copy)
    scores, slope = descent.gradient(problem, x)
    return objective(scores, problem), slope
