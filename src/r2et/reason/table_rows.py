"""Rows of a table as features, with the cells that features do not tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from r2et.audit.subject import Subject
from r2et.checks import check_input
from r2et.data.later_rows import apply_schema, lost_cells
from r2et.data.schema import Schema
from r2et.errors import require
from r2et.reason.columns import WHERE
from r2et.train import Trained

EXPECTED = "a tensor of features (B, n), or for a model of a table a DataFrame or a file"


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows that reasons are asked of.

    x: (B, n) features.
    cells: of each row, by column, what is written where the features tell something else: a number
        beyond the training's range, a label that counts as another. Empty where nothing is known.
    """

    x: Tensor
    cells: tuple[Mapping[str, str], ...] = ()

    @staticmethod
    def read(schema: Schema, source: Any) -> TableRows:
        """All rows of a file or DataFrame, whatever its target column holds."""
        is_table = isinstance(source, str | Path) or hasattr(source, "columns")
        require(is_table, WHERE, "rows", EXPECTED, type(source).__name__)
        x, _ = apply_schema(replace(schema, target=None), source)
        return TableRows(x, tuple(lost_cells(schema, source)))

    @staticmethod
    def of(subject: Subject, rows: Any, name: str) -> TableRows:
        """Rows as `reasons` is given them: encoded ones as they are, a table as in the training."""
        model, trained = subject.model, subject.trained
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        table = trained is not None and trained.schema is not None
        is_raw = not isinstance(rows, Tensor | TableRows)
        rows = subject.prepared(rows) if is_raw else rows
        if is_raw and subject.encode is not None and not subject.by_schema:
            rows = torch.as_tensor(subject.encode(rows))
        elif is_raw and subject.steps is not None and not table:
            rows = torch.as_tensor(np.asarray(rows))
        elif is_raw and table:
            assert trained is not None
            assert trained.schema is not None
            rows = TableRows.read(trained.schema, rows)
        given = TableRows(rows) if isinstance(rows, Tensor) else rows
        require(isinstance(given, TableRows), WHERE, name, EXPECTED, type(rows).__name__)
        x: Tensor = given.x.detach().to(like.device, like.dtype)
        check_input(WHERE, x, name)
        require(x.ndim == 2, WHERE, name, "a table: rows of features", x)
        return replace(given, x=x)

    def some(self, places: Sequence[int]) -> TableRows:
        """Some of the rows."""
        cells = tuple(self.cells[i] for i in places) if self.cells else ()
        return TableRows(self.x[torch.tensor(list(places), dtype=torch.long)], cells)


def notes_of(trained: Trained | None, cells: Sequence[Mapping[str, str]]) -> list[str]:
    """What is said of the cells that the model takes for something else."""
    schema = None if trained is None else trained.schema
    notes = []
    for column in () if schema is None else schema.columns:
        count = sum(column.name in own for own in cells)
        if not count:
            continue
        rows = f"{count} row{'' if count == 1 else 's'}"
        if column.other is not None:
            notes.append(f"{column.name}: {rows} with an unknown label count as {column.other}")
            continue
        low, high = (column.show(end) for end in (column.low, column.high))
        ends = f"{_short(low)} to {_short(high)}"
        notes.append(
            f"{column.name}: {rows} beyond the training's {ends} count as its end, "
            "and changes are counted from there"
        )
    return notes


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"
