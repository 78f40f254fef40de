"""The columns that reasons are named by: which features each has, and its value in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from r2et.audit.raw_values import decimals, is_whole, labels_of, plain_number
from r2et.data.dataset import common_name
from r2et.data.values import as_date
from r2et.errors import require
from r2et.region.table_layout import MEASURED, TableColumn, TableSchema
from r2et.wording import SPACE

WHERE = "reasons"
MISSING = "missing"
DIGITS = 4  # of a number of which no range is known


@dataclass(frozen=True)
class ReasonColumn:
    """One column of a table, or one feature where there is none.

    name: as a person knows it.
    features: its places in a row.
    labels: of its features, where it has several and they are one-hot.
    source: the schema's column, where there is a schema.
    """

    name: str
    features: tuple[int, ...]
    labels: tuple[str, ...] = ()
    source: TableColumn | None = None

    def value(self, row: Tensor) -> str:
        """What a row (n,) holds in this column, in the column's own unit or word."""
        cells = row.detach().cpu().double()[list(self.features)]
        if self.source is None:
            return self._plain(cells)
        if self.source.kind not in MEASURED:
            return self._label(cells)
        if len(cells) > 1 and float(cells[1]) >= 0.5:
            return MISSING
        return self._number(float(cells[0]))

    def reference(self, baseline: Tensor, row: Tensor) -> str:
        """What a mean row (n,) holds: a number, or how many have the row's label, and which most.

        baseline: the mean row; row: whose reasons these are.
        """
        cells = baseline.detach().cpu().double()[list(self.features)]
        measured = len(cells) == 1 if self.source is None else self.source.kind in MEASURED
        if measured:
            usual = (
                self._plain(cells[:1])
                if self.source is None
                else self._number(float(cells[0]), whole=False)
            )
            return f"{usual} on average"
        labels = self._labels()
        shares = [1 - float(cells[0]), float(cells[0])] if len(cells) == 1 else cells.tolist()
        own = labels.index(self.value(row))
        most = max(range(len(shares)), key=lambda i: shares[i])
        text = f"{_percent(shares[own])} have {labels[own]}"
        return text if own == most else f"{text}, {_percent(shares[most])} {labels[most]}"

    def _labels(self) -> Sequence[str]:
        return self.labels if self.source is None else labels_of(self.source)

    def _label(self, cells: Tensor) -> str:
        place = int(cells[0] >= 0.5) if len(cells) == 1 else int(cells.argmax())
        return self._labels()[place]

    def _plain(self, cells: Tensor) -> str:
        if len(cells) == 1:
            return f"{float(cells[0]):.{DIGITS}g}"
        return self.labels[int(cells.argmax())]

    def _number(self, cell: float, whole: bool = True) -> str:
        column = self.source
        assert column is not None
        size = column.high - column.low
        value = column.low + cell * size
        if column.kind == "date":
            return as_date(value)
        if whole and column.kind == "integer" and is_whole(column, value):
            return str(round(value))
        return plain_number(value, decimals(size, 0.0))


def columns_of_schema(schema: TableSchema) -> tuple[ReasonColumn, ...]:
    """One per column of a table, in its order."""
    columns, start = [], 0
    for column in schema.columns:
        stop = start + len(column.features)
        columns.append(ReasonColumn(column.name, tuple(range(start, stop)), (), column))
        start = stop
    return tuple(columns)


def columns_of_groups(
    groups: Sequence[Sequence[int]], names: Sequence[str], width: int
) -> tuple[ReasonColumn, ...]:
    """One per group of features, and one for each feature in none, in the order of first features.

    A group is called what the names of its features begin with, up to a colon or an equals sign.
    """
    names = list(names) or [f"feature {i}" for i in range(width)]
    require(len(names) == width, WHERE, "names", f"one for each of {width} features", len(names))
    seen: set[int] = set()
    for group in groups:
        is_valid = isinstance(group, Sequence) and not isinstance(group, str)
        require(is_valid, WHERE, "groups", f"lists of places in 0..{width - 1}", group)
        whole = all(type(i) is int and 0 <= i < width for i in group) and len(group) > 0
        expected = f"lists of places in 0..{width - 1}"
        require(whole, WHERE, "groups", expected, list(group))
        both = seen & set(group)
        require(not both, WHERE, "groups", "without a feature in two of them", sorted(both))
        seen |= set(group)
    spans = [tuple(group) for group in groups]
    spans += [(i,) for i in range(width) if i not in seen]
    columns = []
    for span in sorted(spans):
        title = names[span[0]] if len(span) == 1 else common_name([names[i] for i in span])
        labels = () if len(span) == 1 else tuple(_rest(names[i], title) for i in span)
        columns.append(ReasonColumn(title, span, labels))
    return tuple(columns)


def _rest(name: str, title: str) -> str:
    return name[len(title) :].lstrip(":=_ ") if name.startswith(title) and name != title else name


def _percent(share: float) -> str:
    """A share in whole percent, never none or all where it is not."""
    shown = round(100 * share)
    if shown == 0 and share > 0:
        return f"under 1{SPACE}%"
    return f"over 99{SPACE}%" if shown == 100 and share < 1 else f"{shown}{SPACE}%"


def named_columns(names: Any, columns: Sequence[ReasonColumn], option: str) -> list[int]:
    """Places of the columns with these names; an unknown one is refused."""
    is_valid = names is None or isinstance(names, Iterable)
    require(is_valid, WHERE, option, "a column's name, or several", names)
    wanted = [names] if isinstance(names, str) else list(names or ())
    known = {column.name: place for place, column in enumerate(columns)}
    for name in wanted:
        listed = ", ".join(list(known)[:12]) + (", ..." if len(known) > 12 else "")
        require(name in known, WHERE, option, f"of columns of the table ({listed})", name)
    return [known[name] for name in wanted]


def groups_of(columns: Sequence[ReasonColumn]) -> tuple[tuple[int, ...], ...]:
    """The features of each column: as `groups` of an explainer takes them."""
    return tuple(column.features for column in columns)


def ranks(scores: Tensor, allowed: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Places (B, k) of the k largest positive scores (B, C), and which of them there are (B, k).

    allowed: (C,) bool, the columns that may be named. Ties go to the first column.
    """
    masked = scores.masked_fill(~allowed, -torch.inf)
    order = masked.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return order, masked.gather(1, order) > 0


def reason_sets(scores: Tensor, allowed: Tensor, k: int) -> Tensor:
    """(B, C) bool: the columns that are reasons, by their scores (B, C)."""
    scores = scores.detach().cpu()
    order, there = ranks(scores, allowed, k)
    return torch.zeros_like(scores, dtype=torch.bool).scatter(1, order, there)
