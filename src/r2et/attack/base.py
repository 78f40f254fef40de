"""What every attack is: it proposes points, and the base judges them on the real model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from r2et.attack.judge import AttackResult, Judge, Proposal
from r2et.attack.problem import AttackProblem
from r2et.checks import check_model_input
from r2et.config import Configurable
from r2et.errors import require
from r2et.explain import Explainer
from r2et.explain.callable_explainer import ScoresFunction
from r2et.models.output import CHUNK_NUMBERS, target_rows, undisturbed
from r2et.progress import bar
from r2et.region import L2, Region


def check_count(where: str, name: str, value: object) -> None:
    """A setting that counts something; True is no number."""
    require(type(value) is int and value > 0, where, name, "a positive whole number", value)


def check_between(
    where: str, name: str, value: object, expected: str, high: float = torch.inf
) -> None:
    """A setting that is a number above 0 and below `high`."""
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < high
    require(is_valid, where, name, expected, value)


@dataclass(frozen=True)
class Attack(Configurable, ABC):
    """Looks in `region` for inputs with other top-k features and the same prediction.

    A subclass proposes points; the base projects, judges and reports them.

    Args:
        region: where x' may lie, by default L2(1.0).
        keep: the "best" point an attack passes; its "last", as in the papers, where a row whose
            prediction that changes counts as unmoved; or the last before that, "last_kept".
        flip_below: when a row counts as flipped (1: any feature left the top k; the papers take 0.8
            for images and graphs).
        chunk: rows attacked together; by default as many as hold 2^18 input numbers.
        progress: show a bar.
    """

    # The rows attacked together share random numbers, which are as good as any others.
    config_excluded: ClassVar[tuple[str, ...]] = ("chunk", "progress")

    region: Region = field(default=L2(1.0))
    _: KW_ONLY
    keep: Literal["best", "last", "last_kept"] = "best"
    flip_below: float = 1.0
    chunk: int | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        where = type(self).__name__
        require(isinstance(self.region, Region), where, "region", "a Region", self.region)
        is_valid = self.keep in ("best", "last", "last_kept")
        require(is_valid, where, "keep", "best, last or last_kept", self.keep)
        is_valid = type(self.flip_below) in (int, float) and 0 < self.flip_below <= 1
        require(is_valid, where, "flip_below", "in (0, 1]", self.flip_below)
        require(type(self.progress) is bool, where, "progress", "True or False", self.progress)
        is_valid = self.chunk is None or (type(self.chunk) is int and self.chunk > 0)
        require(is_valid, where, "chunk", "None or a positive whole number", self.chunk)

    def __call__(
        self,
        model: nn.Module,
        explainer: Explainer | ScoresFunction,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
        generator: torch.Generator | None = None,
    ) -> AttackResult:
        """Attack the top k of each row of x (B, ...); repeats unless a generator says otherwise.

        explainer: whose top k; or a function (model, x, target) -> scores (B, n).
        """
        (result,) = self._run(Judge, self.judged_by, model, explainer, x, k, target, generator)
        return result

    def _run(
        self,
        judged: type[Judge],
        keep: str,
        model: nn.Module,
        explainer: Explainer | ScoresFunction,
        x: Tensor,
        k: int,
        target: Tensor | int | None,
        generator: torch.Generator | None,
    ) -> tuple[AttackResult, ...]:
        """The results of a judge, over all chunks."""
        where = type(self).__name__
        check_model_input(where, model, x)
        given = target_rows(where, target, x)
        is_valid = generator is None or isinstance(generator, torch.Generator)
        require(is_valid, where, "generator", "a torch.Generator", generator)
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
                    where, model, explainer, self.region, clean, k, chosen, number
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
