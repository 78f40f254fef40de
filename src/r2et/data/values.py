"""What a table's cells are read as: numbers, or labels stored once with a code per row."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from r2et.data.csv_dialect import MISSING
from r2et.data.numerals import POINT, Marks, rewritten, same_number, spelling
from r2et.errors import require

Numbers: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]

EPOCH = np.datetime64("1970-01-01")
DAY = np.timedelta64(1, "D")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)(?:Z|([+-])(\d\d):?(\d\d))?", re.ASCII
)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d+)?", re.ASCII)


class Labels(NamedTuple):
    """Text cells: row i holds names[codes[i]], and nothing where codes[i] is -1.

    names: distinct; codes: (rows,).
    """

    names: tuple[str, ...]
    codes: Codes


Values: TypeAlias = Labels | NDArray[Any] | Sequence[Any]


def label(cell: Any, marks: Marks = POINT) -> str:
    """A cell as a label: the same text whether it came as 1.5, "1.50" or " 1.5 ", or with a comma.

    A date at midnight is the date; at any other time it has seconds.
    """
    text = spelling(str(cell).strip(), marks)
    match = _TIME.fullmatch(text) if text[4:5] == "-" else None
    if match is None:
        return text
    day, minute, second, fraction = match.groups(default="")
    time = minute + (second or ":00") + fraction.rstrip("0").rstrip(".")
    return day if time == "00:00:00" else f"{day} {time}"


def is_missing(cell: Any) -> bool:
    """None, NaN, NaT and pandas.NA are missing: all but the first differ from themselves."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return bool(isinstance(cell, float | np.floating | np.datetime64) and cell != cell)


def as_labels(where: str, name: str, values: Values, marks: Marks = POINT) -> Labels:
    """Cells of any type as labels; with other marks than a point, texts stay as they are."""
    if isinstance(values, Labels):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufU":
        cells, inverse = np.unique(values, return_inverse=True)
        # Cell by cell, in their own type: a float32 of 0.1 is 0.10000000149 as a float.
        short = as_labels(where, name, list(cells))
        return Labels(short.names, short.codes[inverse])
    seen: dict[str, int] = {}
    codes = np.full(len(values), -1, dtype=np.int32)
    for row, cell in enumerate(values):
        if is_missing(cell):
            continue
        plain = isinstance(cell, Hashable) and not isinstance(cell, tuple)
        require(plain, where, f"column {name!r}", "numbers or texts", f"{cell!r} in row {row}")
        if marks.decimal == ".":
            text = label(cell)
        elif isinstance(cell, str):
            text = cell.strip()
        else:  # a number among texts is written as they are
            text = label(cell).replace(".", marks.decimal)
        codes[row] = seen.setdefault(text, len(seen))
    return Labels(tuple(seen), codes)


def as_numbers(where: str, name: str, values: Values, *, dates: bool = False) -> Numbers:
    """Cells as float64, NaN where missing; dates as days since 1970-01-01, also given as such."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
    if isinstance(values, np.ndarray) and kind and kind in ("f" if dates else "biuf"):
        return values.astype(np.float64)
    if isinstance(values, np.ndarray) and kind == "M" and dates:
        days: Numbers = (values - EPOCH) / DAY
        return days
    labels = as_labels(where, name, values)
    numbers = parse(labels, dates=dates)
    if numbers is None:
        refuse_cell(where, name, labels, dates=dates)
        raise AssertionError  # for the type checker: the line above raises
    return numbers


def refuse_cell(
    where: str,
    name: str,
    labels: Labels,
    marks: Marks = POINT,
    *,
    dates: bool = False,
    expected: str = "",
) -> None:
    """Refuse a column for its first cell that is no number, or no date."""
    usual = "a date such as 2024-02-29 in every row" if dates else "a number in every row"
    used = np.unique(labels.codes[labels.codes >= 0]).tolist()
    bad = [code for code in used if _read(labels.names[code], marks, dates) is None]
    percent = [code for code in used if labels.names[code].endswith("%")]
    plain = [code for code in used if not labels.names[code].endswith("%")]
    code = (bad or min(percent, plain, key=len))[0]
    cell = f"{labels.names[code][:80]!r} in row {int(np.argmax(labels.codes == code))}"
    require(False, where, f"column {name!r}", expected or usual, cell)


def parse(labels: Labels, marks: Marks = POINT, *, dates: bool = False) -> Numbers | None:
    """Labels as numbers, or as days since 1970-01-01; None where one of them is neither.

    Percent signs are dropped if every number has one: 12% among numbers may mean 12 or 0.12.
    """
    table = np.full(len(labels.names) + 1, np.nan)  # the last is for code -1
    percent = not dates and any(text.endswith("%") for text in labels.names)
    for code, text in enumerate(labels.names):
        number = _read(text, marks, dates)
        if number is None or (percent and not text.endswith("%")):
            return None
        table[code] = number
    return table[labels.codes]


def emptied(labels: Labels, marks: Marks, missing: Collection[str]) -> Labels:
    """The same cells as they are written, and what stands for nothing as -1."""
    names: list[str] = []
    moved = []
    for text in map(str.strip, labels.names):
        gone = label(text, marks) in missing
        moved.append(-1 if gone else len(names))
        names += [] if gone else [text]
    return Labels(tuple(names), np.array([*moved, -1], dtype=np.int32)[labels.codes])


def tidy(labels: Labels, marks: Marks = POINT, missing: Collection[str] = MISSING) -> Labels:
    """The same cells with one label per number or text, and what stands for nothing as -1."""
    index: dict[str, int] = {}
    names: list[str] = []
    moved = []
    for name in (label(text, marks) for text in labels.names):
        if name in missing:
            moved.append(-1)
            continue
        code = index.setdefault(same_number(name), len(names))
        if code == len(names):
            names.append(name)
        # Of 1 and 01 the shorter, whichever comes first in the file.
        names[code] = min(name, names[code], key=lambda text: (len(text), text))
        moved.append(code)
    return Labels(tuple(names), np.array([*moved, -1], dtype=np.int32)[labels.codes])


def _read(text: str, marks: Marks, dates: bool) -> float | None:
    if dates:
        return _days(text)
    plain = rewritten(text, marks)
    return None if plain is None else float(plain.removesuffix("%"))


def _days(text: str) -> float | None:
    # Only ISO dates, so that 03/04/2021 stays an error instead of a guess.
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    time, sign, hours, minutes = match.groups()
    try:
        days = float((np.datetime64(time) - EPOCH) / DAY)
    except ValueError:  # 2023-02-30
        return None
    east = (int(hours) * 60 + int(minutes)) / 1440 if sign else 0.0
    return days + east if sign == "-" else days - east


def as_date(days: float) -> str:
    """Days since 1970-01-01 as an ISO date."""
    return str(EPOCH + np.timedelta64(round(days), "D"))
