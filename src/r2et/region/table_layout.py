"""The columns of a table as a region needs them: which features go together, and how far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from r2et.checks import check_input
from r2et.config import plain
from r2et.errors import require
from r2et.region.parsing import as_number

MEASURED = ("number", "integer", "date")
ColumnValues: TypeAlias = tuple[tuple[str, float], ...]


class TableColumn(Protocol):
    """One column: (value - low) / (high - low) and perhaps a missing-flag, 0 or 1, or one-hot."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def features(self) -> tuple[str, ...]: ...


class TableSchema(Protocol):
    """The columns of a table in the order of their features; r2et.data.Schema is one."""

    @property
    def columns(self) -> Sequence[TableColumn]: ...


@dataclass(frozen=True)
class NumberColumn:
    """A column that may move by up to `reach` raw units in steps of `step`.

    Attributes:
        name: of the column.
        feature: where its value is.
        flag: where its missing-flag is.
        low, high: raw values that are encoded as 0 and 1.
        step: in raw units; 0: any value.
        reach: in raw units.
        integer: only whole values are real.
    """

    name: str
    feature: int
    flag: int | None
    low: float
    high: float
    step: float
    reach: float
    integer: bool


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels: one feature that is 0 or 1, or several of which one is 1."""

    name: str
    features: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many labels there are."""
        return max(2, len(self.features))


@dataclass(frozen=True)
class TableLayout:
    """What may change, numbers and labels, and what x must look like for that.

    Attributes:
        names: of all features.
        numbers: columns that may move.
        choices: columns of labels of which some may be switched.
        labels: all columns of labels.
        flags: all missing-flags.
    """

    names: tuple[str, ...]
    numbers: tuple[NumberColumn, ...]
    choices: tuple[LabelColumn, ...]
    labels: tuple[LabelColumn, ...]
    flags: tuple[int, ...]


def schema_config(schema: TableSchema) -> list[dict[str, Any]]:
    """What tells a schema from another, in plain JSON: what TableColumn asks for."""
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "low": plain(column.low),
            "high": plain(column.high),
            "features": list(column.features),
        }
        for column in schema.columns
    ]


def check_schema(where: str, schema: Any) -> None:
    """Anything with columns that have what TableColumn asks for."""
    wanted = ("name", "kind", "low", "high", "features")
    columns = getattr(schema, "columns", ())
    is_valid = isinstance(columns, Sequence) and len(columns) > 0
    is_valid = is_valid and all(hasattr(column, field) for column in columns for field in wanted)
    require(is_valid, where, "schema", "a table's schema, such as load_table(...).schema", schema)


def as_pairs(where: str, role: str, given: Any, schema: TableSchema) -> ColumnValues:
    """Numbers by column name, of measured columns only, in the schema's order."""
    expected = "numbers by column name, such as {'age': 2}"
    is_valid = isinstance(given, Mapping | Sequence) and not isinstance(given, str)
    is_valid = is_valid and (isinstance(given, Mapping) or all(_pair(item) for item in given))
    require(is_valid, where, role, expected, given)
    numbers = {name: as_number(where, f"{role} of {name!r}", v) for name, v in dict(given).items()}
    kinds = {column.name: column.kind for column in schema.columns}
    for name, value in numbers.items():
        check_name(where, role, name, list(kinds))
        measured = "for numbers, integers and dates (give switches for labels)"
        require(kinds[name] in MEASURED, where, role, measured, f"{name!r}, a {kinds[name]}")
        require(value >= 0, where, f"{role} of {name!r}", "0 or more", value)
    return tuple((name, numbers[name]) for name in kinds if name in numbers)


