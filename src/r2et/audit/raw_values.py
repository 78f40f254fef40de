"""Changes of a table's rows in the words and units of its columns."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from r2et.audit.settings import WHERE
from r2et.errors import require
from r2et.region.table_layout import MEASURED, TableColumn, TableSchema, check_schema
from r2et.results import ColumnChange
from r2et.wording import finite

WHOLE = 1e-3  # closer than this to a whole number, and what a float32 knows, is one
DIGITS = 4  # of a number, over its whole range
SMALLEST = 7  # as many digits of the range as float32 holds
MISSING = "missing"
IMPOSSIBLE = "no possible value"
EPOCH = datetime.date(1970, 1, 1)


def check_table(schema: Any, width: int) -> None:
    """A schema of rows with so many features."""
    check_schema(WHERE, schema)
    features = sum(len(column.features) for column in schema.columns)
    expected = f"that of the rows, which have {width} features"
    require(features == width, WHERE, "schema", expected, f"one of {features} features")


def changed_columns(schema: TableSchema, x: Tensor, x_adv: Tensor) -> list[ColumnChange]:
    """The columns in which x_adv (n,) differs from x (n,), the largest change first.

    A number is given in its own unit. What a column cannot hold is said to be no possible value: a
    share of a category, a part of a whole number or of a day.
    """
    before, after = (row.detach().double().cpu().flatten() for row in (x, x_adv))
    changes: list[tuple[float, ColumnChange]] = []
    start = 0
    for column in schema.columns:
        span = slice(start, start + len(column.features))
        start = span.stop
        old, new = before[span], after[span]
        if not torch.equal(old, new):
            changes.append((float((new - old).abs().max()), _change(column, old, new)))
    return [change for _, change in sorted(changes, key=lambda pair: -pair[0])]


def column_values(schema: TableSchema, x: Tensor) -> list[str]:
    """What a row x (n,) holds in each column, in the column's own word or unit."""
    cells = x.detach().double().cpu().flatten().tolist()
    texts: list[str] = []
    start = 0
    for column in schema.columns:
        own = cells[start : start + len(column.features)]
        start += len(own)
        if column.kind not in MEASURED:
            texts.append(_label(labels_of(column), _shares(own))[0])
        elif len(own) > 1 and own[1] == 1:
            texts.append(MISSING)
        else:
            size = column.high - column.low
            texts.append(_number(column, column.low + own[0] * size, decimals(size, 0.0)))
    return texts


def _change(column: TableColumn, old: Tensor, new: Tensor) -> ColumnChange:
    if column.kind in MEASURED:
        return _moved_number(column, old.tolist(), new.tolist())
    labels = labels_of(column)
    shares_before, shares_after = (_shares(v.tolist()) for v in (old, new))
    after, possible = _label(labels, shares_after)
    return {
        "column": column.name,
        "before": _label(labels, shares_before)[0],
        "after": after,
        "change": "switched" if possible else "",
        "possible": possible,
    }


def labels_of(column: TableColumn) -> list[str]:
    """What the column can hold: two labels of a single feature, else one per feature."""
    own = list(getattr(column, "categories", ()))
    if own:
        return own
    short = [feature.removeprefix(f"{column.name}: ") for feature in column.features]
    return [f"not {short[0]}", short[0]] if len(short) == 1 else short


def _shares(values: Sequence[float]) -> list[float]:
    """How much of each label a row holds."""
    return [1 - values[0], values[0]] if len(values) == 1 else list(values)


def _label(labels: Sequence[str], shares: Sequence[float]) -> tuple[str, bool]:
    """The label that is 1 while all others are 0; else what there is of each."""
    ones = [i for i, share in enumerate(shares) if share == 1]
    if len(ones) == 1 and all(share == 0 for i, share in enumerate(shares) if i != ones[0]):
        return labels[ones[0]], True
    order = sorted(range(len(shares)), key=lambda i: -abs(shares[i]))
    parts = [f"{_short(shares[i])} of {labels[i]}" for i in order[:3] if _short(shares[i]) != "0"]
    more = " and others" if len([s for s in shares if _short(s) != "0"]) > len(parts) else ""
    return f"{IMPOSSIBLE} ({', '.join(parts)}{more})", False


def _short(share: float) -> str:
    text = f"{share:.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _moved_number(column: TableColumn, old: Sequence[float], new: Sequence[float]) -> ColumnChange:
    low, size = column.low, column.high - column.low
    before, after = low + old[0] * size, low + new[0] * size
    places = decimals(size, after - before)
    gone = [len(v) > 1 and v[1] == 1 for v in (old, new)]
    half_gone = len(new) > 1 and new[1] not in (0, 1)
    texts = [
        MISSING if g else _number(column, v, places)
        for g, v in zip(gone, (before, after), strict=True)
    ]
    whole = column.kind == "number" or gone[1] or is_whole(column, after)
    # A filled-in median that was never whole and has not moved is as possible as it was.
    whole = whole or after == before
    possible = whole and not half_gone
    if half_gone:
        texts[1] = f"{IMPOSSIBLE} ({_short(new[1])} of {MISSING}, {texts[1]})"
    elif not whole:
        unit = "day" if column.kind == "date" else "number"
        texts[1] = f"{texts[1]} ({IMPOSSIBLE}: no whole {unit})"
    moved = after - before
    return {
        "column": column.name,
        "before": texts[0],
        "after": texts[1],
        "change": "" if any(gone) or half_gone else _signed(column, moved, places),
        "possible": possible,
    }


def _number(column: TableColumn, value: float, places: int) -> str:
    if column.kind == "date":
        day = EPOCH + datetime.timedelta(days=round(value))
        part = value - round(value)
        return f"{day.isoformat()}{'' if is_whole(column, value) else f' {part:+.2f} days'}"
    if column.kind == "integer" and is_whole(column, value):
        return str(round(value))
    return plain_number(value, places)


def is_whole(column: TableColumn, value: float) -> bool:
    """Whether a value is a whole number, but for what float32 loses of the column's range."""
    return abs(value - round(value)) <= max(WHOLE, 2.0**-21 * (column.high - column.low))


def _signed(column: TableColumn, moved: float, places: int) -> str:
    if column.kind != "number" and is_whole(column, moved):
        moved, places = round(moved), 0
    text = plain_number(moved, places)
    days = " days" if column.kind == "date" else ""
    return f"{'+' if moved > 0 else ''}{text}{days}"


def decimals(size: float, moved: float) -> int:
    """Decimals that show a number of such a range, and a move of it to two digits."""
    of_range = DIGITS - 1 - math.floor(math.log10(size))
    of_move = 1 - math.floor(math.log10(abs(moved))) if moved else 0
    most = SMALLEST - 1 - math.floor(math.log10(size))
    return max(0, min(max(of_range, of_move), most))


def plain_number(value: float, places: int) -> str:
    """So many decimals, without zeros at the end and without a minus before 0."""
    require(finite(value) is not None, WHERE, "a number", "finite", value)
    text = f"{value:.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
