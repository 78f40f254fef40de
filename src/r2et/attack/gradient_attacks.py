"""The papers' attacks by gradient, in the papers' form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn

from r2et.attack import objectives
from r2et.attack.base import Attack, check_between, check_count
from r2et.attack.constraints import CONSTRAINTS, Constraint
from r2et.attack.judge import AttackResult, BestAndLastJudge, Judge, Proposal
from r2et.attack.pgd import ProjectedDescent
from r2et.attack.problem import AttackProblem, Objective
from r2et.attack.surrogate import check_differentiable
from r2et.errors import require
from r2et.explain import Explainer
from r2et.explain.callable_explainer import ScoresFunction
from r2et.models import smooth


@dataclass(frozen=True, kw_only=True)
class GradientAttack(Attack):
    """`steps` normalised steps of length `step_size` against an objective (B.1.2).

    The papers take 1000 steps of 0.001 for tables (the default, and so a radius of 1), and 100
    steps whose largest coordinate is at most 5 (images on 0..255) or 0.2 (graphs): norm="linf".
    The settings are listed at ERAttack.
    """

    steps: int = 1000
    step_size: float = 1e-3
    norm: Literal["l2", "linf"] = "l2"
    constraint: Constraint = "none"
    rate: float = 1.0
    through: Explainer | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        where, names = type(self).__name__, ", ".join(CONSTRAINTS)
        check_count(where, "steps", self.steps)
        for name in ("step_size", "rate", "rho"):
            value = getattr(self, name)
            if name != "rho" or value is not None:
                check_between(where, name, value, "positive")
        is_valid = self.through is None or isinstance(self.through, Explainer)
        require(is_valid, where, "through", "None or an Explainer", self.through)
        require(self.norm in ("l2", "linf"), where, "norm", "l2 or linf", self.norm)
        is_valid = self.constraint in CONSTRAINTS
        require(is_valid, where, "constraint", f"one of {names}", self.constraint)

    @property
    def length(self) -> int:
        return self.steps

    def best_and_last(
        self,
        model: nn.Module,
        explainer: Explainer | ScoresFunction,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[AttackResult, AttackResult]:
        """What keep="best" and keep="last" give, from one run."""
        best, last = self._run(BestAndLastJudge, "last", model, explainer, x, k, target, generator)
        return best, last

    @abstractmethod
    def objective(self) -> Objective:
        """What the attack makes small."""

    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        source = transferred(problem, self.through)
        check_differentiable(source)
        descent = ProjectedDescent(
            self.objective(),
            self.steps,
            size=lambda _: self.step_size,
            surrogate=None if self.rho is None else smooth(problem.model, self.rho, share=True),
            constraint=self.constraint,
            rate=self.rate,
            infinity=self.norm == "linf",
        )
        start = self.start(problem, generator)
        yield from descent(source, judge, start, same=source is problem)

    def start(self, problem: AttackProblem, generator: torch.Generator) -> Tensor | None:
        """Where the descent starts; None is x itself."""
        del problem, generator
        return None


@final
@dataclass(frozen=True, kw_only=True)
class ERAttack(GradientAttack):
    """Explanation ranking attack: minimise the sum of all gaps h(x', i, j).

    Settings beside these are those of Attack.

    Args:
        steps: how many.
        step_size: the length of each, in `norm`.
        norm: "l2" or "linf", in which a step's length is measured.
        constraint: how the prediction is kept on the way, eq. (57) to (60): "none", "uniform",
            "gda", "hedge" or "qp"; in any case a point that changes it does not count.
        rate: the learning rate of "gda" and "hedge".
        through: attack this explanation and hope that it carries over (the papers attack SmoothGrad
            and IG through Gradient); by default the attacked explanation itself.
        rho: take gradients from a softplus_rho copy of the network; the papers do not, and a ReLU
            network's are then zero.
    """

    def objective(self) -> Objective:
        return objectives.gap_sum


@final
@dataclass(frozen=True, kw_only=True)
class MSEAttack(GradientAttack):
    """Maximise ||I(x') - I(x)||^2, from one random step away: at x itself its slope is zero.

    Its settings are those of ERAttack.
    """

    def objective(self) -> Objective:
        return objectives.similarity

    def start(self, problem: AttackProblem, generator: torch.Generator) -> Tensor:
        region = problem.region
        move = region.sample(problem.x, generator=generator)[0] - problem.x
        largest = move.flatten(1).norm(dim=1).clamp(min=torch.finfo(move.dtype).tiny)
        step = (self.step_size / largest).clamp(max=1.0).view(-1, *[1] * (move.ndim - 1))
        return region.project(problem.x + step * move, problem.x)


@final
@dataclass(frozen=True, kw_only=True)
class TopMassAttack(GradientAttack):
    """Minimise the sum of the clean top k's scores (after Ghorbani et al. 2019).

    Its settings are those of ERAttack.
    """

    def objective(self) -> Objective:
        return objectives.top_mass


@final
@dataclass(frozen=True, kw_only=True)
class SwapAttack(GradientAttack):
    """Minimise the gap of whichever pair is closest to swapping.

    Its settings are those of ERAttack.
    """

    def objective(self) -> Objective:
        return objectives.border_gap


def transferred(problem: AttackProblem, through: Explainer | None) -> AttackProblem:
    """The problem as another explanation sees it: its own ranking, the same inputs.

    An explanation without gradients is attacked through the one of ours with the same scores, where
    there is one; the judge goes on with its own.
    """
    if through is None and not problem.explainer.differentiable:
        through = problem.explainer.equivalent()
    if through is None:
        return problem
    p = problem
    return AttackProblem.from_model(
        p.where, p.model, through, p.region, p.x, p.k, p.target, p.number
    )
