"""Smooth copies that give a gradient where the real network's ranking is locally constant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from r2et.attack.problem import Problem
from r2et.models import smooth
from r2et.models.smooth import MODULES

KINKED = (*MODULES, nn.PReLU)


def surrogates(problem: Problem, sharpness: tuple[float, ...]) -> list[nn.Module | None]:
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


def preactivation_change(problem: Problem) -> float:
    """Median change of what enters a kinked activation, from x to random points of the region."""
    few = problem.x[:64]
    generator = torch.Generator().manual_seed(0)
    there = problem.region.sample(few, 4, generator=generator).flatten(0, 1)
    with torch.no_grad(), preactivations(problem.model) as seen:
        problem.model(there.clone())
        problem.model(few.repeat(4, *[1] * (few.ndim - 1)))
    half = len(seen) // 2
    pairs = [(a, b) for a, b in zip(seen[:half], seen[half:], strict=False) if a.shape == b.shape]
    if not pairs:  # kinks that are no modules: take the region's own size
        return problem.ball.radius
    change = torch.cat([(a - b).abs().flatten() for a, b in pairs])
    middle = float(change[change > 0].median()) if bool((change > 0).any()) else 0.0
    return middle or problem.ball.radius


@contextmanager
def preactivations(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collects what enters each kinked activation module while the model runs."""
    seen: list[Tensor] = []

    def note(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        # A clone: an in-place activation overwrites what it is given.
        seen.append(inputs[0].clone())

    handles = [
        module.register_forward_pre_hook(note)
        for module in model.modules()
        if isinstance(module, KINKED)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
