"""A user's list of codes and sentences, one per column, as lenders keep them."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from r2et.errors import InputError, require
from r2et.reason.columns import WHERE

FORM = "a CSV file with the columns column, code and sentence"
FIELDS = ("column", "code", "sentence")
PLACES = ("column", "value", "reference")
DEFAULT = "{column}: {value}"


@dataclass(frozen=True)
class ReasonCode:
    """What a person is told where a column is a reason.

    code: of the list, such as "R07"; empty without a list.
    sentence: with {column}, {value} and {reference} where they belong.
    """

    code: str = ""
    sentence: str = DEFAULT

    def __post_init__(self) -> None:
        for name in ("code", "sentence"):
            value = getattr(self, name)
            require(isinstance(value, str), WHERE, f"codes: {name}", "a text", value)
        try:
            fields = [
                name for _, name, _, _ in Formatter().parse(self.sentence) if name is not None
            ]
        except ValueError as error:
            raise InputError(f"{WHERE}: codes: sentence must be a text, got {error}.") from error
        expected = "a text with no places but {column}, {value} and {reference}"
        plain = all(name in PLACES for name in fields)
        plain &= not any(form or how for _, _, form, how in Formatter().parse(self.sentence))
        require(plain, WHERE, "codes: sentence", expected, self.sentence)

    def told(self, **words: str) -> str:
        """The sentence with the person's own values in it."""
        return self.sentence.format(**words)


def reason_codes(codes: Any, columns: Sequence[str]) -> dict[str, ReasonCode]:
    """A code for each of these columns; without a list, the column and its value alone.

    codes: None, a CSV file of column, code and sentence, or a mapping from a column to a code, to
    (code, sentence), or to a ReasonCode. A list that lacks a column is refused: its people would
    get no code.
    """
    if codes is None:
        return {name: ReasonCode() for name in columns}
    pairs = codes.items() if isinstance(codes, Mapping) else _read(codes)
    listed = {str(name): _code(value) for name, value in pairs}
    listed = {name: code for name, code in listed.items() if code.code}
    lacking = [name for name in columns if name not in listed]
    expected = "a list with every column that may be named (or exclude it)"
    got = f"none for {', '.join(lacking[:5])}" + (" and others" if len(lacking) > 5 else "")
    require(not lacking, WHERE, "codes", expected, got)
    return {name: listed[name] for name in columns}


def _code(value: Any) -> ReasonCode:
    if isinstance(value, ReasonCode):
        return value
    if isinstance(value, str):
        return ReasonCode(value)
    pair = isinstance(value, Sequence) and len(value) == 2
    require(pair, WHERE, "codes", "a code, or a pair of code and sentence, per column", value)
    code, sentence = value
    return ReasonCode(code, sentence or DEFAULT)


def _read(path: str | os.PathLike[str]) -> Iterable[tuple[str, tuple[str, str]]]:
    """The rows of a CSV file of codes."""
    is_path = isinstance(path, str | os.PathLike)
    require(is_path, WHERE, "codes", f"{FORM}, or a mapping", type(path).__name__)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{WHERE}: codes must be {FORM}, got {path} ({error}).") from error
    try:
        dialect: Any = csv.Sniffer().sniff(text.partition("\n")[0], delimiters=",;\t")
    except csv.Error:
        dialect = csv.excel
    table = csv.DictReader(io.StringIO(text), dialect=dialect)
    try:
        lines = [] if table.fieldnames is None else list(table)
    except csv.Error as error:
        raise InputError(f"{WHERE}: codes must be {FORM}, got {path} ({error}).") from error
    header = [name.strip() for name in table.fieldnames or ()]
    lacking = [name for name in FIELDS[:2] if name not in header]
    require(not lacking, WHERE, "codes", FORM, f"{path} with {', '.join(header) or 'nothing'}")
    rows: dict[str, tuple[str, str]] = {}
    for line in lines:
        row = {name.strip(): cell for name, cell in line.items() if name is not None}
        whole = None not in line
        expected = "a file whose sentences with commas are in quotes"
        require(whole, WHERE, "codes", expected, f"{row['column']} with more cells than the header")
        name = (row["column"] or "").strip()
        require(name not in rows, WHERE, "codes", "a list with each column once", f"{name} twice")
        rows[name] = ((row["code"] or "").strip(), (row.get("sentence") or "").strip())
    return rows.items()
