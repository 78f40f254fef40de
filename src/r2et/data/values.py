"""What a table's cells are read as: numbers, or labels stored once with a code per row."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from r2et.errors import require

Numbers: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int32]

EPOCH = np.datetime64("1970-01-01")
DAY = np.timedelta64(1, "D")
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?Z?")
_MIDNIGHT = re.compile(r"(?<=\d\d\d\d-\d\d-\d\d)[T ]00:00:00(\.0+)?$")
_WHOLE = re.compile(r"-?\d+\.0+")


# What people write where they have nothing to write.
MISSING = (
    "",
    "?",
    "-",
    ".",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "<NA>",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
)


class Labels(NamedTuple):
    """Text cells: row i holds names[codes[i]], and nothing where codes[i] is -1.

    names: distinct; codes: (rows,).
    """

    names: tuple[str, ...]
    codes: Codes


Values: TypeAlias = Labels | NDArray[Any] | Sequence[Any]


def label(cell: Any) -> str:
    """A cell as a label: the same text whether it came as 1, 1.0, "1.0" or " 1 ".

    A date at midnight is the date.
    """
    text = str(cell).strip()
    if _WHOLE.fullmatch(text):
        return text.split(".")[0]
    return _MIDNIGHT.sub("", text) if len(text) >= len("2024-02-29T00:00:00") else text


def is_missing(cell: Any) -> bool:
    """None, NaN, NaT and pandas.NA are missing: all but the first differ from themselves."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return bool(isinstance(cell, float | np.floating | np.datetime64) and cell != cell)


def as_labels(where: str, name: str, values: Values) -> Labels:
    """Cells of any type as labels."""
    if isinstance(values, Labels):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufU":
        cells, inverse = np.unique(values, return_inverse=True)
        short = as_labels(where, name, cells.tolist())
        return Labels(short.names, short.codes[inverse])
    seen: dict[str, int] = {}
    codes = np.full(len(values), -1, dtype=np.int32)
    for row, cell in enumerate(values):
        if is_missing(cell):
            continue
        good = isinstance(cell, Hashable) and not isinstance(cell, tuple)
        require(good, where, f"column {name!r}", "numbers or texts", f"{cell!r} in row {row}")
        codes[row] = seen.setdefault(label(cell), len(seen))
    return Labels(tuple(seen), codes)


def as_numbers(where: str, name: str, values: Values, *, dates: bool = False) -> Numbers:
    """Cells as float64, NaN where missing; dates as days since 1970-01-01, also given as such."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
    if isinstance(values, np.ndarray) and kind in ("f", *("" if dates else "biu")):
        return values.astype(np.float64)
    if isinstance(values, np.ndarray) and kind == "M" and dates:
        days: Numbers = (values - EPOCH) / DAY
        return days
    labels = as_labels(where, name, values)
    numbers = parse(labels, dates=dates)
    if numbers is None:
        code = next(i for i, text in enumerate(labels.names) if _read(text, dates) is None)
        what = "a date such as 2024-02-29 in every row" if dates else "a number in every row"
        cell = f"{labels.names[code][:80]!r} in row {int(np.argmax(labels.codes == code))}"
        require(False, where, f"column {name!r}", what, cell)
        raise AssertionError  # for the type checker: the line above raises
    return numbers


def parse(labels: Labels, *, dates: bool = False) -> Numbers | None:
    """Labels as numbers, or as days since 1970-01-01; None where one of them is neither."""
    table = np.full(len(labels.names) + 1, np.nan)  # the last is for code -1
    for code, text in enumerate(labels.names):
        number = _read(text, dates)
        if number is None:
            return None
        table[code] = number
    return table[labels.codes]


def is_number(text: str) -> bool:
    """Whether a label spells a number."""
    return _read(text, dates=False) is not None


def tidy(labels: Labels) -> Labels:
    """The same cells with one label per spelling, and the markers of missing values as -1."""
    index: dict[str, int] = {}
    moved = [
        -1 if name in MISSING else index.setdefault(name, len(index))
        for name in map(label, labels.names)
    ]
    return Labels(tuple(index), np.array([*moved, -1], dtype=np.int32)[labels.codes])


def _read(text: str, dates: bool) -> float | None:
    try:
        return _days(text) if dates else float(text)
    except ValueError:
        return None


def _days(text: str) -> float:
    # Only ISO dates, so that 03/04/2021 stays an error instead of a guess.
    if not _ISO.fullmatch(text):
        raise ValueError(text)
    return float((np.datetime64(text.removesuffix("Z")) - EPOCH) / DAY)


def as_date(days: float) -> str:
    """Days since 1970-01-01 as an ISO date."""
    return str(EPOCH + np.timedelta64(round(days), "D"))
