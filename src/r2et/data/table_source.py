"""From a path, a DataFrame or Arrow data to a table; the kind of a file is found, not asked."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from r2et.data.arrow_table import ArrowTable
from r2et.data.csv_dialect import DOUBTFUL, MISSING, UNSTATED, CsvDialect
from r2et.data.csv_file import YOURSELF, read_csv
from r2et.data.decimal_mark import find_marks
from r2et.data.numerals import POINT, Marks
from r2et.data.raw_table import FrameTable, RawTable
from r2et.errors import InputError, require


def open_table(
    where: str,
    source: Any,
    stated: CsvDialect = UNSTATED,
    known: CsvDialect = UNSTATED,
    wanted: Callable[[str], bool] = bool,
) -> RawTable:
    """A CSV or Parquet path, a pandas DataFrame, or anything that hands over Arrow data.

    stated: how cells are written, by the caller. known: the same, by a schema; it decides where the
    cells do not. wanted: whether a column's numbers matter.
    """
    given = stated.missing if stated.missing is not None else known.missing
    marks = stated.marks or known.marks or POINT
    if isinstance(source, str | os.PathLike):
        return _open_file(where, Path(source), stated.marks, known.marks, given, wanted)
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return FrameTable(where, source, marks, given)
    is_arrow = hasattr(source, "__arrow_c_stream__") and not hasattr(source, "dtype")
    require(is_arrow, where, "source", "a path or a DataFrame", type(source).__name__)
    table = pa.table(source)
    names, rows = table.column_names, table.num_rows
    return ArrowTable(where, names, rows, table.column, marks=marks, given=given)


def _open_file(
    where: str,
    path: Path,
    stated: Marks | None,
    known: Marks | None,
    given: Collection[str] | None,
    wanted: Callable[[str], bool],
) -> RawTable:
    require(path.is_file(), where, "source", "a file that exists", path)
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == b"PAR1"
        if is_parquet:
            return _parquet(where, path, stated or known or POINT, given)
        text = read_csv(where, path.name, path, MISSING if given is None else ["", *given])
    except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
        raise _unreadable(where, path, error) from error
    table, marks = text.table, stated
    if marks is None:
        columns = {name.strip(): table.column(i) for i, name in enumerate(text.names)}
        detected = find_marks(
            where,
            path.name,
            columns,
            wanted={name for name in columns if wanted(name)},
            missing=MISSING | DOUBTFUL if given is None else given,
            european=text.separator == ";",
        )
        marks = known if isinstance(detected, str) else detected
        expected = "a file whose numbers show which mark is the decimal one (or give decimal=)"
        got = f"{detected}, which can be read both ways"
        require(marks is not None, where, path.name, expected, got)
    rows, marks = table.num_rows, marks or POINT
    return ArrowTable(where, text.names, rows, table.column, marks=marks, given=given, text=True)


def _unreadable(where: str, path: Path, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:200].rstrip(".")
    expected = f"readable CSV or Parquet {YOURSELF}"
    return InputError(f"{where}: {path.name} must be {expected}, got an error: {reason}.")


def _parquet(where: str, path: Path, marks: Marks, given: Collection[str] | None) -> RawTable:
    # Kept open: the footer of a wide file takes long to read, too long to do so for each column.
    file = pq.ParquetFile(path)
    names, rows = file.schema_arrow.names, file.metadata.num_rows

    def fetch(place: int) -> Any:
        try:
            return file.read(columns=[names[place]]).column(0)
        except (pa.ArrowException, OSError, UnicodeError, IndexError) as error:
            raise _unreadable(where, path, error) from error

    return ArrowTable(where, names, rows, fetch, marks=marks, given=given)
