"""Where thickness looks: straight ways from x to points drawn from a distribution around it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, replace
from itertools import islice
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from r2et.checks import check_input, check_scores
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.explain.base import ScoresFn
from r2et.models.output import CHUNK_NUMBERS
from r2et.region import L2, Region, as_ball

Distribution: TypeAlias = Literal["uniform", "gaussian", "adversarial"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("uniform", "gaussian", "adversarial")


@dataclass(frozen=True)
class SamplingPaths:
    """The distribution D of eq. (2) and how finely the integral over t is taken.

    Attributes:
        where: whose name errors carry.
        distribution: "uniform", "gaussian" or "adversarial".
        region: of the first two, by default L2(1.0).
        sigma: of the second, by default radius / sqrt(n).
        x_adv: of the third, (B, ...) or (S, B, ...).
        samples: ends of ways from each row.
        points: on each way.
        seed: of the draws; from a generator, where one is given.
    """

    where: str
    distribution: Distribution
    region: Region | None
    sigma: float | None
    x_adv: Tensor | None
    samples: int
    points: int
    generator: InitVar[torch.Generator | None]
    seed: int = 0

    def __post_init__(self, generator: torch.Generator | None) -> None:
        where, names = self.where, ", ".join(DISTRIBUTIONS)
        is_valid = self.distribution in DISTRIBUTIONS
        require(is_valid, where, "distribution", f"one of {names}", self.distribution)
        for name in ("samples", "points"):
            value = getattr(self, name)
            is_valid = isinstance(value, int) and not isinstance(value, bool) and value > 0
            require(is_valid, where, name, "a positive whole number", value)
        given = self.x_adv is not None
        if self.distribution == "adversarial":
            require(given, where, "x_adv", "given for an adversarial distribution", self.x_adv)
        for name, belongs in (("x_adv", "adversarial"), ("sigma", "gaussian")):
            value = getattr(self, name)
            fits = value is None or self.distribution == belongs
            require(fits, where, name, f"None for a {self.distribution} distribution", value)
        fits = self.region is None or not given
        require(fits, where, "region", "None when x_adv is given", self.region)
        is_valid = self.region is None or isinstance(self.region, Region)
        require(is_valid, where, "region", "a Region such as L2(0.3)", self.region)
        is_valid = generator is None or isinstance(generator, torch.Generator)
        require(is_valid, where, "generator", "a torch.Generator", generator)
        if generator is not None:
            drawn = torch.randint(2**62, (), generator=generator)
            object.__setattr__(self, "seed", int(drawn))

    def blocks(
        self, model: nn.Module | ScoresFn, x: Tensor
    ) -> Iterator[tuple[Tensor, SamplingPaths]]:
        """Rows of x, and the ways from them, as many at a time as memory allows.

        All rows share their draws, so it does not matter where the cuts are. A function of
        stacked copies is another matter: it may know its batch, and gets it whole.
        """
        check_input(self.where, x)
        rows = max(1, CHUNK_NUMBERS // x[0].numel()) if isinstance(model, nn.Module) else len(x)
        ends = self._given(x)
        for i in range(0, len(x), rows):
            some = None if ends is None else ends[:, i : i + rows]
            yield x[i : i + rows], replace(self, x_adv=some, generator=None)

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
            values = scores(at.flatten(0, 2))
            check_scores(self.where, values)
            copies = order.repeat(len(block) * self.points, 1)
            is_valid = values.shape == copies.shape
            require(
                is_valid, self.where, "model", f"one that returns {tuple(copies.shape)}", values
            )
            yield values.gather(1, copies).view(len(block), self.points, *order.shape)

    def _ends(self, x: Tensor) -> Iterator[Tensor]:
        """The points x' ~ D, each (B, ...)."""
        given = self._given(x)
        if given is not None:
            yield from given
            return
        region = L2(1.0) if self.region is None else self.region
        generator = torch.Generator().manual_seed(self.seed)
        # Mirrored pairs: what is odd in x' - x cancels, and the mean needs fewer samples. The same
        # moves for all rows: a row's thickness does not depend on its batch.
        settings: dict[str, Any] = {"generator": generator, "antithetic": True, "shared": True}
        left = self.samples
        while left > 0:
            if self.distribution == "uniform":
                pair = region.sample(x.detach(), 2, **settings)
            else:
                ball = as_ball(self.where, region)
                usual = ball.radius / math.sqrt(x[0].numel())
                sigma = usual if self.sigma is None else self.sigma
                pair = ball.gaussian(x.detach(), sigma, 2, **settings)
            for drawn in pair[:left]:
                yield x + (drawn - x.detach())  # moves with x, should somebody differentiate by it
            left -= 2

    def _given(self, x: Tensor) -> Tensor | None:
        """x_adv as (S, B, ...)."""
        if self.x_adv is None:
            return None
        is_valid = isinstance(self.x_adv, Tensor)
        require(is_valid, self.where, "x_adv", "a torch.Tensor", type(self.x_adv).__name__)
        stacked = self.x_adv if self.x_adv.ndim == x.ndim + 1 else self.x_adv[None]
        is_valid = stacked.ndim == x.ndim + 1 and stacked.shape[1:] == x.shape and len(stacked) > 0
        expected = f"of x's shape {tuple(x.shape)}, or several of it stacked"
        require(is_valid, self.where, "x_adv", expected, self.x_adv)
        is_valid = stacked.dtype == x.dtype and stacked.device == x.device
        require(is_valid, self.where, "x_adv", f"{x.dtype} on {x.device}, as x is", self.x_adv)
        return stacked


def scores_function(
    where: str, model: nn.Module | ScoresFn, x: Tensor, explainer: Explainer | None
) -> ScoresFn:
    """Scores as a function of stacked copies of the batch."""
    is_valid = explainer is None or isinstance(explainer, Explainer)
    require(is_valid, where, "explainer", "an Explainer such as Gradient()", explainer)
    if isinstance(model, nn.Module):
        return (Gradient() if explainer is None else explainer).at(model, x)
    require(callable(model), where, "model", "a torch.nn.Module or a function of x", model)
    expected = "None when scores come from a function"
    require(explainer is None, where, "explainer", expected, explainer)
    return model