def as_columns(where: str, frozen: Any, schema: TableSchema) -> tuple[str, ...]:
    """Column names and feature indices as names of columns, in the schema's order."""
    values = frozen.tolist() if hasattr(frozen, "tolist") else frozen
    is_valid = isinstance(values, Iterable) and not isinstance(values, str)
    require(is_valid, where, "frozen", "a list of column names or feature indices", frozen)
    names = [column.name for column in schema.columns]
    owners = [column.name for column in schema.columns for _ in column.features]
    held = set()
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool):
            expected = f"column names or feature indices in 0..{len(owners) - 1}"
            require(0 <= value < len(owners), where, "frozen", expected, value)
            held.add(owners[value])
        else:
            check_name(where, "frozen", value, names)
            held.add(value)
    return tuple(name for name in names if name in held)


def check_name(where: str, role: str, name: Any, names: list[str]) -> None:
    """A column's name, or the nearest one suggested."""
    near = get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    require(name in names, where, role, f"of columns {shown}{hint}", repr(name))


def layout(
    where: str,
    schema: TableSchema,
    reach: Mapping[str, float],
    grid: ColumnValues,
    frozen: Sequence[str],
) -> TableLayout:
    """Where each column's features are, and how far each number goes in raw units."""
    steps = dict(grid)
    names: list[str] = []
    numbers, labels, flags = [], [], []
    for column in schema.columns:
        start = len(names)
        names += column.features
        if column.kind not in MEASURED:
            labels.append(LabelColumn(column.name, tuple(range(start, len(names)))))
            continue
        flag = start + 1 if len(column.features) > 1 else None
        flags += [] if flag is None else [flag]
        far = min(reach.get(column.name, 0.0), column.high - column.low)
        if column.name in frozen or far == 0:
            continue
        least = 0.0 if column.kind == "number" else 1.0  # whole numbers, whole days
        step = steps.get(column.name, least)
        is_valid = math.isfinite(step) and (least == 0 or (step > 0 and step % 1 == 0))
        expected = "finite" if least == 0 else "a positive whole number"
        require(is_valid, where, f"grid of {column.name!r}", expected, step)
        expected = f"0, or at least its step of {step:g} (or freeze it)"
        require(far >= step * (1 - 1e-9), where, f"moves of {column.name!r}", expected, far)
        far = math.floor(far / step + 1e-9) * step if step else far
        integer = column.kind == "integer"
        numbers.append(
            NumberColumn(column.name, start, flag, column.low, column.high, step, far, integer)
        )
    free = tuple(choice for choice in labels if choice.name not in frozen)
    return TableLayout(tuple(names), tuple(numbers), free, tuple(labels), tuple(flags))


def check_rows(where: str, table: TableLayout, x: Tensor) -> None:
    """Refuse rows that the schema could not have encoded."""
    check_input(where, x)
    shape = f"of shape (B, {len(table.names)}), the schema's features"
    require(x.ndim == 2 and x.shape[1] == len(table.names), where, "x", shape, x)
    outside = ((x < 0) | (x > 1)).nonzero()
    if len(outside):
        row, feature = (int(v) for v in outside[0])
        value = f"x[{row}] with {table.names[feature]!r} = {float(x[row, feature]):g}"
        require(False, where, "x", "in 0..1, as the schema encodes rows", value)
    both = (x == 0) | (x == 1)
    spans = [(c.name, c.features) for c in table.labels]
    for name, span in [*spans, *((table.names[f], (f,)) for f in table.flags)]:
        encoded = both[:, span].all(1) & ((len(span) == 1) | (x[:, span].sum(1) == 1))
        if not bool(encoded.all()):
            row = int((~encoded).nonzero()[0])
            expected = "0 or 1" if len(span) == 1 else "one-hot"
            value = f"x[{row}] with {[round(v, 4) for v in x[row, span].tolist()]}"
            require(False, where, "x", f"{expected} in {name!r}", value)
    for number in table.numbers:
        least = 4 * torch.finfo(x.dtype).eps * (number.high - number.low)
        expected = f"of a type in which steps of {number.step:g} in {number.name!r} differ"
        expected += f" (use x.double(), or a grid of at least {math.ceil(least)})"
        require(number.step == 0 or number.step >= least, where, "x", expected, x)


def _pair(item: Any) -> bool:
    return isinstance(item, Sequence) and len(item) == 2
