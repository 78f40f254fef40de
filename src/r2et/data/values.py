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
_WHOLE = re.compile(r"-?\d+\.0+")


class Labels(NamedTuple):
    """Text cells: row i holds names[codes[i]], and nothing where codes[i] is -1.

    names: distinct; codes: (rows,).
    """

    names: tuple[str, ...]
    codes: Codes


Values: TypeAlias = Labels | NDArray[Any] | Sequence[Any]


def label(cell: Any) -> str:
    """A cell as a label: the same text whether it came as 1, 1.0, "1.0" or " 1 "."""
    text = str(cell).strip()
    return text.split(".")[0] if _WHOLE.fullmatch(text) else text


def is_missing(cell: Any) -> bool:
    """None, NaN, NaT and pandas.NA are missing: all but the first differ from themselves."""
    if cell is None or type(cell).__name__ == "NAType":
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
    # Cells repeat, and looking a cell up is much cheaper than spelling it out again.
    known: dict[Any, int] = {}
    codes = np.full(len(values), -1, dtype=np.int32)
    for row, cell in enumerate(values):
        plain = isinstance(cell, Hashable)
        require(plain, where, f"column {name!r}", "numbers or texts", f"{cell!r} in row {row}")
        key = (type(cell), cell)
        code = known.get(key)
        if code is None:
            if is_missing(cell):
                continue
            code = known[key] = seen.setdefault(label(cell), len(seen))
        codes[row] = code
    return Labels(tuple(seen), codes)


def as_numbers(where: str, name: str, values: Values, *, dates: bool = False) -> Numbers:
    """Cells as float64, NaN where missing; dates as days since 1970-01-01."""
    if isinstance(values, np.ndarray) and values.dtype.kind == ("M" if dates else "f"):
        return (values - EPOCH) / DAY if dates else values.astype(np.float64)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biu" and not dates:
        return values.astype(np.float64)
    labels = as_labels(where, name, values)
    table = [_read(text, dates) for text in labels.names]
    if None in table:
        code = table.index(None)
        what = "a date such as 2024-02-29 in every row" if dates else "a number in every row"
        cell = f"{labels.names[code][:80]!r} in row {int(np.argmax(labels.codes == code))}"
        require(False, where, f"column {name!r}", what, cell)
    return np.array([*table, np.nan], dtype=np.float64)[labels.codes]


def _read(text: str, dates: bool) -> float | None:
    try:
        return _days(text) if dates else float(text)
    except ValueError:
        return None


def _days(text: str) -> float:
    # NumPy reads only ISO dates, so 03/04/2021 stays an error instead of a guess.
    if not re.match(r"\d{4}-\d\d", text):
        raise ValueError(text)
    return float((np.datetime64(text) - EPOCH) / DAY)


def as_date(days: float) -> str:
    """Days since 1970-01-01 as an ISO date."""
    return str(EPOCH + np.timedelta64(round(days), "D"))
