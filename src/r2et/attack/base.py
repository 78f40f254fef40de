"""What every attack is: it proposes points, and the base judges them on the real model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from r2et.attack.problem import Problem
from r2et.checks import check_model_input
from r2et.errors import require
from r2et.explain import Explainer
from r2et.explain.base import CHUNK_NUMBERS
from r2et.models.output import target_rows, undisturbed
from r2et.progress import progress
from r2et.region import L2, Region


class AttackResult(NamedTuple):
    """What an attack did to each of B rows.

    x_adv: (B, ...) inputs in the region. precision: P@k of their explanation. kept: the prediction
    is unchanged; a row whose prediction could not be kept has its clean input and precision 1.
    distance: in the region's norm. first_flip: the first step at which P@k fell below the attack's
    `flip_below` with the prediction kept (the papers' manipulation epoch), -1 if none.
    """

    x_adv: Tensor
    precision: Tensor
    kept: Tensor
    distance: Tensor
    first_flip: Tensor


class Proposal(NamedTuple):
    """Points (m * A, ...) for rows `rows` (A,) of the batch; their scores, where already known."""

    points: Tensor
    rows: Tensor
    scores: Tensor | None = None


@dataclass(frozen=True)
class Attack(ABC):
    """Looks in `region` for inputs with other top-k features and the same prediction.

    keep: the "best" point an attack passes, or, as in the papers, its "last". flip_below: when a
    row counts as flipped (1: any feature left the top k; the papers take 0.8 for images and
    graphs). chunk: rows attacked together. progress: show a bar.
    """

    region: Region = field(default=L2(1.0))
    _: KW_ONLY
    keep: Literal["best", "last"] = "best"
    flip_below: float = 1.0
    chunk: int | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        where = type(self).__name__
        require(isinstance(self.region, Region), where, "region", "a Region", self.region)
        require(self.keep in ("best", "last"), where, "keep", "best or last", self.keep)
        require(0 < self.flip_below <= 1, where, "flip_below", "in (0, 1]", self.flip_below)
        good = self.chunk is None or (isinstance(self.chunk, int) and self.chunk > 0)
        require(good, where, "chunk", "None or a positive whole number", self.chunk)

    def __call__(
        self,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
        generator: torch.Generator | None = None,
    ) -> AttackResult:
        """Attack the top k of each row of x (B, ...); repeats unless a generator says otherwise."""
        where = type(self).__name__
        check_model_input(where, model, x)
        given = target_rows(where, target, x)
        generator = generator or torch.Generator().manual_seed(0)
        rows = self.chunk or max(1, CHUNK_NUMBERS // x[0].numel())
        parts = []
        with undisturbed(model), progress(where, len(x) * self.length, self.progress) as bar:
            for i in range(0, len(x), rows):
                clean = x[i : i + rows].detach()
                chosen = None if given is None else given[i : i + rows]
                problem = Problem.pose(where, model, explainer, self.region, clean, k, chosen)
                judge = Judge(problem, self.keep, self.flip_below)
                for step, proposal in enumerate(self.propose(problem, judge, generator)):
                    judge(proposal, step)
                    bar(len(clean))
                parts.append(judge.result())
        return AttackResult(*(torch.cat(column) for column in zip(*parts, strict=True)))

    @property
    def length(self) -> int:
        """How many proposals there will be, as far as the progress bar is concerned."""
        return 1

    @abstractmethod
    def propose(
        self, problem: Problem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        """Points to try, step by step, inside the region; `judge` says which rows are done."""


class Judge:
    """Keeps, for each row, the best (or last) proposal that holds its prediction."""

    def __init__(self, problem: Problem, keep: str, flip_below: float) -> None:
        self.problem, self.keep, self.flip_below = problem, keep, flip_below
        rows = len(problem.x)
        self.x_adv = problem.x.clone()
        self.precision = problem.scores.new_ones(rows)
        self.kept = torch.ones(rows, dtype=torch.bool, device=problem.x.device)
        self.first_flip = torch.full((rows,), -1, device=problem.x.device)

    def open_rows(self, rows: Tensor | None = None) -> Tensor:
        """Those of the rows, or of all, that could still be made worse."""
        least = self.problem.least
        if rows is None:
            rows = torch.arange(len(self.precision), device=self.precision.device)
        return rows if self.keep == "last" else rows[self.precision[rows] > least]

    def __call__(self, proposal: Proposal, step: int) -> None:
        points, rows, scores = proposal
        if len(rows) == 0:
            return
        part = self.problem if len(rows) == len(self.precision) else self.problem.rows(rows)
        points = points.detach()
        found = part.explain(points) if scores is None else scores.detach()
        shape = (len(points) // len(rows), len(rows))
        kept, precision = part.kept(points).view(shape), part.precision(found).view(shape)
        precision = torch.where(kept, precision, torch.inf if self.keep == "best" else 1.0)
        precision, pick = precision.min(0)  # the best of several points for one row
        kept = kept.gather(0, pick[None])[0]
        points = points.view(*shape, *points.shape[1:])
        points = points[pick, torch.arange(len(rows), device=points.device)]
        better = precision < self.precision[rows] if self.keep == "best" else torch.ones_like(kept)
        chosen = rows[better]
        self.x_adv[chosen] = points[better]
        self.precision[chosen] = precision[better]
        self.kept[chosen] = kept[better]
        flipped = rows[kept & (precision < self.flip_below) & (self.first_flip[rows] < 0)]
        self.first_flip[flipped] = step

    def result(self) -> AttackResult:
        """Everything once more from scratch: a proposal's own word counts for nothing here."""
        problem = self.problem
        x_adv = self.x_adv
        outside = ~problem.region.contains(x_adv, problem.x)
        if bool(outside.any()):
            x_adv = x_adv.clone()
            x_adv[outside] = problem.region.project(x_adv[outside], problem.x[outside])
        kept = problem.kept(x_adv)
        x_adv = torch.where(_like(kept, x_adv), x_adv, problem.x)
        precision = problem.precision(problem.explain(x_adv))
        return AttackResult(
            x_adv,
            torch.where(kept, precision, 1.0),
            kept,
            problem.region.distance(x_adv, problem.x),
            self.first_flip,
        )


def _like(rows: Tensor, x: Tensor) -> Tensor:
    return rows.view(-1, *[1] * (x.ndim - 1))
