"""Anybody's own table: a file or DataFrame in, a data set out, and the same reading ever after."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from r2et.checks import check_k
from r2et.data.column import Column, Kind
from r2et.data.column_inference import Index, in_order
from r2et.data.csv_dialect import UNSTATED, CsvDialect, stated_dialect
from r2et.data.dataset import Data, Origin
from r2et.data.numerals import same_number
from r2et.data.raw_table import RawTable, SchemaRows
from r2et.data.schema import Schema
from r2et.data.table_columns import (
    MAX_CATEGORIES,
    column_name,
    inferred_columns,
    kinds_by_name,
)
from r2et.data.values import Labels, label
from r2et.defaults import K
from r2et.errors import printable, require

MOST_CLASSES = 100
SALT = int.from_bytes(b"r2et", "big")  # of the random order in which rows are split


def load_table(
    source: Any,
    target: str,
    *,
    kinds: Mapping[str, Kind | Column] | None = None,
    drop: Sequence[str] = (),
    positive: str | int | None = None,
    k: int | None = None,
    seed: int = 0,
    parts: tuple[float, float, float] = (0.70, 0.15, 0.15),
    max_categories: int = MAX_CATEGORIES,
    decimal: str | None = None,
    thousands: str | None = None,
    missing: Sequence[Any] | None = None,
    weights: str | None = None,
) -> Data:
    """A data set from a CSV or Parquet file or a DataFrame, split at random within each class.

    kinds: a kind or a whole Column for columns that were inferred wrongly. drop: columns to leave
    out. positive: which of two labels is class 1. decimal, thousands: marks within numbers that are
    text. missing: the texts or numbers that mean a missing value, instead of the usual ones.
    weights: a column of what each row counts for in training; no feature.
    docs/tables.md says what is inferred, and how.
    """
    from r2et.data.table_source import open_table  # brings pyarrow, which takes time

    where = "load_table"
    stated = stated_dialect(where, decimal, thousands, missing)
    listed = isinstance(drop, Collection) and not isinstance(drop, str)
    require(listed, where, "drop", "a list of column names", drop)
    unread = {str(name) for name in drop}
    table = open_table(where, source, stated, UNSTATED, lambda name: name not in unread)
    target = column_name(table, target, "target")
    kinds = kinds_by_name(table, kinds)
    drop = [column_name(table, name, "column name") for name in drop]
    require(target not in (*kinds, *drop), where, "target", "no feature or dropped column", target)
    many = isinstance(max_categories, int) and max_categories > 1
    require(many, where, "max_categories", "a whole number from 2", max_categories)

    labels = table.labels(target, table.sure)
    classes = _classes(labels, target, positive)
    shuffled = _split(labels, classes, seed, parts)
    dropped = [(name, "as asked") for name in dict.fromkeys(drop)]
    if weights is not None:
        weights = column_name(table, weights, "weights")
        require(weights != target, where, "weights", "another column than the target", weights)
        dropped.append((weights, "it weighs the rows"))
    names = [name for name in table.names if name not in (target, weights, *drop)]
    rest = np.concatenate(shuffled[1:])
    columns, unused = inferred_columns(table, names, kinds, shuffled[0], rest, most=max_categories)
    dropped += unused
    reasons = "; ".join(f"{name}: {reason}" for name, reason in dropped) or "no other column"
    expected = "one with at least two features besides the target"
    require(sum(len(c.features) for c in columns) > 1, where, "the table", expected, reasons)

    remembered = _remembered(stated, table)
    schema = Schema(columns, target, tuple(classes), tuple(dropped), remembered)
    order = np.concatenate(shuffled)
    x = schema.encode(SchemaRows(table, schema, order), where)
    y = schema.encode_target(Labels(labels.names, labels.codes[order]), where)
    k = min(K, len(schema.names) - 1) if k is None else k
    check_k(where, k, len(schema.names))
    lost = table.rows - len(order)
    note = f"{lost} of {table.rows} rows without a {target} left out"
    if lost:
        warnings.warn(f"{where}: {printable(note)}.", UserWarning, stacklevel=2)
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    data = Data.from_schema(
        path.name.split(".")[0] if path else "table",
        schema,
        x,
        y,
        [len(part) for part in shuffled],
        k=k,
        source=Origin(path.name if path else f"a {type(source).__name__}"),
        notes=(note,) if lost else (),
    )
    train, val, test = (torch.from_numpy(part) for part in shuffled)
    heavy = None if weights is None else _weights(table, weights)[train]
    return replace(data, row_numbers=(train, val, test), weights=heavy)


def _weights(table: RawTable, name: str) -> Tensor:
    """(rows,) what each row counts for, from a column."""
    numbers = table.numbers(name)
    expected = "a number from 0 on in every row"
    require(numbers is not None, table.where, f"weights {name!r}", expected, "text")
    assert numbers is not None
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    row = int(np.argmax(wrong))
    got = f"{numbers[row]:g} in row {row}"
    require(not wrong.any(), table.where, f"weights {name!r}", expected, got)
    return torch.from_numpy(np.array(numbers, dtype=np.float64)).float()


def _remembered(stated: CsvDialect, table: RawTable) -> CsvDialect:
    """How later cells are to be read: as the caller stated, or with the comma this file has.

    A point is not remembered: numbers in a later file with `;` may still have a comma.
    """
    detected = CsvDialect(*table.marks) if table.marks.decimal == "," else UNSTATED
    marks = stated if stated.marks else detected
    return CsvDialect(marks.decimal, marks.thousands, stated.missing)


def _classes(labels: Labels, target: str, positive: str | int | None) -> list[str]:
    where, column = "load_table", f"target {target!r}"
    count = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.names))
    present = [name for name, n in zip(labels.names, count, strict=True) if n]
    few = "a column of at least two classes"
    only = f"only {present[0]!r}" if present else "nothing"
    require(len(present) > 1, where, column, few, only)
    many = f"a column of at most {MOST_CLASSES} classes (this is a library for classifiers)"
    require(len(present) <= MOST_CLASSES, where, column, many, f"{len(present)} different values")
    rare = [f"{n} of {v!r}" for v, n in zip(labels.names, count, strict=True) if 0 < n < 3]
    require(not rare, where, column, "a column with at least 3 rows of each class", ", ".join(rare))
    classes = in_order(present)
    if positive is None:
        return classes
    require(len(classes) == 2, where, "positive", "None unless there are two classes", positive)
    wanted = same_number(label(positive))
    chosen = [name for name in classes if same_number(name) == wanted]
    require(bool(chosen), where, "positive", f"one of {', '.join(classes)}", positive)
    return sorted(classes, key=lambda name: name in chosen)


def _split(
    labels: Labels, classes: list[str], seed: int, parts: tuple[float, float, float]
) -> list[Index]:
    """Row numbers of the three parts, shuffled; each class is split by itself."""
    shares = tuple(parts) if isinstance(parts, Collection) else ()
    complete = len(shares) == 3 and all(isinstance(share, Real) for share in shares)
    complete = complete and min(shares) > 0 and abs(sum(shares) - 1) < 1e-6
    require(complete, "load_table", "parts", "three positive shares that add up to 1", parts)
    whole = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
    require(whole, "load_table", "seed", "a whole number from 0", seed)
    # Sorted by raw bits: unlike a permutation's, their stream is fixed across NumPy versions. The
    # bare seed would give the very numbers that a table made with default_rng(seed) begins with.
    bits = np.random.PCG64([seed, SALT]).random_raw(len(labels.codes))
    order = np.argsort(bits, kind="stable")
    part = np.full(len(order), -1)
    for name in classes:
        rows = order[labels.codes[order] == labels.names.index(name)]
        # At least one row of each class in each part.
        train = min(max(round(shares[0] * len(rows)), 1), len(rows) - 2)
        val = min(max(round(shares[1] * len(rows)), 1), len(rows) - train - 1)
        part[rows[:train]], part[rows[train : train + val]], part[rows[train + val :]] = 0, 1, 2
    return [order[part[order] == i] for i in range(3)]
