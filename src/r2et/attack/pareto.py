"""Steepest descent for several objectives: a direction in which every gap falls [2022]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from r2et.attack.base import Attack, check_between, check_count
from r2et.attack.judge import Judge, Proposal
from r2et.attack.multiobjective_descent import CommonDescent, Near, common_descent
from r2et.attack.problem import AttackProblem
from r2et.attack.scaled_problem import ScaledProblem
from r2et.attack.surrogate import explained_network
from r2et.errors import require

# Halvings of a step before a row gives up: 2^-12 of it no longer changes a float32 gap.
HALVINGS = 12


@final
@dataclass(frozen=True, kw_only=True)
class ParetoAttack(Attack):
    """Lowers all gaps together until none can fall without another one rising.

    Settings beside these are those of Attack.

    Args:
        steps: at most.
        pairs: "all" k (n - k), or the "closest", nested around the border.
        armijo: the share beta of the promised descent that every gap must show.
        constraint: "argmax", steps that change the prediction are halved; "distance",
            ||f(x) - f(x')|| <= limit for the probabilities, by a merit function; "none".
        limit: of "distance"; by default the row's largest that surely keeps its class.
        penalty: the merit function's weight of a violated limit.
        tolerance: a point is critical when its common slope, in mean scores per radius, is below
            this.
        rho: slopes and gaps of a softplus_rho copy; None: the network's own.
    """

    steps: int = 100
    pairs: Literal["all", "closest"] = "closest"
    armijo: float = 0.1
    constraint: Literal["none", "argmax", "distance"] = "argmax"
    limit: float | None = None
    penalty: float = 10.0
    tolerance: float = 1e-3
    rho: float | None = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__
        check_count(where, "steps", self.steps)
        require(self.pairs in ("all", "closest"), where, "pairs", "all or closest", self.pairs)
        check_between(where, "armijo", self.armijo, "between 0 and 1", 1.0)
        names = ("none", "argmax", "distance")
        is_valid = self.constraint in names
        require(is_valid, where, "constraint", f"one of {', '.join(names)}", self.constraint)
        for name in ("limit", "rho"):
            if getattr(self, name) is not None:
                check_between(where, name, getattr(self, name), "None or positive")
        for name in ("penalty", "tolerance"):
            check_between(where, name, getattr(self, name), "positive")

    @property
    def length(self) -> int:
        return self.steps

    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        del generator
        source = explained_network(problem, self.rho)
        scaled = ScaledProblem.of(problem, source, self.pairs, 1.0)
        x, rows = problem.x.clone(), torch.arange(len(problem.x))
        lengths = torch.ones(len(x), dtype=torch.float64)
        for _ in range(self.steps):
            rows = rows[torch.isin(rows, judge.open_rows().cpu())]
            directions = self._directions(scaled, x, rows, lengths)
            theta = torch.tensor([each.theta for each in directions], dtype=torch.float64)
            # Far from all limits theta is -length / 2 times the squared common slope.
            on = (-2 * theta.clamp(max=0) / lengths[rows]).sqrt() >= self.tolerance
            rows = rows[on]
            if len(rows) == 0:
                return
            descents = [each for each, going in zip(directions, on.tolist(), strict=True) if going]
            there, share, fit = self._search(scaled.rows(rows), x[rows.to(x.device)], descents)
            went = share > 0
            rows, share, fit, there = rows[went], share[went], fit[went], there[went.to(x.device)]
            x[rows.to(x.device)] = there
            # A step taken whole may be too short; one that was cut says how long the next can be.
            lengths[rows] *= torch.where(share == 1, 2.0, share)
            yield Proposal(there[fit.to(x.device)], rows[fit].to(x.device))

    def _directions(
        self, scaled: ScaledProblem, x: Tensor, rows: Tensor, lengths: Tensor
    ) -> list[CommonDescent]:
        """The common descent of each row, a few rows' slopes at a time."""
        descents = []
        first, second = scaled.places.T.numpy()
        for some in scaled.split(rows):
            part, here = scaled.rows(some), x[some.to(x.device)]
            slopes, rooms = part.slopes(here), part.room(here)
            away, scale = self._away(part, here), self._scale(part)
            for i, row in enumerate(some.tolist()):
                near = None
                if self.constraint == "distance":
                    by_class = slopes.prediction[i] * scale[i]
                    near = Near(away[i].numpy(), by_class.numpy(), self.penalty)
                ranked, length = slopes.scores[i].numpy(), float(lengths[row])
                descents.append(common_descent(ranked, first, second, rooms[i], length, near))
        return descents

    def _search(
        self, scaled: ScaledProblem, x: Tensor, descents: list[CommonDescent]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Armijo: the longest step t u, t = 1, 1/2, ..., with enough descent of every merit.

        merit_l(x + t u) <= merit_l(x) + beta t rate_l. Returns points, t (0 where there is none)
        and whether the point keeps the constraint.
        """
        steps = torch.stack([torch.from_numpy(each.step) for each in descents])
        rates = torch.stack([torch.from_numpy(each.rates) for each in descents])
        start, _ = self._merits(scaled, x)
        there, share = x.clone(), torch.zeros(len(x), dtype=torch.float64)
        fits = torch.ones(len(x), dtype=torch.bool)
        left, t = torch.arange(len(x)), 1.0
        for _ in range(HALVINGS):
            part = scaled.rows(left)
            points = part.step(x[left.to(x.device)], t * steps[left])
            merits, fit = self._merits(part, points)
            enough = (merits <= start[left] + self.armijo * t * rates[left]).all(1)
            if self.constraint == "argmax":
                enough &= fit
            taken = left[enough]
            there[taken.to(x.device)] = points[enough.to(x.device)]
            share[taken], fits[taken] = t, fit[enough]
            left, t = left[~enough], t / 2
            if len(left) == 0:
                break
        return there, share, fits

    def _merits(self, scaled: ScaledProblem, x: Tensor) -> tuple[Tensor, Tensor]:
        """Merits (B, m): gaps plus the price of the violated constraint; and which rows keep it."""
        gaps = scaled.gaps(x)
        if self.constraint == "distance":
            over = self._away(scaled, x).norm(dim=1) - 1
            return gaps + self.penalty * over.clamp(min=0)[:, None], over <= 0
        if self.constraint == "argmax":
            return gaps, scaled.problem.kept(x).cpu()
        return gaps, torch.ones(len(gaps), dtype=torch.bool)

    def _away(self, scaled: ScaledProblem, x: Tensor) -> Tensor:
        """(B, C) change of the probabilities, in units of the limit."""
        return scaled.away(x)[:, : scaled.clean.shape[1]] * self._scale(scaled)[:, None]

    def _scale(self, scaled: ScaledProblem) -> Tensor:
        """(B,) the problem's unit of a change of the prediction over the limit's."""
        return torch.ones_like(scaled.margin) if self.limit is None else scaled.margin / self.limit
