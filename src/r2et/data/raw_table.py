"""The columns of a file or DataFrame, read one at a time as numbers, dates or labels."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2et.data.column import MEASURED
from r2et.data.csv_dialect import DOUBTFUL, MISSING
from r2et.data.numerals import POINT, Marks, is_number
from r2et.data.schema import Schema
from r2et.data.values import (
    DAY,
    EPOCH,
    Labels,
    Numbers,
    Values,
    as_labels,
    emptied,
    parse,
    refuse_cell,
    tidy,
)
from r2et.errors import require

CODE = re.compile(r"\s*0[0-9]+\s*")


class RawTable(ABC):
    """Named columns of equal length, read when looked at; only the last one read is kept.

    marks: how numbers in text are written. given: the texts that mean a missing value, if somebody
    said so. text: every cell came as text, so that also "-" may stand for nothing.
    """

    def __init__(
        self,
        where: str,
        names: Sequence[str],
        rows: int,
        *,
        marks: Marks = POINT,
        given: Collection[str] | None = None,
        text: bool = False,
    ) -> None:
        self.where, self.rows, self.marks, self.given = where, rows, marks, given
        self.names = tuple(n.strip() or f"column {i + 1}" for i, n in enumerate(names))
        self.sure = MISSING if given is None else frozenset(("", *given))
        self.missing = self.sure | (DOUBTFUL if text and given is None else frozenset())
        numbers = [float(t) for t in self.sure if is_number(t) and not t.endswith("%")]
        self._missing_numbers = [n for n in numbers if not math.isnan(n)]
        self._last: tuple[str, Labels | NDArray[Any]] = ("", np.zeros(0))
        twice = sorted(n for n, count in Counter(self.names).items() if count > 1)
        expected = "one whose columns have different names (rename or remove one)"
        require(not twice, where, "the table", expected, twice)
        require(rows > 0, where, "the table", "one with rows", "none")

    @abstractmethod
    def read(self, place: int, rows: int) -> Labels | NDArray[Any]:
        """The first rows of the column at this place: numbers, dates or texts as written."""

    def cells(self, name: str) -> Labels | NDArray[Any]:
        """The column as numbers, dates or texts as written."""
        if self._last[0] != name:
            self._last = (name, self._known(self.read(self.names.index(name), self.rows)))
        return self._last[1]

    def head(self, name: str) -> Labels | NDArray[Any]:
        """The first thousand rows, which tell most columns of text without reading the rest."""
        cells = self._known(self.read(self.names.index(name), 1000))
        return emptied(cells, self.marks, self.missing) if isinstance(cells, Labels) else cells

    def labels(self, name: str, missing: Collection[str] | None = None) -> Labels:
        """The column as labels, whatever it holds; missing ones have code -1."""
        cells = self.cells(name)
        if isinstance(cells, Labels):
            return tidy(cells, self.marks, self.missing if missing is None else missing)
        return as_labels(self.where, name, cells)

    def numbers(self, name: str, missing: Collection[str] | None = None) -> Numbers | None:
        """The column as float64 with NaN for missing, or None where a cell is no number."""
        if missing is None and self._numbers(self.head(name), self.missing) is None:
            return None
        return self._numbers(self.cells(name), missing or self.missing)

    def dates(self, name: str, missing: Collection[str] | None = None) -> Numbers | None:
        """The column in days since 1970-01-01, or None where a cell is no ISO date."""
        if missing is None and self._dates(self.head(name), self.missing) is None:
            return None
        return self._dates(self.cells(name), missing or self.missing)

    def measured(self, name: str, kind: str, missing: Collection[str]) -> Numbers:
        """The column as numbers or days, or an error that names the first cell that is neither."""
        dates = kind == "date"
        measured = (self.dates if dates else self.numbers)(name, missing)
        if measured is None:
            cells = self.cells(name)
            # Numbers are no dates: as texts they are refused like any other.
            texts = cells if isinstance(cells, Labels) else as_labels(self.where, name, cells)
            texts = emptied(texts, self.marks, missing)
            refuse_cell(self.where, name, texts, self.marks, dates=dates)
            raise AssertionError  # for the type checker: the line above raises
        return measured

    def counts(self, name: str) -> NDArray[np.int64]:
        """How many rows hold each label, in any order; missing values are no label."""
        codes = self.labels(name).codes
        return np.bincount(codes[codes >= 0])

    def coded(self, name: str) -> bool:
        """Whether there are codes such as 01234, whose digits are no quantity."""
        cells = self.cells(name)
        return isinstance(cells, Labels) and any(CODE.fullmatch(text) for text in cells.names)

    def _known(self, cells: Labels | NDArray[Any]) -> Labels | NDArray[Any]:
        """Numbers with NaN in place of those that mean a missing value."""
        if isinstance(cells, Labels) or cells.dtype.kind not in "iuf" or not self._missing_numbers:
            return cells
        gone = np.isin(cells, self._missing_numbers)
        return np.where(gone, np.nan, cells) if gone.any() else cells

    def _numbers(self, cells: Labels | NDArray[Any], missing: Collection[str]) -> Numbers | None:
        if isinstance(cells, Labels):
            return parse(emptied(cells, self.marks, missing), self.marks)
        return cells.astype(np.float64) if cells.dtype.kind in "iuf" else None

    def _dates(self, cells: Labels | NDArray[Any], missing: Collection[str]) -> Numbers | None:
        if isinstance(cells, Labels):
            return parse(emptied(cells, self.marks, missing), dates=True)
        return (cells - EPOCH) / DAY if cells.dtype.kind == "M" else None


class SchemaRows(Mapping[str, Values]):
    """Some rows of a table, in this order, each column read as its schema says.

    later: these are not the rows of the schema. "-" then also stands for nothing in a column of
    numbers or with a place for missing values; and never where it is one of the categories.
    outside: how many numbers of a column, once read, are beyond its range.
    """

    def __init__(
        self,
        table: RawTable,
        schema: Schema,
        order: NDArray[np.int64] | None,
        *,
        later: bool = False,
    ) -> None:
        self.table, self.order, self.later = table, order, later
        self.outside: dict[str, int] = {}
        self.columns = {column.name: column for column in schema.columns}

    def __getitem__(self, name: str) -> Values:
        if name not in self.table.names:
            raise KeyError(name)
        column, missing = self.columns[name], self.table.missing
        measured = column.kind in MEASURED
        if self.later and self.table.given is None and (measured or column.missing):
            missing = missing | DOUBTFUL
        if measured:
            cells = self.table.measured(name, column.kind, missing)
            cells = cells if self.order is None else cells[self.order]
            if self.later:
                self.outside[name] = int(((cells < column.low) | (cells > column.high)).sum())
            return cells
        labels = self.table.labels(name, missing - frozenset(column.categories))
        return labels if self.order is None else Labels(labels.names, labels.codes[self.order])

    def __contains__(self, name: object) -> bool:
        return name in self.table.names  # the inherited test would read the column

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.names)

    def __len__(self) -> int:
        return len(self.table.names)


class FrameTable(RawTable):
    """A pandas DataFrame."""

    def __init__(
        self, where: str, frame: Any, marks: Marks = POINT, given: Collection[str] | None = None
    ) -> None:
        names = [str(c) for c in frame.columns]
        super().__init__(where, names, len(frame), marks=marks, given=given)
        self.frame = frame

    def read(self, place: int, rows: int) -> Labels | NDArray[Any]:
        column, name = self.frame.iloc[:rows, place], self.names[place]
        kind, expected = column.dtype.kind, "numbers, texts or dates"
        require(kind not in "mc", self.where, f"column {name!r}", expected, str(column.dtype))
        if kind == "M":
            utc = column.dt.tz_convert(None) if column.dt.tz is not None else column
            return np.asarray(utc.to_numpy())
        if kind in "iuf" and not column.isna().any():
            return np.asarray(column.to_numpy())
        if kind in "iuf":
            # A float32 stays one: its shortest spelling is the label.
            floats = np.dtype(f"f{column.dtype.itemsize}") if kind == "f" else np.float64
            return np.asarray(column.to_numpy(dtype=floats, na_value=np.nan))
        try:
            codes, distinct = column.factorize()
        except TypeError:  # a cell that cannot be compared: refused here, by its row
            return as_labels(self.where, name, column.to_numpy(dtype=object), self.marks)
        short = as_labels(self.where, name, distinct.tolist(), self.marks)
        return Labels(short.names, np.append(short.codes, np.int32(-1))[codes])
