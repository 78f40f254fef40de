"""What every attack is: it proposes points, and the base judges them on the real model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from r2et.attack.problem import AttackProblem
from r2et.checks import check_model_input
from r2et.errors import require
from r2et.explain import Explainer
from r2et.models.output import CHUNK_NUMBERS, target_rows, undisturbed
from r2et.progress import bar
from r2et.region import L2, Region


def check_count(where: str, name: str, value: object) -> None:
    """A setting that counts something; True is no number."""
    require(type(value) is int and value > 0, where, name, "a positive whole number", value)


def check_between(where: str, name: str, value: object, what: str, high: float = torch.inf) -> None:
    """A setting that is a number above 0 and below `high`."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < high
    require(good, where, name, what, value)


class AttackResult(NamedTuple):
    """What an attack did to each of B rows.

    x_adv: (B, ...) inputs in the region. precision: P@k of their explanation. kept: the prediction
    is unchanged; a row whose prediction could not be kept has its clean input and precision 1.
    distance: in the region's norm. first_flip: the first step, counted from 1, at which P@k fell
    below the attack's `flip_below` with the prediction kept (the papers' manipulation epoch), -1 if
    none did.
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
        good = type(self.flip_below) in (int, float) and 0 < self.flip_below <= 1
        require(good, where, "flip_below", "in (0, 1]", self.flip_below)
        require(type(self.progress) is bool, where, "progress", "True or False", self.progress)
        good = self.chunk is None or (type(self.chunk) is int and self.chunk > 0)
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
        (found,) = self._run(Judge, self.judged_by, model, explainer, x, k, target, generator)
        return found

    def _run(
        self,
        judged: type[Judge],
        keep: str,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        k: int,
        target: Tensor | int | None,
        generator: torch.Generator | None,
    ) -> tuple[AttackResult, ...]:
        """The results of a judge, over all chunks."""
        where = type(self).__name__
        check_model_input(where, model, x)
        given = target_rows(where, target, x)
        good = generator is None or isinstance(generator, torch.Generator)
        require(good, where, "generator", "a torch.Generator", generator)
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        rows = self.chunk or max(1, CHUNK_NUMBERS // x[0].numel())
        parts = []
        shown = bar(where, total=len(x) * self.length, show=self.progress)
        with torch.inference_mode(False), undisturbed(model), shown as advance:
            x = x.clone() if x.is_inference() else x
            given = given.clone() if given is not None and given.is_inference() else given
            for i in range(0, len(x), rows):
                clean = x[i : i + rows].detach()
                chosen = None if given is None else given[i : i + rows]
                number = torch.arange(i, i + len(clean), device=x.device)
                problem = AttackProblem.from_model(
                    *(where, model, explainer, self.region, clean, k, chosen), number
                )
                judge = judged(problem, keep, self.flip_below)
                left = len(clean) * self.length
                for proposal in self.propose(problem, judge, generator):
                    if len(proposal.rows):
                        judge(proposal)
                    step = min(left, len(proposal.points))
                    left -= step
                    advance(step)
                advance(left)  # rows that finish early, searches with nothing to search
                parts.append(judge.results())
        return tuple(
            AttackResult(*(torch.cat(column) for column in zip(*some, strict=True)))
            for some in zip(*parts, strict=True)
        )

    @property
    def judged_by(self) -> str:
        """Which proposal the judge keeps."""
        return self.keep

    @property
    def length(self) -> int:
        """About how many points each row gets; the progress bar never counts beyond it."""
        return 1

    @abstractmethod
    def propose(
        self, problem: AttackProblem, judge: Judge, generator: torch.Generator
    ) -> Iterator[Proposal]:
        """Points to try, step by step, inside the region; `judge` says which rows are done."""


class Judge:
    """Keeps, for each row, the best, nearest or last proposal that holds its prediction.

    best: the smallest P@k. margin: the same, and among equals the one nearest to losing one more
    (`value` is then the problem's `keys`). nearest: the smallest distance at which P@k is below 1.
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
        found = part.explain(points) if scores is None else scores.detach()
        shape = (len(points) // len(rows), len(rows))
        precision = torch.where(part.kept(points), part.precision(found), torch.inf).view(shape)
        self._note_flips(precision, rows)
        value = precision
        if self.keep == "margin":
            hopeful = (precision * part.k).round() <= self.value[rows].floor()
            index = hopeful.flatten().nonzero().flatten()
            value = torch.full_like(precision, torch.inf, dtype=torch.float64)
            value.view(-1)[index] = part.keys(found[index], index % len(rows))
        if self.keep == "nearest":
            x = part.x.repeat(shape[0], *[1] * (points.ndim - 1))
            far = part.region.distance(points, x).to(precision).view(shape)
            # By more than rounding: the same point, looked at alone, must flip as well.
            clearly = part.flips(found).view(shape)
            value = torch.where((precision < 1) & clearly, far, torch.inf)
        self.take(points, rows, value)
        return precision

    def take(self, points: Tensor, rows: Tensor, value: Tensor) -> None:
        """Keep of points (m * A, ...) with values (m, A) those that this judge is to keep."""
        value, pick = value.min(0)  # the best of several points for one row
        better = torch.ones_like(pick).bool() if self.keep == "last" else value < self.value[rows]
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
