"""MOO-Attack: all gaps lowered at once, inside a trust region, until the first pair flips."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, final

import torch
from torch import Tensor, nn

from r2et.attack.base import Attack, check_between, check_count
from r2et.attack.judge import AttackResult, Judge, Proposal
from r2et.attack.problem import AttackProblem
from r2et.attack.scaled_problem import ScaledProblem
from r2et.attack.surrogate import explained_network
from r2et.attack.trust_region_search import Outcome, TrustRegionRules, TrustRegionSearch
from r2et.errors import require
from r2et.explain import Explainer


class TrustRegionTrace(NamedTuple):
    """What the attack did, and how each of B rows got there.

    Attributes:
        result: of the attack.
        iterations: (B,) steps tried.
        outcome: one per row.
        h_up: (B,) the largest gap on the way, that of Theorem 5.1 as far as the attack has seen it,
            in the units of the scores of the network that was looked at.
        h_low: (B,) the smallest.
        objectives: (B,) pairs not removed.
    """

    result: AttackResult
    iterations: Tensor
    outcome: tuple[Outcome, ...]
    h_up: Tensor
    h_low: Tensor
    objectives: Tensor


@final
@dataclass(frozen=True, kw_only=True)
class TrustRegionAttack(Attack):
    """MOO-Attack, Algorithm 2: min over x of [h_1(x), ..., h_m(x)] with ||f~(x) - f~(x0)|| <= eps.

    Settings beside these are those of Attack.

    Args:
        steps: iterations at most.
        epsilon: how far each target lies below its gap, in mean absolute scores: long steps or
            many.
        prediction: weight of the prediction in f~; at 1 and above the bound alone keeps it.
        input: weight of the input in f~; at 1 and above the bound alone keeps the radius.
        trust: the first trust region, as a share of the radius.
        gamma: the factor by which it shrinks.
        eta: the share of a promise that must be kept.
        tolerance: an objective is critical, and removed, when no step could lower its merit by this
            share of epsilon.
        beyond: go on after the first flip, for a lower P@k.
        rho: look at the gaps of a softplus_rho copy, as those of a piecewise-linear network have no
            slope; None: the network itself.
        observer: called with the state after each iteration.
    """

    config_excluded: ClassVar[tuple[str, ...]] = ("observer",)

    steps: int = 100
    epsilon: float = 0.1
    prediction: float = 1.0
    input: float = 1.0
    trust: float = 0.25
    gamma: float = 0.5
    eta: float = 0.1
    tolerance: float = 0.01
    beyond: bool = False
    rho: float | None = 5.0
    observer: Callable[[TrustRegionSearch], None] | None = field(
        default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__
        check_count(where, "steps", self.steps)
        for name in ("epsilon", "trust"):
            check_between(where, name, getattr(self, name), "positive")
        for name in ("prediction", "input"):
            value = getattr(self, name)
            is_valid = type(value) in (int, float) and 0 <= value < torch.inf
            require(is_valid, where, name, "0 or more", value)
        for name in ("gamma", "eta", "tolerance"):
            check_between(where, name, getattr(self, name), "between 0 and 1", 1.0)
        if self.rho is not None:
            check_between(where, "rho", self.rho, "None or positive")
        require(type(self.beyond) is bool, where, "beyond", "True or False", self.beyond)
        is_valid = self.observer is None or callable(self.observer)
        require(is_valid, where, "observer", "None or a function of the search", self.observer)

    @property
    def length(self) -> int:
        return self.steps

    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        del generator
        source = explained_network(problem, self.rho)
        weights = (self.prediction, self.input)
        search = TrustRegionSearch(
            ScaledProblem.of(problem, source, "all", self.epsilon),
            TrustRegionRules(weights, self.trust, self.gamma, self.eta, self.tolerance),
        )
        for _ in range(self.steps):
            moved = search.iterate().to(problem.x.device)
            yield Proposal(search.x[moved], moved)
            if self.beyond:
                search.leave_flipped(moved.cpu())
            else:
                for row in (judge.first_flip >= 0).nonzero().flatten().tolist():
                    search.outcome[row] = Outcome.FLIPPED
            if self.observer is not None:
                self.observer(search)
            if len(search.running()) == 0:
                return

    def trace(
        self,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
    ) -> TrustRegionTrace:
        """The attack, with its number of iterations, its outcome and the gaps it met per row."""
        by_id: dict[int, TrustRegionSearch] = {}  # one for each chunk of rows, in order

        def note(search: TrustRegionSearch) -> None:
            by_id[id(search)] = search
            if self.observer is not None:
                self.observer(search)

        attack = replace(self, observer=note)
        result = attack(model, explainer, x, k=k, target=target)
        searches = list(by_id.values())
        ends = [end or Outcome.EXHAUSTED for search in searches for end in search.outcome]
        flipped = (result.first_flip >= 0).tolist()
        return TrustRegionTrace(
            result,
            iterations=torch.cat([s.iterations for s in searches]),
            outcome=tuple(
                Outcome.FLIPPED if f else end for f, end in zip(flipped, ends, strict=True)
            ),
            h_up=torch.cat([s.h_up * s.scaled.size for s in searches]),
            h_low=torch.cat([s.h_low * s.scaled.size for s in searches]),
            objectives=torch.cat([s.alive.sum(1) for s in searches]),
        )
