"""Where thickness looks: straight ways from x to points drawn from a distribution around it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from r2et.checks import check_input, check_scores
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.explain.base import CHUNK_NUMBERS, ScoresFn
from r2et.region import L2, Region

Distribution: TypeAlias = Literal["uniform", "gaussian", "adversarial"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("uniform", "gaussian", "adversarial")


@dataclass(frozen=True)
class Paths:
    """The distribution D of eq. (2) and how finely the integral over t is taken."""

    where: str
    distribution: Distribution
    region: Region | None
    sigma: float | None
    x_adv: Tensor | None
    samples: int
    points: int
    generator: torch.Generator | None

    def __post_init__(self) -> None:
        where, names = self.where, ", ".join(DISTRIBUTIONS)
        good = self.distribution in DISTRIBUTIONS
        require(good, where, "distribution", f"one of {names}", self.distribution)
        for name in ("samples", "points"):
            value = getattr(self, name)
            good = isinstance(value, int) and not isinstance(value, bool) and value > 0
            require(good, where, name, "a positive whole number", value)
        given = self.x_adv is not None
        if self.distribution == "adversarial":
            require(given, where, "x_adv", "given for an adversarial distribution", self.x_adv)
        else:
            name = f"None for a {self.distribution} distribution"
            require(not given, where, "x_adv", name, self.x_adv)

    def ranked_scores(self, scores: ScoresFn, x: Tensor, order: Tensor) -> Iterator[Tensor]:
        """Scores along the ways, features in the clean order: (S, points, B, n) at a time."""
        ends = self._ends(x)
        group = max(1, CHUNK_NUMBERS // (self.points * x.numel()))
        # Midpoints: exact for a gap that changes linearly, and never at x itself.
        way = (torch.arange(self.points, dtype=torch.float64) + 0.5) / self.points
        way = way.to(x).view(-1, *[1] * x.ndim)
        while block := list(islice(ends, group)):
            there = torch.stack(block)[:, None]  # (S, 1, B, ...)
            at = x + way * (there - x)
            found = scores(at.flatten(0, 2))
            check_scores(self.where, found)
            copies = order.repeat(len(block) * self.points, 1)
            good = found.shape == copies.shape
            require(good, self.where, "model", f"one that returns {tuple(copies.shape)}", found)
            yield found.gather(1, copies).view(len(block), self.points, *order.shape)

    def _ends(self, x: Tensor) -> Iterator[Tensor]:
        """The points x' ~ D, each (B, ...)."""
        if self.x_adv is not None:
            yield from self._given(self.x_adv, x)
            return
        region = L2(1.0) if self.region is None else self.region
        generator = self.generator or torch.Generator().manual_seed(0)
        sigma = region.radius / math.sqrt(x[0].numel()) if self.sigma is None else self.sigma
        left = self.samples
        while left > 0:
            # Mirrored pairs: what is odd in x' - x cancels, and the mean needs fewer samples.
            if self.distribution == "uniform":
                pair = region.sample(x.detach(), 2, generator=generator, antithetic=True)
            else:
                pair = region.gaussian(x.detach(), sigma, 2, generator=generator, antithetic=True)
            for drawn in pair[:left]:
                yield x + (drawn - x.detach())  # moves with x, should somebody differentiate by it
            left -= 2

    def _given(self, x_adv: Tensor, x: Tensor) -> Iterator[Tensor]:
        stacked = x_adv if x_adv.ndim == x.ndim + 1 else x_adv[None]
        good = stacked.ndim == x.ndim + 1 and stacked.shape[1:] == x.shape and len(stacked) > 0
        what = f"of x's shape {tuple(x.shape)}, or several of it stacked"
        require(good, self.where, "x_adv", what, x_adv)
        yield from stacked


def scores_function(
    where: str, model: nn.Module | ScoresFn, x: Tensor, explainer: Explainer | None
) -> ScoresFn:
    """Scores as a function of stacked copies of the batch."""
    check_input(where, x)
    if isinstance(model, nn.Module):
        return (Gradient() if explainer is None else explainer).at(model, x)
    require(callable(model), where, "model", "a torch.nn.Module or a function of x", model)
    what = "None when scores come from a function"
    require(explainer is None, where, "explainer", what, explainer)
    return model
