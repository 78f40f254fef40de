"""Algorithm 2 on a batch: rows advance together, each with its own trust region and targets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import torch
from torch import Tensor

from r2et.attack.scaled_problem import ScaledProblem
from r2et.attack.socp import Array, Index
from r2et.attack.tr_subproblem import Merits

# A trust region of this share of the region's radius moves a float32 input by its last digits.
COLLAPSED_RADIUS = 1e-6


class Outcome(Enum):
    """How a row's attack ended; the text says what to do about it."""

    FLIPPED = "A feature left the top k with the prediction kept: compare x_adv with x."
    STUCK = (
        "No gap can be lowered further by a small step: try a larger region, another rho or "
        "StrongAttack, and a certificate if nothing flips."
    )
    COLLAPSED = (
        "The trust region shrank to nothing, as gaps bend too sharply: lower rho, or give one if "
        "it is None."
    )
    EXHAUSTED = "Steps ran out: raise `steps`, or `epsilon` for longer ones."


@dataclass(frozen=True)
class TrustRegionRules:
    """Parameters of Algorithm 2, in the units of `ScaledProblem`, where its epsilon is 1.

    Attributes:
        weights: of prediction and input in f~.
        radius: Delta^(1), the first trust region's.
        gamma: the factor of the radius after a refusal.
        eta: share of the promised reduction that must come true.
        tolerance: chi of a critical objective.
    """

    weights: tuple[float, float]
    radius: float
    gamma: float
    eta: float
    tolerance: float


@dataclass
class TrialStep:
    """One row's step: what the linear models promise of it, and what came of it."""

    row: int
    merits: Merits
    pairs: Index
    radius: float
    step: Array
    accepted: bool = False


