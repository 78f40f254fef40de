"""The floor under every attack: random points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from r2et.attack.base import Attack, check_count
from r2et.attack.judge import Judge, Proposal
from r2et.attack.problem import AttackProblem
from r2et.errors import require
from r2et.models.output import CHUNK_NUMBERS
from r2et.region import Linf


@final
@dataclass(frozen=True, kw_only=True)
class RandomSearch(Attack):
    """Uniform points of the region. Needs no gradient of anything.

    Settings beside this one are those of Attack.

    Args:
        points: how many for each row.
    """

    points: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.keep == "best", "RandomSearch", "keep", "best", self.keep)
        check_count("RandomSearch", "points", self.points)

    @property
    def length(self) -> int:
        return self.points

    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        yield from scatter(problem, judge, generator, self.points)


def scatter(
    problem: AttackProblem,
    judge: Judge,
    generator: torch.Generator,
    points: int,
    *,
    edge: bool = False,
) -> Iterator[Proposal]:
    """Random points for the rows that are still open; with `edge`, pushed out to the border."""
    while points > 0:
        rows = judge.open_rows()
        if len(rows) == 0:
            return
        part = problem.rows(rows)
        count = min(points, max(1, CHUNK_NUMBERS // part.x.numel()))
        drawn = part.region.sample(part.x, count, generator=generator).flatten(0, 1)
        if edge:
            drawn = push_out(part, drawn)
        yield Proposal(drawn, rows)
        points -= count


def push_out(problem: AttackProblem, points: Tensor) -> Tensor:
    """Points (m * B, ...) moved away from x as far as the region goes: a box, to its corners."""
    x = problem.x.repeat(len(points) // len(problem.x), *[1] * (problem.x.ndim - 1))
    ball = problem.ball
    if isinstance(ball, Linf):
        return problem.region.project(x + ball.radius * ball.steepest(points - x), x)
    far = problem.region.distance(points, x)
    grown = torch.where(far > 0, ball.radius / torch.where(far > 0, far, 1.0), 0.0)
    grown = grown.to(points.dtype).view(-1, *[1] * (points.ndim - 1))
    return problem.region.project(x + grown * (points - x), x)
