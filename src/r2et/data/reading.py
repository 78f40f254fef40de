"""From a path or a DataFrame to a table: file kind, encoding and separator are found, not asked."""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from r2et.data.arrow_table import ArrowTable, arrow
from r2et.data.cells import FrameTable, Table
from r2et.data.decimal_mark import find_marks
from r2et.data.numerals import POINT, Marks
from r2et.data.writing import DOUBTFUL, MISSING, Writing
from r2et.errors import InputError, require

SAMPLE = 1 << 16
SEPARATORS = ",;\t|"
# Longest first: the mark of UTF-32 begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MAGIC = {b"PK\x03\x04": "a zip archive or spreadsheet", b"%PDF": "a PDF", b"\x89HDF": "HDF5"}
YOURSELF = "(or read it with pandas and pass the DataFrame)"


def open_table(
    where: str,
    source: Any,
    said: Writing,
    known: Writing,
    wanted: Callable[[str], bool] = bool,
) -> Table:
    """A CSV or Parquet path, a pandas DataFrame, or anything that hands over Arrow data.

    said: how cells are written, by the caller. known: the same, by a schema; it decides where the
    cells do not. wanted: whether a column's numbers matter.
    """
    given = said.missing if said.missing is not None else known.missing
    marks = said.marks or known.marks or POINT
    if isinstance(source, str | os.PathLike):
        return _open_file(where, Path(source), said.marks, known.marks, given, wanted)
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return FrameTable(where, source, marks, given)
    good = hasattr(source, "__arrow_c_stream__") and not hasattr(source, "dtype")
    require(good, where, "source", "a path or a DataFrame", type(source).__name__)
    arrow(where)
    import pyarrow as pa

    table = pa.table(source)
    names, rows = table.column_names, table.num_rows
    return ArrowTable(where, names, rows, table.column, marks=marks, given=given)


def _open_file(
    where: str,
    path: Path,
    said: Marks | None,
    known: Marks | None,
    given: Collection[str] | None,
    wanted: Callable[[str], bool],
) -> Table:
    require(path.is_file(), where, "source", "a file that exists", path)
    arrow(where)
    import pyarrow as pa

    try:
        with path.open("rb") as file:
            parquet = file.read(4) == b"PAR1"
        if parquet:
            return _parquet(where, path, said or known or POINT, given)
        header, separator, table = _csv(where, path, given)
    except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        what = f"readable CSV or Parquet {YOURSELF}"
        raise InputError(f"{where}: {path.name} must be {what}, got an error: {reason}.") from error
    columns = {name.strip(): table.column(i) for i, name in enumerate(header)}
    if said is None:
        found = find_marks(
            where,
            path.name,
            columns,
            wanted={name for name in columns if wanted(name)},
            missing=MISSING | DOUBTFUL if given is None else given,
            european=separator == ";",
        )
        said = known if isinstance(found, str) else found
        what = "a file whose numbers show which mark is the decimal one (or give decimal=)"
        require(said is not None, where, path.name, what, f"{found}, which can be read both ways")
    rows, marks = table.num_rows, said or POINT
    return ArrowTable(where, header, rows, table.column, marks=marks, given=given, text=True)


def _parquet(where: str, path: Path, marks: Marks, given: Collection[str] | None) -> Table:
    import pyarrow.parquet as pq

    # Kept open: the footer of a wide file takes long to read, too long to do so for each column.
    file = pq.ParquetFile(path)
    names, rows = file.schema_arrow.names, file.metadata.num_rows

    def fetch(place: int) -> Any:
        return file.read(columns=[names[place]]).column(0)

    return ArrowTable(where, names, rows, fetch, marks=marks, given=given)


def _csv(where: str, path: Path, given: Collection[str] | None) -> tuple[list[str], str, Any]:
    """The names, the separator, and an Arrow table of text."""
    import pyarrow as pa
    import pyarrow.csv as pc

    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(SAMPLE)
        # The names of a wide table may be longer than that; two lines are the least to look at.
        while head.count(b"\n") < 2 and (more := stream.read(len(head))):
            head += more
    kind = next((what for mark, what in MAGIC.items() if head.startswith(mark)), None)
    require(kind is None, where, path.name, f"CSV or Parquet {YOURSELF}", kind)
    require(bool(head.strip()), where, path.name, "a table", "an empty file")
    encoding = _encoding(head)
    lines = _lines(where, path, head, encoding)
    first = next(i for i, line in enumerate(lines) if line.strip())
    separator = _separator(lines[first:])
    reader = csv.reader(lines[first:], delimiter=separator)
    header = next(reader)
    # Arrow has no words for a file that ends with its names.
    rest = lines[first + reader.line_num :]
    only = not any(line.strip() for line in rest) and len(head) < SAMPLE
    require(not only, where, "the table", "one with rows", "none")
    first += reader.line_num
    # Everything is read as text, so that a later file is read the same whatever its cells hold.
    places = [str(i) for i in range(len(header))]
    with pa.input_stream(str(path), compression="detect") as stream:
        table = pc.read_csv(
            stream,
            pc.ReadOptions(encoding=encoding, skip_rows=first, column_names=places),
            pc.ParseOptions(delimiter=separator, newlines_in_values=True),
            pc.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()),
                null_values=sorted(MISSING) if given is None else ["", *given],
                strings_can_be_null=True,
            ),
        )
    return header, separator, table


def _encoding(head: bytes) -> str:
    for mark, name in MARKS:
        if head.startswith(mark):
            return name
    # Text without a mark holds no NUL unless two bytes make a character.
    if head[1:200:2].count(0) > 50:
        return "utf-16-le"
    return "utf-16-be" if head[0:200:2].count(0) > 50 else "utf-8"


def _lines(where: str, path: Path, head: bytes, encoding: str) -> list[str]:
    """The whole lines of the sample."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=False)
    except UnicodeError as error:
        byte = f"bytes that are neither ({error.reason if hasattr(error, 'reason') else error})"
        require(False, where, path.name, f"UTF-8 or UTF-16 text {YOURSELF}", byte)
    # The mark of UTF-8 is no part of the first name.
    lines = re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff"))
    return lines[:-1] if len(head) >= SAMPLE and len(lines) > 1 else lines


def _separator(lines: list[str]) -> str:
    """The separator that cuts the first lines into equally many cells, and into most."""

    def score(separator: str) -> tuple[bool, int]:
        widths = [len(row) for row in csv.reader(lines[:50], delimiter=separator) if row]
        return (len(set(widths)) == 1 and widths[0] > 1, widths[0])

    return max(SEPARATORS, key=score)
