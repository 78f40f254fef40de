"""Every proposal is looked at with the real model, and the worst of each row is kept."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from r2et.attack.problem import AttackProblem


class AttackResult(NamedTuple):
    """What an attack did to each of B rows.

    Attributes:
        x_adv: (B, ...) inputs in the region; the clean one where the prediction could not be kept.
        precision: (B,) P@k of their explanation; 1 where the prediction could not be kept.
        kept: (B,) bool, the prediction is unchanged.
        distance: (B,) in the region's norm.
        first_flip: (B,) the first step, counted from 1, at which P@k fell below the attack's
            `flip_below` with the prediction kept (the papers' manipulation epoch); -1 if none did.
    """

    x_adv: Tensor
    precision: Tensor
    kept: Tensor
    distance: Tensor
    first_flip: Tensor

    @property
    def radius(self) -> Tensor:
        """(B,) how far the change was that moved a feature out of the top k; infinite if none."""
        return torch.where(self.precision < 1, self.distance, torch.inf)


class Proposal(NamedTuple):
    """Points (m * A, ...) for rows `rows` (A,) of the batch; their scores, where already known."""

    points: Tensor
    rows: Tensor
    scores: Tensor | None = None


class Judge:
    """Keeps, for each row, the best, nearest or last proposal.

    One that does not hold the prediction is reported as the clean row.

    Args:
        problem: the rows under attack.
        keep: "best", the smallest P@k; "margin", the same, and among equals the one nearest to
            losing one more (`value` is then the problem's `keys`); "nearest", the smallest distance
            at which P@k is below 1; "last", whatever it predicts; "last_kept", the last that holds
            the prediction.
        flip_below: the P@k below which a row counts as flipped.
    """

    def __init__(self, problem: AttackProblem, keep: str, flip_below: float) -> None:
        self.problem, self.keep, self.flip_below = problem, keep, flip_below
        rows, device = len(problem.x), problem.x.device
        self.x_adv = problem.x.clone()
        self.value = torch.full((rows,), torch.inf if keep == "nearest" else 1.0, device=device)
        if keep == "margin":
            self.value = problem.keys(problem.scores)
        self.first_flip = torch.full((rows,), -1, device=device)
        self.seen = torch.zeros(rows, dtype=torch.long, device=device)  # points proposed so far

    def open_rows(self, rows: Tensor | None = None) -> Tensor:
        """Those of the rows, or of all, that could still be made worse."""
        if rows is None:
            rows = torch.arange(len(self.value), device=self.value.device)
        if self.keep == "margin":
            return rows[self.value[rows].floor() > round(self.problem.k * self.problem.least)]
        return rows[self.value[rows] > self.problem.least] if self.keep == "best" else rows

    def __call__(self, proposal: Proposal) -> Tensor:
        """Look at points (m * A, ...); returns their P@k (m, A), infinite where not kept."""
        points, rows, scores = proposal
        part = self.problem if len(rows) == len(self.value) else self.problem.rows(rows)
        points = points.detach()
        scores = part.explain(points) if scores is None else scores.detach()
        shape = (len(points) // len(rows), len(rows))
        precision = torch.where(part.kept(points), part.precision(scores), torch.inf).view(shape)
        self._note_flips(precision, rows)
        value = precision
        if self.keep == "margin":
            hopeful = (precision * part.k).round() <= self.value[rows].floor()
            index = hopeful.flatten().nonzero().flatten()
            value = torch.full_like(precision, torch.inf, dtype=torch.float64)
            value.view(-1)[index] = part.keys(scores[index], index % len(rows))
        if self.keep == "nearest":
            x = part.x.repeat(shape[0], *[1] * (points.ndim - 1))
            far = part.region.distance(points, x).to(precision).view(shape)
            # By more than rounding: the same point, looked at alone, must flip as well.
            clearly = part.flips(scores).view(shape)
            value = torch.where((precision < 1) & clearly, far, torch.inf)
        self.take(points, rows, value)
        return precision

    def take(self, points: Tensor, rows: Tensor, value: Tensor) -> None:
        """Keep of points (m * A, ...) with values (m, A) those that this judge is to keep."""
        value, pick = value.min(0)  # the best of several points for one row
        if self.keep == "last":
            better = torch.ones_like(pick).bool()
        elif self.keep == "last_kept":
            better = value < torch.inf
        else:
            better = value < self.value[rows]
        chosen = better.nonzero().flatten()
        if len(chosen):
            self.x_adv[rows[chosen]] = points[pick[chosen] * len(rows) + chosen]
            self.value[rows[chosen]] = value[chosen].to(self.value)

    def _note_flips(self, precision: Tensor, rows: Tensor) -> None:
        flips = precision < self.flip_below
        new = flips.any(0) & (self.first_flip[rows] < 0)
        first = flips.int().argmax(0)
        self.first_flip[rows[new]] = self.seen[rows[new]] + 1 + first[new]
        self.seen[rows] += len(precision)

    def result(self) -> AttackResult:
        """Everything once more from scratch: a proposal's own word counts for nothing here."""
        problem, x_adv = self.problem, self.x_adv
        outside = ~problem.region.contains(x_adv, problem.x)
        if bool(outside.any()):
            x_adv = x_adv.clone()
            x_adv[outside] = problem.region.project(x_adv[outside], problem.x[outside])
        kept = problem.kept(x_adv)
        x_adv = torch.where(kept.view(-1, *[1] * (x_adv.ndim - 1)), x_adv, problem.x)
        precision = problem.precision(problem.explain(x_adv))
        if self.keep == "margin":  # nearer to a flip is no flip: such a row is as it was
            held = (precision == 1).view(-1, *[1] * (x_adv.ndim - 1))
            x_adv = torch.where(held, problem.x, x_adv)
        distance = problem.region.distance(x_adv, problem.x)
        return AttackResult(x_adv, precision, kept, distance, self.first_flip)

    def results(self) -> tuple[AttackResult, ...]:
        """All that this judge has kept."""
        return (self.result(),)


class BestAndLastJudge(Judge):
    """Keeps the last proposal of each row, and beside it the best on the way."""

    def __init__(self, problem: AttackProblem, keep: str, flip_below: float) -> None:
        super().__init__(problem, keep, flip_below)
        self.best = Judge(problem, "best", flip_below)

    def __call__(self, proposal: Proposal) -> Tensor:
        precision = super().__call__(proposal)
        self.best.take(proposal.points.detach(), proposal.rows, precision)
        return precision

    def results(self) -> tuple[AttackResult, ...]:
        """The best, then the last."""
        self.best.first_flip = self.first_flip
        return self.best.result(), self.result()