@dataclass
class TrustRegionSearch:
    """The state of B rows. Gaps, targets and f~ are in the units of `ScaledProblem`.

    Attributes:
        scaled: the problem.
        rules: the algorithm's parameters.
        x: (B, ...) where the rows are.
        gaps, targets, alive: (B, m) of the pairs; a pair that is not alive was removed.
        f: (B, C + N) f~(x) - f~(x0).
        radius, iterations, h_up, h_low: (B,).
        outcome: None while a row runs.
        trials: the last iteration's steps.
    """

    scaled: ScaledProblem
    rules: TrustRegionRules
    x: Tensor = field(init=False)
    trials: list[TrialStep] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.x = self.scaled.problem.x.clone()
        rows = len(self.x)
        self.gaps, self.f = self._at(self.scaled, self.x)
        # t = ||f|| + h - epsilon: the targets lie epsilon below, less what f~ has used up.
        self.targets = self.gaps - 1.0
        self.alive = torch.ones_like(self.gaps, dtype=torch.bool)
        self.radius = torch.full((rows,), self.rules.radius, dtype=torch.float64)
        self.iterations = torch.zeros(rows, dtype=torch.long)
        self.h_up, self.h_low = self.gaps.amax(1), self.gaps.amin(1)
        self.outcome: list[Outcome | None] = [None] * rows

    def running(self) -> Tensor:
        """(A,) rows that are not done."""
        return torch.tensor([i for i, end in enumerate(self.outcome) if end is None]).long()

    def iterate(self) -> Tensor:
        """One iteration of every running row; returns the rows that moved."""
        self.trials = []
        for rows in self.scaled.split(self.running()):
            self._attempt(rows)
        return torch.tensor([trial.row for trial in self.trials if trial.accepted]).long()

    def leave_flipped(self, rows: Tensor) -> None:
        """Remove the pairs that have flipped on the real network, so that others can follow."""
        if len(rows):
            scaled = self.scaled.rows(rows)
            real = replace(scaled, source=scaled.problem.model).gaps(self._rows(self.x, rows))
            self.alive[rows] &= real > 0

    def _attempt(self, rows: Tensor) -> None:
        scaled, x = self.scaled.rows(rows), self._rows(self.x, rows)
        trials = self._plan(scaled, x, rows)
        self.trials += trials
        if not trials:
            return
        index = torch.tensor([trial.row for trial in trials])
        scaled, x = self.scaled.rows(index), self._rows(self.x, index)
        there = scaled.step(x, torch.from_numpy(np.stack([trial.step for trial in trials])))
        # Rounding and the region have the last word on the step, so promises are made for that one.
        steps = (scaled.moved(there) - scaled.moved(x))[:, scaled.free].numpy()
        gaps, f = self._at(scaled, there)
        self.iterations[index] += 1
        for i, trial in enumerate(trials):
            trial.step = steps[i]
            now = f[i].norm() + (gaps[i] - self.targets[trial.row]).abs()
            trial.accepted = self._keeps_promise(trial, now.numpy())
            if trial.accepted:
                self._move(trial.row, there[i], gaps[i], f[i], now)
            else:
                self.radius[trial.row] *= self.rules.gamma
                if self.radius[trial.row] < COLLAPSED_RADIUS:
                    self.outcome[trial.row] = Outcome.COLLAPSED

    def _plan(self, scaled: ScaledProblem, x: Tensor, rows: Tensor) -> list[TrialStep]:
        """TR-MOO for each row; a row with nothing left to lower is stuck."""
        slopes, rooms = scaled.slopes(x), scaled.room(x)
        free, trials = scaled.free, []
        by_class, by_input = self.rules.weights
        classes = slopes.prediction.shape[1]
        first, second = scaled.places.T.numpy()
        for i, row in enumerate(rows.tolist()):
            identity = by_input * np.eye(len(free))
            merits = Merits(
                f=torch.cat([self.f[row, :classes], self.f[row, classes:][free]]).numpy(),
                jacobian=np.vstack([by_class * slopes.prediction[i].numpy(), identity]),
                excess=(self.gaps[row] - self.targets[row]).numpy(),
                slopes=slopes.scores[i].numpy(),
                first=first,
                second=second,
                room=rooms[i],
            )
            step = self._descend(merits, row)
            if step is None:
                self.outcome[row] = Outcome.STUCK
            else:
                chosen, radius = self._chosen(row), float(self.radius[row])
                trials.append(TrialStep(row, merits, chosen, radius, step))
        return trials

    def _descend(self, merits: Merits, row: int) -> Array | None:
        """A step that lowers all merits, after the removal of objectives that are in the way."""
        radius = float(self.radius[row])
        tolerance, start = self.rules.tolerance, merits(np.zeros(merits.slopes.shape[1]))
        movable: set[int] = set()
        while len(chosen := self._chosen(row)):
            step = merits.solve(chosen, radius)
            # At least min(radius, 1) * chi of the objectives together, by convexity (Lemma A.5).
            short = chosen[(start - merits(step))[chosen] < tolerance * min(radius, 1.0)]
            if len(short) == 0:
                return step
            unsure = np.array([pair for pair in short if pair not in movable], dtype=np.int64)
            sure = merits.surely_movable(unsure, tolerance)
            movable |= set(unsure[sure].tolist())
            critical = [pair for pair in unsure[~sure] if merits.chi(pair) < tolerance]
            movable |= set(unsure.tolist()) - set(critical)
            if not critical:
                # Each could be lowered, but not all together: give up the half that is further
                # from flipping. The paper's algorithm would shrink its radius here for ever.
                near = np.argsort(self.gaps[row].numpy()[short], kind="stable")
                critical = short[near[len(short) // 2 :]].tolist()
            self.alive[row, critical] = False
        return None

    def _keeps_promise(self, trial: TrialStep, now: Array) -> bool:
        """rho_l > eta for all l, as a product: no quotient of two roundings."""
        promised = trial.merits(np.zeros_like(trial.step)) - trial.merits(trial.step)
        came = trial.merits(np.zeros_like(trial.step)) - now
        chosen = trial.pairs
        kept = (promised[chosen] > 0) & (came[chosen] > self.rules.eta * promised[chosen])
        return bool(kept.all())

    def _move(self, row: int, x: Tensor, gaps: Tensor, f: Tensor, merit: Tensor) -> None:
        """Accept a step, and set new targets so that every merit is epsilon again (35).

        The paper tests h(x^(p)) >= t, which always holds (34) and breaks (35) where a target was
        passed; its source tests h at the new point.
        """
        old = self.targets[row]
        before = self.f[row].norm() + (self.gaps[row] - old).abs()
        met = gaps >= old
        self.targets[row] = torch.where(met, old, 2 * gaps - old) - before + merit
        self.x[row], self.gaps[row], self.f[row] = x, gaps, f
        self.h_up[row] = torch.maximum(self.h_up[row], gaps.max())
        self.h_low[row] = torch.minimum(self.h_low[row], gaps.min())

    def _at(self, scaled: ScaledProblem, x: Tensor) -> tuple[Tensor, Tensor]:
        """Gaps (B, m) and weighted f~(x) - f~(x0) (B, C + N)."""
        away, classes = scaled.away(x), scaled.clean.shape[1]
        by_class, by_input = self.rules.weights
        away = torch.cat([by_class * away[:, :classes], by_input * away[:, classes:]], 1)
        return scaled.gaps(x), away

    def _chosen(self, row: int) -> Index:
        """Objectives that are left, closest to flipping first."""
        left = self.alive[row].nonzero().flatten()
        chosen: Index = left[self.gaps[row][left].argsort(stable=True)].numpy()
        return chosen

    @staticmethod
    def _rows(x: Tensor, rows: Tensor) -> Tensor:
        return x[rows.to(x.device)]
