"""The attack whose figures to believe: several kinds of search, the worst of each row kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import torch

from r2et.attack import objectives
from r2et.attack.base import Attack
from r2et.attack.gradient_attacks import transferred
from r2et.attack.judge import Judge, Proposal
from r2et.attack.local_search import climb, cross_boundaries
from r2et.attack.pgd import ProjectedDescent
from r2et.attack.problem import AttackProblem, Objective
from r2et.attack.random_search import scatter
from r2et.attack.surrogate import surrogates
from r2et.defaults import BUDGET
from r2et.errors import require
from r2et.explain import Explainer
from r2et.region import as_ball

Budget: TypeAlias = Literal["fast", "standard", "thorough"]

OBJECTIVES: tuple[Objective, ...] = (
    objectives.top_share,
    objectives.soft_precision,
    objectives.border_gap,
    objectives.gap_sum,
)


@dataclass(frozen=True)
class Plan:
    """How much of everything a budget buys, per row.

    Attributes:
        random: points of the random search, half of them at the region's border.
        sharpness: of the smooth copies that are descended on.
        steps: of each descent.
        restarts: of each descent, from around the best point so far.
        rounds: of the search around the best.
        around: points in each of these rounds.
        crossings: rounds of steps across activation boundaries.
        units: whose boundaries are crossed in each of these rounds.
    """

    random: int
    sharpness: tuple[float, ...]
    steps: int
    restarts: int
    rounds: int
    around: int
    crossings: int
    units: int

    @property
    def descents(self) -> int:
        return len(OBJECTIVES) * len(self.sharpness) * (1 + self.restarts)


PLANS: dict[Budget, Plan] = {
    "fast": Plan(200, (1.0,), 20, 0, 10, 26, 1, 32),
    "standard": Plan(1000, (1.0, 4.0), 40, 1, 40, 56, 3, 128),
    "thorough": Plan(5000, (1.0, 4.0, 16.0), 100, 3, 100, 112, 6, 512),
}


@final
@dataclass(frozen=True)
class StrongAttack(Attack):
    """Random search, descents on smooth copies, boundary crossings, and search around the best.

    Neither gradients nor random points win everywhere, so it takes both, and keeps each row's
    worst point: whatever one part finds, the next starts from. An explanation that cannot be
    differentiated is attacked through its equivalent() or, if it has none, without gradients.
    Settings beside these are those of Attack.

    Args:
        budget: "fast", "standard" or "thorough".
        through: take gradients of this explanation instead of the attacked one (transfer, as in the
            papers' Table 2).
    """

    budget: Budget = BUDGET
    through: Explainer | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_ball("StrongAttack", self.region)
        require(self.keep == "best", "StrongAttack", "keep", "best", self.keep)
        known = isinstance(self.budget, str) and self.budget in PLANS
        require(known, "StrongAttack", "budget", "fast, standard or thorough", self.budget)
        is_valid = self.through is None or isinstance(self.through, Explainer)
        require(is_valid, "StrongAttack", "through", "None or an Explainer", self.through)

    @property
    def judged_by(self) -> str:
        return "margin"

    @property
    def length(self) -> int:
        p = PLANS[self.budget]
        search = p.random + p.rounds * p.around + 2 * p.crossings * p.units
        return search + p.descents * p.steps

    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        plan = PLANS[self.budget]
        yield from scatter(problem, judge, generator, plan.random // 2)
        yield from scatter(problem, judge, generator, plan.random - plan.random // 2, edge=True)
        source = transferred(problem, self.through)
        if source.explainer.differentiable:
            yield from self._descend(plan, source, judge, generator, same=source is problem)
        yield from cross_boundaries(problem, judge, generator, plan.crossings, plan.units)
        yield from climb(problem, judge, generator, plan.rounds, plan.around)

    def _descend(
        self,
        plan: Plan,
        problem: AttackProblem,
        judge: Judge,
        generator: torch.Generator,
        *,
        same: bool,
    ) -> Iterator[Proposal]:
        radius = problem.ball.radius
        for copy in surrogates(problem, plan.sharpness):
            for objective in OBJECTIVES:
                descent = ProjectedDescent(
                    objective,
                    plan.steps,
                    size=lambda step: radius * (0.3 * (1 - step / plan.steps) + 0.01),
                    surrogate=copy,
                    own=True,
                    momentum=0.5,
                    hold=True,
                )
                yield from descent(problem, judge, same=same)
                for _ in range(plan.restarts):
                    spread = problem.region.sample(problem.x, generator=generator)[0] - problem.x
                    start = problem.region.project(judge.x_adv + 0.5 * spread, problem.x)
                    yield from descent(problem, judge, start, same=same)
