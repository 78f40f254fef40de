"""Rows of a table with what a model decides of them, and the class whose reasons are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from r2et.audit.decision import AtCutoff
from r2et.audit.subject import Subject
from r2et.errors import require
from r2et.models.output import batched_logits, classes, log_odds
from r2et.reason.baseline import Baseline, baseline_of
from r2et.reason.columns import WHERE, ReasonColumn, columns_of_groups, columns_of_schema
from r2et.reason.table_rows import TableRows
from r2et.region.table_layout import TableSchema


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """Rows, decided.

    subject: the network, and what is known of its training.
    decided: the same network, which decides by its largest logit, at a cut-off where one is given.
    columns: what reasons are named by.
    x: (B, n) features.
    ids: what the rows are called.
    decision, probability: (B,) the class decided for, and how likely the model takes it.
    target: (B,) the class whose reasons are asked for.
    cells: of each row, by column, what is written where x tells something else; see TableRows.
    toward: that class where it is one for all rows.
    """

    subject: Subject
    decided: nn.Module
    columns: tuple[ReasonColumn, ...]
    x: Tensor
    ids: tuple[Any, ...]
    decision: Tensor
    probability: Tensor
    target: Tensor
    cells: tuple[Mapping[str, str], ...]
    toward: int | None = None

    @staticmethod
    def of(
        model: Any,
        rows: Any,
        *,
        groups: Sequence[Sequence[int]] | None = None,
        names: Sequence[str] = (),
        ids: Sequence[Any] | None = None,
        cutoff: float | None = None,
    ) -> DecidedRows:
        """Rows as `reasons` is given them, each asked for the class it is decided for."""
        subject = Subject.of(model)
        given = TableRows.of(subject, rows, "rows")
        x = given.x
        called = tuple(range(len(x)) if ids is None else (_name(own) for own in ids))
        require(len(called) == len(x), WHERE, "ids", f"one for each of {len(x)} rows", len(called))
        columns = _columns(subject, groups, names, x.shape[1])
        if subject.encode is not None:
            _check_one_category(columns, x)
        own = batched_logits(subject.model, x, WHERE)
        is_valid = cutoff is None or (isinstance(cutoff, float) and 0 < cutoff < 1)
        require(is_valid, WHERE, "cutoff", "a probability between 0 and 1", cutoff)
        two = cutoff is None or own.shape[1] <= 2
        require(two, WHERE, "cutoff", "left out for more than two classes", cutoff)
        decided = subject.model if cutoff is None else AtCutoff(subject.model, cutoff)
        decision = classes(batched_logits(decided, x, WHERE))
        return DecidedRows(
            subject,
            decided,
            columns,
            x,
            called,
            decision,
            log_odds(own.double(), decision).sigmoid(),
            decision.to(x.device),
            given.cells or tuple({} for _ in range(len(x))),
        )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def schema(self) -> TableSchema | None:
        """That of the table the model was trained on, where it was one."""
        return None if self.subject.trained is None else self.subject.trained.schema

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, where they are known."""
        return () if self.subject.trained is None else self.subject.trained.classes

    def class_name(self, index: int) -> str:
        """The label of a class."""
        return self.labels[index] if index < len(self.labels) else f"class {index}"

    def some(self, rows: Tensor) -> DecidedRows:
        """The same about some of the rows."""
        there = rows.to(self.x.device)
        return replace(
            self,
            x=self.x[there],
            ids=tuple(self.ids[i] for i in rows.tolist()),
            decision=self.decision[rows],
            probability=self.probability[rows],
            target=self.target[there],
            cells=tuple(self.cells[i] for i in rows.tolist()),
        )

    def value(self, row: int, column: ReasonColumn) -> str:
        """What a row holds in a column, in words: as written, where x tells something else."""
        return self.cells[row].get(column.name) or column.value(self.x[row])

    def asked(self, toward: str | int | None, only_decided: bool) -> DecidedRows:
        """With the class that reasons are of; only_decided: without rows decided otherwise."""
        if toward is None:
            require(not only_decided, WHERE, "toward", "given with only_decided", "nothing")
            return self
        index = self._class(toward)
        kept = self.some((self.decision == index).nonzero().flatten()) if only_decided else self
        return replace(kept, toward=index, target=torch.full_like(kept.target, index))

    def baseline(self, choice: Any, reference: Any) -> Baseline:
        """Whom rows are compared with: see baseline_of.

        reference: rows to take it of, by default the test rows that were kept with the model.
        """
        trained, seen = self.subject.trained, self.subject.seen
        mean, rows = None, None
        if reference is not None:
            rows = TableRows.of(self.subject, reference, "reference").x
        else:
            mean = None if trained is None else trained.mean
            kept = None if seen is None else seen.held_out
            rows = None if kept is None else kept.x.to(self.x)
        width = self.x.shape[1]
        if hasattr(choice, "columns"):  # a DataFrame, in the table's own units
            choice = TableRows.of(self.subject, choice, "baseline").x
            require(len(choice) == 1, WHERE, "baseline", "one row", f"{len(choice)} rows")
        return baseline_of(
            choice, self.decided, width, toward=self.toward, mean=mean, reference=rows
        )

    def _class(self, toward: str | int) -> int:
        if isinstance(toward, str) and toward in self.labels:
            return self.labels.index(toward)
        count = max(2, batched_logits(self.subject.model, self.x[:1], WHERE).shape[1])
        inside = type(toward) is int and 0 <= toward < count
        known = ", ".join(self.labels) if self.labels else f"0..{count - 1}"
        require(inside, WHERE, "toward", f"a class of the model ({known})", toward)
        return int(toward)


def _name(own: Any) -> Any:
    """What a row is called, as plain data: a number, a text or nothing."""
    own = own.item() if hasattr(own, "item") else own
    if isinstance(own, float) and not math.isfinite(own):
        return None
    return own if own is None or isinstance(own, str | int | float) else str(own)


def _columns(
    subject: Subject, groups: Sequence[Sequence[int]] | None, names: Sequence[str], width: int
) -> tuple[ReasonColumn, ...]:
    trained = subject.trained
    if trained is not None and trained.schema is not None and groups is None:
        return columns_of_schema(trained.schema)
    own = () if trained is None else trained.names
    stored = () if trained is None else trained.extra.get("groups", ())
    return columns_of_groups(stored if groups is None else groups, names or own, width)


def _check_one_category(columns: Sequence[ReasonColumn], x: Tensor) -> None:
    """Rows have one category in each column: an encoder that ignores others may leave none."""
    for column in columns:
        if len(column.features) > 1 and (column.source is None or column.source.kind == "category"):
            cells = x[:, list(column.features)]
            wrong = ~(((cells == 0) | (cells == 1)).all(1) & (cells.sum(1) == 1))
            if bool(wrong.any()):
                row = int(wrong.nonzero()[0])
                got = f"{int(cells[row].count_nonzero())} in row {row}"
                require(False, WHERE, "rows", f"of one category of {column.name!r} each", got)
