"""A data set ready to train on: three parts, feature names, and where it is from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from r2et.data.column import MEASURED, Column
from r2et.data.schema import Schema
from r2et.data.sources import File, Supplied
from r2et.errors import printable, require


class Split(NamedTuple):
    """One part of a data set. x: (rows, ...) float32; y: (rows,) int64 class indices."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Origin:
    """Where data come from, whom to credit, under which licence, and what was changed.

    stands_for: the papers' data that these stand in for, without being them.
    """

    where: str
    credit: str = ""
    licence: str = ""
    changes: str = ""
    stands_for: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """A named data set, split; `k` is how many features its explanations show.

    names: one per feature of the flattened x, or empty where it has none (pixels). groups:
    feature indices of each one-hot column, which explainers take. columns: names of what an
    explainer with these groups gives scores of. schema: how raw values became x, for tables only.
    classes: labels in the order of y. row_numbers: of a file or DataFrame, which of its rows are
    in each part, from 0. weights: (rows,) of the training rows, where a column has them.
    """

    name: str
    train: Split
    val: Split
    test: Split
    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    k: int
    source: Origin
    classes: tuple[str, ...] = ()
    schema: Schema | None = None
    notes: tuple[str, ...] = ()
    row_numbers: tuple[Tensor, Tensor, Tensor] | None = None
    weights: Tensor | None = None

    @classmethod
    def from_schema(
        cls,
        name: str,
        schema: Schema,
        x: Tensor,
        y: Tensor,
        sizes: Sequence[int],
        *,
        k: int,
        source: Origin,
        notes: tuple[str, ...] = (),
    ) -> Data:
        """Rows x (rows, n), y (rows,) of a table, cut into parts of these three sizes."""
        pairs = zip(torch.split(x, list(sizes)), torch.split(y, list(sizes)), strict=True)
        train, val, test = (Split(*pair) for pair in pairs)
        names, groups, classes = schema.names, schema.groups, schema.classes
        return cls(name, train, val, test, names, groups, k, source, classes, schema, notes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, one for each score of an explainer with these `groups`.

        Of a number with a flag for its missing values, the flag is a column of its own.
        """
        if self.schema is not None:
            return tuple(name for column in self.schema.columns for name in column_names(column))
        titles = {group[0]: common_name([self.names[i] for i in group]) for group in self.groups}
        later = {i for group in self.groups for i in group[1:]}
        kept = [(i, name) for i, name in enumerate(self.names) if i not in later]
        return tuple(titles.get(i, name) for i, name in kept)

    @property
    def parts(self) -> tuple[Split, Split, Split]:
        """Training, validation and test part."""
        return self.train, self.val, self.test

    def __repr__(self) -> str:
        rows = "/".join(str(len(part.y)) for part in self.parts)
        shape = "x".join(str(s) for s in self.train.x.shape[1:])
        return f"Data({printable(self.name)}: {rows} rows, {shape} features, k={self.k})"

    def __str__(self) -> str:
        """Several lines: rows, classes, how each column is read, what was left out, the source."""
        lines = [repr(self), *self._class_lines()]
        if self.schema is not None:
            lines += [f"  {column_line(column)}" for column in self.schema.columns]
            lines += [f"  {name}: left out, {reason}" for name, reason in self.schema.dropped]
        lines += [f"  note: {note}" for note in self.notes]
        source = (self.source.where, self.source.credit, self.source.licence)
        lines.append(f"  from {'; '.join(s for s in source if s)}")
        if self.source.stands_for:
            lines.append(f"  stands in for {self.source.stands_for}, and is not it")
        return "\n".join(map(printable, lines))

    def describe(self) -> None:
        """Print what str(data) says."""
        print(self)

    def _class_lines(self) -> list[str]:
        y = torch.cat([part.y for part in self.parts])
        shares = y.bincount(minlength=len(self.classes)) / max(len(y), 1)
        labels = self.classes or tuple(str(i) for i in range(len(shares)))
        pairs = list(zip(labels, shares.tolist(), strict=True))
        shown = ", ".join(f"{label} ({share:.1%})" for label, share in pairs[:10])
        more = f" and {len(pairs) - 10} more" if len(pairs) > 10 else ""
        target = self.schema.target if self.schema is not None else None
        return [f"  {target or 'classes'}: {shown}{more}"]


@dataclass(frozen=True)
class DatasetEntry:
    """What the registry knows of a data set without loading it.

    summary: one line about it.
    loader: what gives its Data.
    files: those it needs, each with its SHA-256, or supplied by the user.
    source, k: those of the loaded data.
    shape: of x, as text, such as "(B, 28)".
    """

    summary: str
    loader: Callable[[], Data]
    files: tuple[File | Supplied, ...] = ()
    source: Origin = field(default_factory=lambda: Origin(""))
    shape: str = ""
    k: int = 0

    @property
    def line(self) -> str:
        """The summary, and what the data stand in for."""
        other = self.source.stands_for
        return f"{self.summary}; stands in for {other}" if other else self.summary


def check_parts(data: Data) -> None:
    """What holds for every named data set, whoever made its file: rows, classes, and k below n."""
    n = data.train.x[0].numel() if len(data.train.y) else 0
    for part, (x, y) in zip(("train", "val", "test"), data.parts, strict=True):
        require(len(y) > 0, data.name, f"the {part} part", "of one row or more", "none")
        require(len(x) == len(y), data.name, f"the {part} part", "a y for each x", len(y))
        inside = int(y.min()) >= 0 and int(y.max()) < len(data.classes)
        require(inside, data.name, "y", f"in 0..{len(data.classes) - 1}", int(y.max()))
    require(0 < data.k < n, data.name, "k", f"in 1..{n - 1} for {n} features", data.k)


def common_name(names: Sequence[str]) -> str:
    """What names of one column's features have in common: "job: clerk", "job: cook" -> "job".

    So has a number with its missing-flag: "pay", "pay: missing" -> "pay".
    """
    if all(name.startswith(f"{names[0]}: ") for name in names[1:]):
        return names[0]
    for mark in (": ", "=", "_"):
        heads = {name.rpartition(mark)[0] for name in names}
        if len(heads) == 1 and "" not in heads:
            return heads.pop()
    return " / ".join(names[:3]) + (" / ..." if len(names) > 3 else "")


def column_names(column: Column) -> tuple[str, ...]:
    """A column's name once for all of its labels; of a number also that of its flag."""
    return column.features if column.kind in MEASURED else (column.name,)


def column_line(column: Column) -> str:
    """How a column is read, on one line."""
    if column.kind in MEASURED:
        ends = [column.show(v) for v in (column.low, column.high, column.fill) if v is not None]
        low, high, *fill = (v if isinstance(v, str) else f"{v:.10g}" for v in ends)
        text = f"{column.name}: {column.kind}, {low} to {high}"
        flagged = " and flagged" if column.flag else ""
        return f"{text}, {fill[0]} where missing{flagged}" if fill else text
    shown = ", ".join(column.categories[:6])
    more = f" and {len(column.categories) - 6} more" if len(column.categories) > 6 else ""
    text = f"{column.name}: {column.kind}, {shown}{more}"
    text += f"; other labels count as {column.other!r}" if column.other else ""
    return text + (f"; empty cells count as {column.missing!r}" if column.missing else "")
