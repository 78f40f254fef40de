"""The columns of a raw table as a schema has them: of a kind that was given, or inferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, get_args

import numpy as np

from r2et.data.column import Column, Kind
from r2et.data.column_inference import Index, NoFeatureError, infer
from r2et.data.raw_table import RawTable
from r2et.data.schema import Schema
from r2et.errors import require

MAX_CATEGORIES = 50


def column_name(table: RawTable, name: Any, role: str) -> str:
    """The name as text: DataFrames may have whole numbers or tuples for names."""
    text = name if name is None or isinstance(name, str) else str(name)
    near = get_close_matches(str(name), table.names, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    shown = ", ".join(table.names[:20]) + (", ..." if len(table.names) > 20 else "")
    require(text in table.names, table.where, role, f"one of {shown}{hint}", name)
    return str(text)


def kinds_by_name(table: RawTable, kinds: Any) -> dict[str, Kind | Column]:
    """The kinds that somebody gave, by the names that the table's columns have as text."""
    mapped = kinds is None or isinstance(kinds, Mapping)
    require(mapped, table.where, "kinds", "a dictionary of kinds by column name", kinds)
    named = {column_name(table, name, "column name"): kind for name, kind in (kinds or {}).items()}
    for kind in named.values():
        known = isinstance(kind, Column) or kind in get_args(Kind)
        require(known, table.where, "kinds", f"of {', '.join(get_args(Kind))}, or a Column", kind)
    return named


def inferred_columns(
    table: RawTable,
    names: Iterable[str],
    kinds: Mapping[str, Kind | Column],
    train: Index,
    rest: Index,
    *,
    most: int = MAX_CATEGORIES,
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    """Columns that become features; and those that do not, each with the reason.

    train, rest: numbers of the rows to learn from, and of the others.
    """
    columns, dropped = [], []
    for name in names:
        kind = kinds.get(name)
        if isinstance(kind, Column):
            require(kind.name == name, table.where, "kinds", f"a Column named {name!r}", kind.name)
            columns.append(kind)
            continue
        try:
            columns.append(infer(table, name, kind, train, rest, most=most))
        except NoFeatureError as reason:
            dropped.append((name, str(reason)))
    return tuple(columns), tuple(dropped)


def infer_schema(where: str, frame: Any, kinds: Any, held: Index) -> Schema:
    """The schema of a DataFrame without a target.

    held: numbers of the rows from which only kinds are learned, no scale and no category.
    """
    from r2et.data.table_source import open_table  # brings pyarrow, which takes time

    table = open_table(where, frame)
    train = np.setdiff1d(np.arange(table.rows), held)
    columns, dropped = inferred_columns(
        table, table.names, kinds_by_name(table, kinds), train, held
    )
    reasons = "; ".join(f"{name}: {reason}" for name, reason in dropped)
    require(bool(columns), where, "X", "a table with a column to learn from", reasons)
    return Schema(columns, dropped=dropped)
