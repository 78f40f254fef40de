"""The one reader of CSV: encoding and separator are found, and every cell stays text."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pc

from r2et.errors import require

SAMPLE = 1 << 16
SEPARATORS = ",;\t|"
# Longest first: the mark of UTF-32 begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MAGIC = {b"PK\x03\x04": "a zip archive or spreadsheet", b"%PDF": "a PDF", b"\x89HDF": "HDF5"}
YOURSELF = "(or read it with pandas and pass the DataFrame)"


class CsvText(NamedTuple):
    """The cells of a file as text. table: of Arrow, its columns in the order of `names`."""

    names: list[str]
    separator: str
    table: Any


def read_csv(where: str, name: str, source: Path | bytes, missing: Collection[str]) -> CsvText:
    """The file at a path, packed or not, or its contents; texts in `missing` become nulls.

    name: the file, in sentences about what is wrong with it.
    """
    with _stream(source) as stream:
        head = stream.read(SAMPLE)
        # The names of a wide table may be longer than that; two lines are the least to look at.
        while head.count(b"\n") < 2 and (more := stream.read(len(head))):
            head += more
    kind = next((kind for mark, kind in MAGIC.items() if head.startswith(mark)), None)
    require(kind is None, where, name, f"CSV or Parquet {YOURSELF}", kind)
    require(bool(head.strip()), where, name, "a table", "an empty file")
    encoding = _encoding(head)
    lines = _lines(where, name, head, encoding)
    first = next((i for i, line in enumerate(lines) if line.strip()), -1)
    require(first >= 0, where, name, "a table", "an empty file")
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
    with _stream(source) as stream:
        table = pc.read_csv(
            stream,
            pc.ReadOptions(encoding=encoding, skip_rows=first, column_names=places),
            pc.ParseOptions(delimiter=separator, newlines_in_values=True),
            pc.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()),
                null_values=sorted(missing),
                strings_can_be_null=True,
            ),
        )
    return CsvText(header, separator, table)


def _stream(source: Path | bytes) -> Any:
    if isinstance(source, bytes):
        return pa.input_stream(pa.py_buffer(source))
    return pa.input_stream(str(source), compression="detect")


def _encoding(head: bytes) -> str:
    for mark, name in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return name
    # Text without a mark holds no NUL unless two bytes make a character.
    if head[1:200:2].count(0) > 50:
        return "utf-16-le"
    return "utf-16-be" if head[0:200:2].count(0) > 50 else "utf-8"


def _lines(where: str, name: str, head: bytes, encoding: str) -> list[str]:
    """The whole lines of the sample."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=False)
    except UnicodeError as error:
        byte = f"bytes that are neither ({error.reason if hasattr(error, 'reason') else error})"
        require(False, where, name, f"UTF-8 or UTF-16 text {YOURSELF}", byte)
    # The mark of UTF-8 is no part of the first name.
    lines = re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff"))
    return lines[:-1] if len(head) >= SAMPLE and len(lines) > 1 else lines


def _separator(lines: list[str]) -> str:
    """The separator that cuts the first lines into equally many cells, and into most."""

    def score(separator: str) -> tuple[bool, int]:
        widths = [len(row) for row in csv.reader(lines[:50], delimiter=separator) if row]
        return (len(set(widths)) == 1 and widths[0] > 1, widths[0])

    return max(SEPARATORS, key=score)
