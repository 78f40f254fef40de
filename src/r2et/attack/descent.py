"""Normalised, projected gradient descent on an objective, rows together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from r2et.attack.base import Judge, Proposal
from r2et.attack.constraints import Constraint, Multipliers
from r2et.attack.problem import Objective, Problem


@dataclass(frozen=True)
class Descent:
    """x <- project(x - size * unit(grad of objective at x)).

    surrogate: a network whose explanations give the gradient, where the real one's is blind; the
    judge always looks at the real one. infinity: steps of unit largest coordinate (images,
    graphs) instead of unit length. momentum: share of the last direction kept.
    """

    objective: Objective
    steps: int
    size: Callable[[int], float]
    surrogate: nn.Module | None = None
    constraint: Constraint = "none"
    rate: float = 1.0
    infinity: bool = False
    momentum: float = 0.0

    def __call__(
        self, problem: Problem, judge: Judge, start: Tensor | None = None, *, same: bool = True
    ) -> Iterator[Proposal]:
        """Proposals from `start` (B, ...), by default x; `same`: the problem is the judge's own."""
        rows = judge.open_rows()
        part = problem.rows(rows)
        x = (problem.x if start is None else start)[rows].detach()
        heading = torch.zeros_like(x)
        weights = Multipliers(self.constraint, self.rate, part)
        known = same and self.surrogate is None  # scores at x are already the judge's
        for step in range(self.steps):
            if len(rows) == 0:
                return
            scores, gradient = self._gradient(part, x)
            if known and (step > 0 or start is not None):
                yield Proposal(x, rows, scores)
            gradient = weights.combine(gradient, x)
            heading = self.momentum * heading + _unit(gradient, infinity=self.infinity)
            move = _unit(heading, infinity=self.infinity) if self.momentum else heading
            x = part.region.project(x - self.size(step) * move, part.x)
            if not known:
                yield Proposal(x, rows)
            still = judge.open_rows(rows)
            if len(still) < 0.9 * len(rows):  # finished rows leave, when it pays
                stay = torch.isin(rows, still)
                rows, part, x, heading = rows[stay], part.rows(stay), x[stay], heading[stay]
                weights = weights.rows(stay, part)
        if known and len(rows):
            yield Proposal(x, rows)

    def _gradient(self, part: Problem, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (B, n) at x and the objective's gradient (B, ...)."""
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            scores = part.explain(point, model=self.surrogate, graph=True)
            value = self.objective(scores, part).sum()
        if not value.requires_grad:  # a piecewise-linear network with frozen weights
            return scores.detach(), torch.zeros_like(x)
        (gradient,) = torch.autograd.grad(value, point, materialize_grads=True)
        return scores.detach(), gradient


def _unit(direction: Tensor, *, infinity: bool) -> Tensor:
    """Each row over its norm; a row of zeros stays."""
    flat = direction.flatten(1)
    # Over the largest coordinate first: the square of a tiny gradient underflows.
    largest = flat.abs().amax(1, keepdim=True)
    flat = flat / torch.where(largest > 0, largest, 1.0)
    if not infinity:
        flat = flat / flat.norm(dim=1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    return flat.view_as(direction)
