"""The columns of a file or DataFrame, read one at a time as numbers, dates or labels."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2et.data.column import MEASURED
from r2et.data.schema import Schema
from r2et.data.values import DAY, EPOCH, Labels, Numbers, Values, as_labels, parse, tidy
from r2et.errors import InputError, require

TEXT = ("string", "large_string", "string_view")
CODE = re.compile(r"\s*0[0-9]+\s*")


class Table(ABC):
    """Named columns of equal length, read when looked at; only the last one read is kept.

    comma: numbers in text have a decimal comma.
    """

    def __init__(self, where: str, names: Sequence[str], rows: int, *, comma: bool = False) -> None:
        self.where, self.rows, self.comma = where, rows, comma
        self.names = tuple(n.strip() or f"column {i + 1}" for i, n in enumerate(names))
        self._last: tuple[str, Labels | NDArray[Any]] = ("", np.zeros(0))
        twice = sorted(n for n, count in Counter(self.names).items() if count > 1)
        what = "one whose columns have different names (rename or remove one)"
        require(not twice, where, "the table", what, twice)
        require(rows > 0, where, "the table", "one with rows", "none")

    @abstractmethod
    def read(self, place: int, rows: int) -> Labels | NDArray[Any]:
        """The first rows of the column at this place, as numbers, dates or labels."""

    def cells(self, name: str) -> Labels | NDArray[Any]:
        """The column as numbers, dates or labels; missing labels have code -1."""
        if self._last[0] != name:
            self._last = (name, self._read(name, self.rows))
        return self._last[1]

    def head(self, name: str) -> Labels | NDArray[Any]:
        """The first thousand rows, which tell most columns of text without reading the rest."""
        return self._read(name, 1000)

    def labels(self, name: str) -> Labels:
        """The column as labels, whatever it holds."""
        return as_labels(self.where, name, self.cells(name))

    def numbers(self, name: str) -> Numbers | None:
        """The column as float64 with NaN for missing, or None where a cell is no number."""
        if self._numbers(self.head(name)) is None:
            return None
        return self._numbers(self.cells(name))

    def dates(self, name: str) -> Numbers | None:
        """The column in days since 1970-01-01, or None where a cell is no ISO date."""
        return None if _dates(self.head(name)) is None else _dates(self.cells(name))

    def counts(self, name: str) -> NDArray[np.int64]:
        """How many rows hold each label, in any order; missing values are no label."""
        codes = self.labels(name).codes
        return np.bincount(codes[codes >= 0])

    def coded(self, name: str) -> bool:
        """Whether there are codes such as 01234, whose digits are no quantity."""
        cells = self.cells(name)
        return isinstance(cells, Labels) and any(CODE.fullmatch(text) for text in cells.names)

    def _read(self, name: str, rows: int) -> Labels | NDArray[Any]:
        found = self.read(self.names.index(name), rows)
        return tidy(found) if isinstance(found, Labels) else found

    def _numbers(self, cells: Labels | NDArray[Any]) -> Numbers | None:
        if isinstance(cells, Labels):
            names = (n.replace(",", ".") for n in cells.names) if self.comma else cells.names
            return parse(Labels(tuple(names), cells.codes))
        return cells.astype(np.float64) if cells.dtype.kind in "iuf" else None


def _dates(cells: Labels | NDArray[Any]) -> Numbers | None:
    if isinstance(cells, Labels):
        return parse(cells, dates=True)
    return (cells - EPOCH) / DAY if cells.dtype.kind == "M" else None


class Rows(Mapping[str, Values]):
    """Some rows of a table, in this order, each column read as its schema says."""

    def __init__(self, table: Table, schema: Schema, order: NDArray[np.int64] | None) -> None:
        self.table, self.order = table, order
        self.kinds = {column.name: column.kind for column in schema.columns}

    def __getitem__(self, name: str) -> Values:
        if name not in self.table.names:
            raise KeyError(name)
        kind = self.kinds[name]
        read = self.table.dates if kind == "date" else self.table.numbers
        cells = read(name) if kind in MEASURED else None
        if cells is not None:
            return cells if self.order is None else cells[self.order]
        labels = self.table.labels(name)
        return labels if self.order is None else Labels(labels.names, labels.codes[self.order])

    def __contains__(self, name: object) -> bool:
        return name in self.table.names  # the inherited test would read the column

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.names)

    def __len__(self) -> int:
        return len(self.table.names)


class FrameTable(Table):
    """A pandas DataFrame."""

    def __init__(self, where: str, frame: Any) -> None:
        super().__init__(where, [str(c) for c in frame.columns], len(frame))
        self.frame = frame

    def read(self, place: int, rows: int) -> Labels | NDArray[Any]:
        column, name = self.frame.iloc[:rows, place], self.names[place]
        kind, what = column.dtype.kind, "numbers, texts or dates"
        require(kind not in "mc", self.where, f"column {name!r}", what, str(column.dtype))
        if kind == "M":
            utc = column.dt.tz_convert(None) if column.dt.tz is not None else column
            return np.asarray(utc.to_numpy())
        if kind in "iuf" and not column.isna().any():
            return np.asarray(column.to_numpy())
        if kind in "iuf":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        try:
            codes, distinct = column.factorize()
        except TypeError:  # a cell that cannot be compared: refused here, by its row
            return as_labels(self.where, name, column.to_numpy(dtype=object))
        short = as_labels(self.where, name, distinct.tolist())
        return Labels(short.names, np.append(short.codes, np.int32(-1))[codes])


class ArrowTable(Table):
    """Arrow columns, each fetched when it is looked at."""

    def __init__(
        self,
        where: str,
        names: Sequence[str],
        rows: int,
        fetch: Callable[[int], Any],
        *,
        comma: bool = False,
    ) -> None:
        super().__init__(where, names, rows, comma=comma)
        self.fetch = fetch

    def numbers(self, name: str) -> Numbers | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._last[0] != name:
            column = self.fetch(self.names.index(name))
            if str(column.type) in TEXT:
                # Arrow reads a million numbers at once; what it cannot read is looked at in peace.
                plain = pc.utf8_trim_whitespace(column)
                plain = pc.replace_substring(plain, ",", ".") if self.comma else plain
                try:
                    return np.asarray(pc.cast(plain, pa.float64()).to_numpy())
                except pa.ArrowInvalid:
                    pass
        return super().numbers(name)

    def coded(self, name: str) -> bool:
        import pyarrow.compute as pc

        column = self.fetch(self.names.index(name))
        if str(column.type) not in TEXT:
            return False
        return bool(pc.any(pc.match_substring_regex(column, f"^{CODE.pattern}$")).as_py())

    def counts(self, name: str) -> NDArray[np.int64]:
        import pyarrow.compute as pc

        column = self.fetch(self.names.index(name))
        if str(column.type) not in TEXT:
            return super().counts(name)
        found = pc.value_counts(column.drop_null()).field("counts")
        return np.asarray(found.to_numpy(zero_copy_only=False))

    def read(self, place: int, rows: int) -> Labels | NDArray[Any]:
        import pyarrow as pa

        column, kind = self.fetch(place).slice(0, rows), pa.types
        if kind.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        of = column.type
        if kind.is_null(of):
            return np.full(len(column), np.nan)
        if kind.is_timestamp(of) or kind.is_date(of):
            return np.asarray(column.cast(pa.timestamp("us")).to_numpy())
        if kind.is_integer(of) and not column.null_count:
            return np.asarray(column.to_numpy())
        if kind.is_integer(of) or kind.is_floating(of) or kind.is_decimal(of):
            return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
        boolean = kind.is_boolean(of)
        what = "numbers, texts or dates"
        require(
            boolean or str(of) in TEXT, self.where, f"column {self.names[place]!r}", what, str(of)
        )
        # In one piece: the dictionaries of a thousand chunks take long to unify.
        coded = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
        names = coded.dictionary.to_pylist()
        if boolean:
            names = [name.capitalize() for name in names]  # as Python and pandas spell them
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Labels(tuple(names), codes.astype(np.int32))


def arrow(where: str) -> None:
    """Say what to install when pyarrow is not there."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        what = "installed to read tables (pip install 'r2et[table]')"
        raise InputError(f"{where}: pyarrow must be {what}, got no such package.") from None
