"""The worst change a row of a table could really have: all of them tried, or the best searched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from r2et.attack.base import Attack
from r2et.attack.judge import Judge, Proposal
from r2et.attack.problem import AttackProblem
from r2et.errors import InputError, describe, require
from r2et.models.output import CHUNK_NUMBERS
from r2et.region import Feasible

POINTS = 8  # tried together for each row of a full batch


@final
@dataclass(frozen=True, kw_only=True)
class FeasibleSearch(Attack):
    """Try every point of a Feasible region, or search it where a row has over `limit` points.

    A searched row keeps the lowest P@k, among equals the smallest margin of the next feature to
    leave the top k. Needs no gradient, so any explanation. Settings beside these are those of
    Attack.

    Args:
        limit: the most points of a row that are all tried.
        samples: random points whose best a start begins from; the first start begins from x.
        starts: how often a searched row is started.
        sweeps: rounds of a start through the columns, one changed at a time.
        values: how many values of a number are tried at once.
    """

    limit: int = 10_000
    samples: int = 64
    starts: int = 8
    sweeps: int = 4
    values: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__
        self._feasible()
        require(self.keep == "best", where, "keep", "best (a search has no last)", self.keep)
        least = {"limit": 0, "samples": 0, "starts": 1, "sweeps": 0, "values": 2}
        for name, lowest in least.items():
            value = getattr(self, name)
            is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= lowest
            require(is_valid, where, name, f"a whole number, {lowest} or more", value)

    def exact(self, x: Tensor) -> Tensor:
        """(B,) bool: every feasible point is tried, so the result is the worst there is."""
        return self._feasible().count(x) <= self.limit

    @property
    def length(self) -> int:
        region = self._feasible()
        if region.most <= self.limit:
            return max(1, math.ceil((region.most - 1) / POINTS))
        random = (self.starts - 1) * math.ceil(self.samples / POINTS)
        return random + self.starts * self.sweeps * len(region.columns)

    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        small = self.exact(problem.x)
        yield from self._all(problem, judge, small.nonzero().flatten())
        for start in range(self.starts):
            rows = judge.open_rows((~small).nonzero().flatten())
            if len(rows):
                yield from self._climb(Incumbents(problem, rows), judge, start, generator)

    def _all(self, problem: AttackProblem, judge: Judge, rows: Tensor) -> Iterator[Proposal]:
        """Every feasible point of the rows (A,)."""
        region, number = self._feasible(), 1  # point 0 is x
        count = region.count(problem.x)
        while len(rows := judge.open_rows(rows[count[rows] > number])):
            together = max(POINTS, CHUNK_NUMBERS // (len(rows) * problem.x.shape[1]))
            together = min(together, int(count[rows].max()) - number)
            index = torch.arange(number, number + together, device=rows.device)[:, None]
            # Rows with fewer points than others meet some of theirs again.
            index = index % count[rows].long()
            yield Proposal(region.nth(problem.x[rows], index).flatten(0, 1), rows)
            number += together

    def _climb(
        self, best: Incumbents, judge: Judge, start: int, generator: torch.Generator
    ) -> Iterator[Proposal]:
        """One start: random points, then column after column until nothing gets better."""
        region = self._feasible()
        left = self.samples if start else 0
        while left > 0:
            points = region.sample(best.part.x, min(left, POINTS), generator=generator)
            yield best.offer(points)
            left -= len(points)
        # Numbers of many values: all over their range at first, then ever closer around the best.
        coarse = max(region.sizes, default=0) > self.values
        for sweep in range(self.sweeps):
            before = best.key
            for column in range(len(region.columns)):
                share = 4.0**-sweep if coarse else 1.0
                for points in region.vary(best.part.x, best.point, column, self.values, share):
                    yield best.offer(points)
            moving = torch.isin(best.rows, judge.open_rows(best.rows))
            moving &= coarse | (best.key < before)
            if not bool(moving.any()):
                return
            best = best.some(moving)

    def _feasible(self) -> Feasible:
        if isinstance(self.region, Feasible):
            return self.region
        where, value = type(self).__name__, describe(self.region)
        raise InputError(f"{where}: region must be a Feasible, got {value}.")


class Incumbents:
    """The best point so far of each of the rows (A,) of a problem: P@k first, then the margin."""

    def __init__(self, problem: AttackProblem, rows: Tensor) -> None:
        self.rows, self.part = rows, problem.rows(rows)
        self.point = self.part.x.clone()
        self.key = self.part.keys(self.part.scores)

    def some(self, which: Tensor) -> Incumbents:
        """The same for some of the rows."""
        chosen = copy(self)
        chosen.rows, chosen.part = self.rows[which], self.part.rows(which)
        chosen.point, chosen.key = self.point[which], self.key[which]
        return chosen

    def offer(self, points: Tensor) -> Proposal:
        """Points (m, A, n) with the prediction kept replace what they beat; all go to the judge."""
        flat = points.flatten(0, 1)
        scores = self.part.explain(flat)
        keys = self.part.keys(scores).masked_fill(~self.part.kept(flat), torch.inf)
        key, pick = keys.view(len(points), -1).min(0)
        better = key < self.key
        chosen = points[pick, torch.arange(len(pick), device=pick.device)]
        self.point = torch.where(better[:, None], chosen, self.point)
        self.key = torch.where(better, key, self.key)
        return Proposal(flat, self.rows, scores)
