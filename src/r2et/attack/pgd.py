"""Normalised, projected gradient descent on an objective, rows together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from r2et.attack.constraints import Constraint, Multipliers
from r2et.attack.judge import Judge, Proposal
from r2et.attack.problem import AttackProblem, Objective
from r2et.models.output import log_odds, logits


@dataclass(frozen=True)
class ProjectedDescent:
    """x <- project(x - size * unit(grad of objective at x)).

    Args:
        objective: what is made small.
        steps: how many.
        size: of the step with a given number.
        surrogate: a network whose explanations give the gradient, where the real one's is blind;
            the judge always looks at the real one.
        constraint: how the prediction is kept (see Multipliers).
        rate: of the constraint's multipliers.
        infinity: steps of unit largest coordinate (images, graphs) instead of unit length.
        own: steps of unit distance in the region's own norm, steepest there.
        momentum: how much of the directions so far goes into the next one.
        hold: turn a step that would cross the decision boundary along it instead.
    """

    objective: Objective
    steps: int
    size: Callable[[int], float]
    surrogate: nn.Module | None = None
    constraint: Constraint = "none"
    rate: float = 1.0
    infinity: bool = False
    own: bool = False
    momentum: float = 0.0
    hold: bool = False

    def __call__(
        self,
        problem: AttackProblem,
        judge: Judge,
        start: Tensor | None = None,
        *,
        same: bool = True,
    ) -> Iterator[Proposal]:
        """Proposals from `start` (B, ...), by default x; `same`: the problem is the judge's own."""
        rows = judge.open_rows()
        part = problem.rows(rows)
        x = (problem.x if start is None else start)[rows].detach()
        weights = Multipliers(self.constraint, self.rate, part)
        speed = torch.zeros_like(x)
        known = same and self.surrogate is None  # scores at x are already the judge's
        for step in range(self.steps):
            if len(rows) == 0:
                return
            scores, gradient = self.gradient(part, x)
            if known and (step > 0 or start is not None):
                yield Proposal(x, rows, scores)
            gradient = weights.combine(gradient, x)
            if self.momentum:
                gradient = speed = self.momentum * speed + _unit(gradient, infinity=False)
            unit = part.ball.steepest(gradient) if self.own else _unit(gradient, self.infinity)
            move = -self.size(step) * unit
            move = held(part, x, move) if self.hold else move
            x = part.region.project(x + move, part.x)
            if not known:
                yield Proposal(x, rows)
            still = judge.open_rows(rows)
            if len(still) < 0.9 * len(rows):  # finished rows leave, when it pays
                stay = torch.isin(rows, still)
                rows, part, x, speed = rows[stay], part.rows(stay), x[stay], speed[stay]
                weights = weights.rows(stay, part)
        if known and len(rows):
            yield Proposal(x, rows)

    def gradient(self, part: AttackProblem, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (B, n) at x and the objective's gradient (B, ...)."""
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            scores = part.explain(point, model=self.surrogate, graph=True)
            value = self.objective(scores, part).sum()
        if not value.requires_grad:  # a piecewise-linear network with frozen weights
            return scores.detach(), torch.zeros_like(x)
        (gradient,) = torch.autograd.grad(value, point, materialize_grads=True)
        return scores.detach(), gradient


def held(problem: AttackProblem, x: Tensor, move: Tensor) -> Tensor:
    """The move less what of it would cross the (linearised) decision boundary, or is across it."""
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        margin = log_odds(logits(problem.model, point, problem.where), problem.label)
        (slope,) = torch.autograd.grad(margin.sum(), point, materialize_grads=True)
    flat, flat_move = slope.flatten(1), move.flatten(1)
    length = flat.norm(dim=1).clamp(min=torch.finfo(x.dtype).tiny)
    away = flat / length[:, None]  # the unit vector away from the boundary
    room = 0.9 * margin.detach() / length
    over = (-(flat_move * away).sum(1) - room).clamp(min=0)
    turned: Tensor = flat_move + over[:, None] * away
    return turned.view_as(move)


def _unit(direction: Tensor, infinity: bool) -> Tensor:
    """Each row over its norm; a row of zeros stays."""
    flat = direction.flatten(1)
    # Over the largest coordinate first: the square of a tiny gradient underflows.
    largest = flat.abs().amax(1, keepdim=True)
    flat = flat / torch.where(largest > 0, largest, 1.0)
    if not infinity:
        flat = flat / flat.norm(dim=1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    return flat.view_as(direction)
