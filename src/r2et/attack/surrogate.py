"""Smooth copies that give a gradient where the real network's ranking is locally constant."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from r2et.attack.problem import AttackProblem
from r2et.errors import require
from r2et.models import smooth
from r2et.models.functional_smoothing import Watched


def check_differentiable(problem: AttackProblem) -> None:
    """Refuse an explanation that has no graph."""
    expected = "one that can be differentiated (or use RandomSearch, or give `through`)"
    differentiable = problem.explainer.differentiable
    require(differentiable, problem.where, "explainer", expected, type(problem.explainer).__name__)


def explained_network(problem: AttackProblem, rho: float | None) -> nn.Module:
    """The network whose gaps are followed: the model itself, or a softplus_rho copy of it."""
    check_differentiable(problem)
    return problem.model if rho is None else smooth(problem.model, rho, share=True)


def surrogates(problem: AttackProblem, sharpness: tuple[float, ...]) -> list[nn.Module | None]:
    """Copies with softplus_rho, one per sharpness; [None], the real network, if it is smooth.

    rho is sharpness over the typical change of a pre-activation within the region: so the soft
    kink is as wide as what the attack can reach, whatever the scale of the weights.
    """
    step = preactivation_change(problem)
    copies: list[nn.Module | None] = []
    for sharp in sharpness:
        copy = smooth(problem.model, sharp / step, share=True)
        with torch.no_grad():
            few = problem.x[:64]
            if torch.equal(copy(few.clone()), problem.model(few.clone())):
                return [None]
        copies.append(copy)
    return copies


def preactivation_change(problem: AttackProblem) -> float:
    """Median change of what enters a kinked activation, from x to random points of the region."""
    few = problem.x[:64]
    generator = torch.Generator().manual_seed(0)
    there = problem.region.sample(few, 4, generator=generator).flatten(0, 1)
    with torch.no_grad():
        moved = preactivations(problem.model, there)
        clean = preactivations(problem.model, few.repeat(4, *[1] * (few.ndim - 1)))
    pairs = [(a, b) for a, b in zip(moved, clean, strict=False) if a.shape == b.shape]
    if not pairs:  # no kinks that can be seen: take the region's own size
        return problem.ball.radius
    change = torch.cat([(a - b).abs().flatten() for a, b in pairs])
    middle = float(change[change > 0].median()) if bool((change > 0).any()) else 0.0
    return middle or problem.ball.radius


def preactivations(model: nn.Module, x: Tensor) -> list[Tensor]:
    """What enters each kinked activation at x, module or function, less the kink: (B, ...) each."""
    with Watched() as watched:
        model(x.clone())  # a copy: a model may begin with an operation in place
    return [a for a in watched.seen if a.ndim > 0 and len(a) == len(x)]
