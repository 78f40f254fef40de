"""Later rows of a table, read exactly as those a schema was learned on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from r2et.data.column import Column
from r2et.data.csv_dialect import stated_dialect
from r2et.data.raw_table import SchemaRows
from r2et.data.schema import Schema
from r2et.data.values import Labels, as_date
from r2et.errors import printable, require

WHERE = "apply_schema"
CHANCE = 4  # standard deviations; a share beyond them is no accident of few rows


def apply_schema(
    schema: Schema | Mapping[str, Any],
    source: Any,
    *,
    decimal: str | None = None,
    thousands: str | None = None,
    missing: Sequence[Any] | None = None,
    unlabelled: str = "drop",
) -> tuple[Tensor, Tensor | None]:
    """New rows as x (rows, n) in the order of the source, and y (rows,), None without the target.

    schema: a Schema, or what its to_json gave. Rows without a target are dropped with a warning;
    with unlabelled="keep" all stay, and y is None. decimal, thousands, missing: as for load_table;
    what is not given is as it was there.
    """
    from r2et.data.table_source import open_table  # brings pyarrow, which takes time

    if isinstance(schema, Mapping):
        schema = Schema.from_json(schema)
    is_schema = isinstance(schema, Schema)
    require(is_schema, WHERE, "schema", "a Schema or its to_json()", type(schema).__name__)
    require(unlabelled in ("drop", "keep"), WHERE, "unlabelled", "'drop' or 'keep'", unlabelled)
    stated = stated_dialect(WHERE, decimal, thousands, missing)
    read = {schema.target, *(column.name for column in schema.columns)}
    table = open_table(WHERE, source, stated, schema.dialect, read.__contains__)
    order, labels = None, None
    if schema.target is not None and schema.target in table.names:
        labels = table.labels(schema.target, table.sure)
        gone = labels.codes < 0
        if gone.all() or (unlabelled == "keep" and gone.any()):
            labels = None
        elif gone.any():
            order = np.flatnonzero(~gone)
            labels = Labels(labels.names, labels.codes[order])
            _warn(f"{int(gone.sum())} of {table.rows} rows without a {schema.target} left out")
    rows = SchemaRows(table, schema, order, later=True)
    x = schema.encode(rows, WHERE)
    _look_at_ranges(rows.outside, len(x))
    _look_at_others(schema, x)
    return x, None if labels is None else schema.encode_target(labels, WHERE)


def lost_cells(schema: Schema, source: Any) -> list[dict[str, str]]:
    """Of each row, by column, the cells that its features do not tell, as they are written.

    These are numbers and dates beyond the range of the training, which are clipped to it, and
    labels that are not listed and count as another.
    """
    from r2et.data.table_source import open_table  # brings pyarrow, which takes time

    names = {column.name for column in schema.columns}
    stated = stated_dialect(WHERE, None, None, None)
    table = open_table(WHERE, source, stated, schema.dialect, names.__contains__)
    rows = SchemaRows(table, schema, None, later=True)
    lost: list[dict[str, str]] = [{} for _ in range(table.rows)]
    for column in schema.columns:
        cells = rows[column.name]
        if isinstance(cells, Labels):
            strange = [not column.lists(name) for name in cells.names]
            gone = np.array([*strange, False])[cells.codes]
            texts = {row: cells.names[cells.codes[row]] for row in np.flatnonzero(gone).tolist()}
        else:
            numbers = np.asarray(cells, dtype=np.float64)
            gone = (numbers < column.low) | (numbers > column.high)
            texts = {row: _text(column, float(numbers[row])) for row in np.flatnonzero(gone)}
        for row, text in texts.items():
            lost[row][column.name] = text
    return lost


def _text(column: Column, value: float) -> str:
    if column.kind == "date":
        return as_date(value)
    return str(int(value)) if value.is_integer() else str(value)


def _look_at_ranges(outside: Mapping[str, int], rows: int) -> None:
    """Warn of columns most of whose numbers had to be clipped: another unit, or another mark."""
    for name, count in outside.items():
        if count > max(2, rows / 2):
            _warn(f"column {name!r} is outside its training range in {count} of {rows} rows")


def _look_at_others(schema: Schema, x: Tensor) -> None:
    """Warn of columns far more of whose labels are unknown than were at training."""
    start = 0
    for column in schema.columns:
        share = column.other_share
        if share is not None and column.other is not None:
            place = column.categories.index(column.other)
            cells = x[:, start] if column.kind == "binary" else x[:, start + place]
            unknown = cells == (place if column.kind == "binary" else 1)
            count, rows = int(unknown.sum()), len(x)
            usual = max(share, 0.02)
            most = usual + 0.02 + CHANCE * math.sqrt(usual * (1 - usual) / max(rows, 1))
            if count > max(2, most * rows):
                _warn(
                    f"column {column.name!r} is {column.other!r} in {count} of {rows} rows, "
                    f"but was in {share:.1%} at training: its labels may be written otherwise"
                )
        start += len(column.features)


def _warn(observation: str) -> None:
    warnings.warn(printable(f"{WHERE}: {observation}."), UserWarning, stacklevel=4)
