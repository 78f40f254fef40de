"""The search for a change that gives a row other reasons, and what is changed, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from r2et.attack import FeasibleSearch, StrongAttack
from r2et.attack.base import Attack
from r2et.audit.raw_values import changed_columns
from r2et.errors import require
from r2et.explain import Explainer, IntegratedGradients
from r2et.models.output import batched_logits, classes
from r2et.reason.columns import WHERE, ReasonColumn, reason_sets
from r2et.region import Feasible
from r2et.region.base import Region
from r2et.region.table_layout import TableSchema

NAMED = 4  # changes that a sentence tells
QUICK = 16  # points of an integral that is looked at first


@final
@dataclass(frozen=True, kw_only=True)
class NamedScores(Explainer):
    """A 0, and after it the scores of the columns that may be named: reasons are above the 0.

    It comes first because ties go to the first: a score of 0 is no reason.

    contributions: the signed explanation of all columns.
    named: places of those that may be named.
    """

    contributions: Explainer
    named: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = isinstance(self.contributions, Explainer)
        require(is_valid, "NamedScores", "contributions", "an Explainer", self.contributions)
        is_valid = isinstance(self.named, tuple) and all(type(c) is int for c in self.named)
        require(is_valid, "NamedScores", "named", "a tuple of whole numbers", self.named)

    def attribute(
        self, model: nn.Module, x: Tensor, target: Tensor | None, *, create_graph: bool
    ) -> Tensor:
        scores = self.contributions(model, x, target, create_graph=create_graph)
        return torch.cat([torch.zeros_like(scores[:, :1]), scores[:, list(self.named)]], 1)


class Broken(NamedTuple):
    """Rows that a change gives other reasons.

    found: (B,) bool.
    x_adv: (B, n) the changed rows; those without a change as they were.
    single: by row and column, a changed row (n,) that takes this reason away, where x_adv does not.
    """

    found: Tensor
    x_adv: Tensor
    single: Mapping[tuple[int, int], Tensor] = MappingProxyType({})

    def placed(self, rows: Tensor, own: Broken) -> Broken:
        """This, with what is known of some rows in their places."""
        found, x_adv = self.found.clone(), self.x_adv.clone()
        found[rows], x_adv[rows.to(x_adv.device)] = own.found, own.x_adv
        there = {(int(rows[i]), c): point for (i, c), point in own.single.items()}
        return Broken(found, x_adv, {**self.single, **there})


@dataclass(frozen=True)
class Search:
    """Everything that the search for other reasons goes by.

    decided: the model, which decides by its largest logit.
    contributions: the signed explanation.
    allowed: (C,) bool, columns that may be named.
    k: how many reasons at most.
    region: the changes allowed.
    budget: of StrongAttack.
    """

    decided: nn.Module
    contributions: Explainer
    allowed: Tensor
    k: int
    region: Region
    budget: str = "standard"

    def __call__(self, x: Tensor, target: Tensor) -> Broken:
        """Try every row (B, n); reasons are those toward the class target (B,)."""
        clean = self.reason_sets(x, target)
        found = torch.zeros(len(x), dtype=torch.bool)
        x_adv = x.clone()
        for count in sorted(set(clean.sum(1).tolist())):
            rows = (clean.sum(1) == count).nonzero().flatten()
            for among in self._borders(count):
                for followed in self._followed():
                    open_rows = rows[~found[rows]]
                    if not len(open_rows):
                        break
                    points = self._attacked(followed, x[open_rows], target[open_rows], among)
                    other = self._other(x[open_rows], points, target[open_rows])
                    found[open_rows] |= other
                    x_adv[open_rows[other]] = points[other]
        if bool(found.any()) and isinstance(self.region, Feasible):
            x_adv[found] = self._shortened(x[found], x_adv[found], target[found])
        return Broken(found, x_adv)

    def reason_sets(self, x: Tensor, target: Tensor) -> Tensor:
        """(B, C) bool: the columns that are reasons."""
        return reason_sets(self.contributions(self.decided, x, target), self.allowed, self.k)

    def _borders(self, count: int) -> list[int]:
        """Sizes of the sets at whose edge reasons may change: of the named columns and the 0.

        Where there are fewer reasons than k, another one enters as soon as it is above 0.
        """
        most = int(self.allowed.sum())
        sizes = [count] if count == self.k else [count, count + 1]
        return [size for size in sizes if 0 < size <= most]

    def _followed(self) -> list[Explainer]:
        """What the attack looks at: of an integral of many points first one of few, which is quick.

        Whatever it looks at, what is found is judged by the contributions themselves.
        """
        own = self.contributions
        if isinstance(own, IntegratedGradients) and own.points > QUICK:
            return [replace(own, points=QUICK), own]
        return [own]

    def _attacked(self, followed: Explainer, x: Tensor, target: Tensor, size: int) -> Tensor:
        named = tuple(self.allowed.nonzero().flatten().tolist())
        scores = NamedScores(reduce="signed", contributions=followed, named=named)
        attack: Attack = (
            FeasibleSearch(self.region)
            if isinstance(self.region, Feasible)
            else StrongAttack(self.region, budget=self.budget)  # type: ignore[arg-type]
        )
        return attack(self.decided, scores, x, k=size, target=target).x_adv

    def _other(self, x: Tensor, points: Tensor, target: Tensor) -> Tensor:
        """(B,) bool: other reasons at the points, and the decision as at x."""
        differ = (self.reason_sets(points, target) != self.reason_sets(x, target)).any(1)
        same = classes(batched_logits(self.decided, points, WHERE)) == classes(
            batched_logits(self.decided, x, WHERE)
        )
        return differ & same

    def _shortened(self, x: Tensor, points: Tensor, target: Tensor) -> Tensor:
        """The same changes without the columns that they do not need."""
        region = self.region
        assert isinstance(region, Feasible)
        short, start = points.clone(), 0
        for column in region.schema.columns:
            span = slice(start, start + len(column.features))
            start = span.stop
            trial = short.clone()
            trial[:, span] = x[:, span]
            keeps = self._other(x, trial, target)
            short = torch.where(keeps[:, None].to(short.device), trial, short)
        return short


def change_words(
    schema: TableSchema | None, columns: Sequence[ReasonColumn], x: Tensor, x_adv: Tensor
) -> str:
    """What differs between two rows (n,): "age 39 -> 41, hours 40 -> 38"."""
    if schema is not None:
        changes = changed_columns(schema, x, x_adv)
        parts = [f"{c['column']} {c['before']} -> {c['after']}" for c in changes]
    else:
        moved = [c for c in columns if bool((x[list(c.features)] != x_adv[list(c.features)]).any())]
        moved.sort(key=lambda c: -float((x_adv - x)[list(c.features)].abs().max()))
        parts = [f"{c.name} {c.value(x)} -> {c.value(x_adv)}" for c in moved]
    more = len(parts) - NAMED
    return ", ".join(parts[:NAMED]) + (f" and {more} more" if more > 0 else "")
