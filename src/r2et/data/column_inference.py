"""What each column of a table is, and its scale and categories, from the training rows."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from r2et.data.column import MEASURED, Column, Kind, is_yes
from r2et.data.numerals import is_number, rewritten
from r2et.data.raw_table import RawTable
from r2et.data.values import Labels, Numbers, emptied, refuse_cell
from r2et.errors import require

Index = NDArray[np.int64]
COVER = 0.1  # categories that cover fewer rows than this share say nothing about most rows
MISSING, OTHER = "missing", "other"
_ID = re.compile(r"(^|[^a-z])id$")
_DATE = re.compile(r"(\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{4}[./]\d{1,2}[./]\d{1,2})\b.*")
_SHORT_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2}\b.*")
EXACT = 2**53  # float64 tells all whole numbers up to here apart
FEW = 0.05  # words in fewer rows than this share, among numbers, are typos and not labels


DATES = "its dates are not written as in 2024-02-29"


class NoFeatureError(Exception):
    """A column that no feature can be made of; the text says why."""


def infer(
    table: RawTable, name: str, kind: Kind | None, train: Index, rest: Index, *, most: int
) -> Column:
    """The column as a schema has it: kind from all rows, everything else from the training rows.

    train, rest: row numbers. most: how many categories a column may have. Raises NoFeatureError.
    """
    if kind is None:
        kind = _kind(table, name, np.concatenate([train, rest]), most)
    if kind in MEASURED:
        cells = table.measured(name, kind, table.missing)
        column = _measured(table.where, name, kind, cells, train, rest)
        if column is not None:
            return column
    column = _labelled(table.labels(name), name, train, rest, most)
    fits = kind != "binary" or column.kind == "binary"
    require(fits, table.where, f"column {name!r}", "two labels", f"{column.categories}")
    return column


def _kind(table: RawTable, name: str, rows: Index, most: int) -> Kind:
    numbers = table.numbers(name)
    if numbers is None:
        dates = table.dates(name)
        if dates is not None and np.isfinite(dates[rows]).any():
            return "date"
        head = table.head(name)
        if isinstance(head, Labels) and head.names and all(map(_DATE.fullmatch, head.names)):
            raise NoFeatureError(DATES)
        _check_typos(table, name)
        _check_text(table, name, most)
        return "category"
    cells = numbers[rows]
    cells = cells[~np.isnan(cells)]
    if not len(cells):
        raise NoFeatureError("it is empty")
    if bool((np.abs(cells) > EXACT).any()) and bool(np.isfinite(cells).all()):
        labels = np.unique(table.labels(name).codes[rows])
        if int((labels >= 0).sum()) > len(np.unique(cells)):
            raise NoFeatureError("it is an identifier, with numbers too long to tell apart")
    if bool(np.isin(cells, (cells.min(), cells.max())).all()):
        return "category"  # of two labels it becomes binary
    if table.coded(name):
        _check_text(table, name, most)
        return "category"
    whole = bool((cells == np.round(cells)).all())
    if whole and bool((np.diff(numbers) == 1).all()):
        raise NoFeatureError("it numbers the rows")
    if whole and _ID.search(name.lower()) and len(np.unique(cells)) == len(rows):
        raise NoFeatureError("it is an identifier, different in every row")
    return "integer" if whole else "number"


def _check_typos(table: RawTable, name: str) -> None:
    """Refuse numbers with a few other cells among them: as labels they would say nothing."""
    head = table.head(name)
    if not isinstance(head, Labels) or not _mostly_numbers(head, table):
        return
    cells = table.cells(name)
    texts = emptied(cells, table.marks, table.missing) if isinstance(cells, Labels) else head
    if _mostly_numbers(texts, table):
        expected = "a number or empty in every row, or one of kinds, or dropped"
        refuse_cell(table.where, name, texts, table.marks, expected=expected)


def _mostly_numbers(texts: Labels, table: RawTable) -> bool:
    numeric = np.array([is_number(text, table.marks) for text in texts.names], dtype=bool)
    if numeric.sum() > 20 and numeric.mean() >= 0.9:
        return True
    # Fewer numbers may be the codes of labels, unless words are rare among them.
    filled = texts.codes[texts.codes >= 0]
    return bool(numeric.sum() >= 5 and numeric[filled].mean() >= 1 - FEW)


def _check_text(table: RawTable, name: str, most: int) -> None:
    counts = table.counts(name)
    distinct, filled = len(counts), int(counts.sum())
    top = np.sort(counts)[::-1][:most].sum()
    if distinct > max(10, filled / 2) or top < COVER * filled:
        head = table.head(name)
        if isinstance(head, Labels) and all(map(_SHORT_DATE.fullmatch, head.names)):
            raise NoFeatureError(DATES)
        raise NoFeatureError(f"it is text or an identifier, {distinct} values in {filled} rows")


def _measured(
    where: str, name: str, kind: Kind, cells: Numbers, train: Index, rest: Index
) -> Column | None:
    """None where the only thing that varies is whether there is a value."""
    endless = np.isinf(cells)
    if endless.any():
        row = f"infinity in row {int(np.argmax(endless))}"
        require(False, where, f"column {name!r}", "finite", row)
    gone = np.isnan(cells)
    known = cells[train][~gone[train]]
    if not len(known):
        raise NoFeatureError("it is empty in the training rows")
    low, high = float(known.min()), float(known.max())
    flag = bool(gone[train].any())
    if low == high:
        if flag:
            return None
        raise NoFeatureError(f"it is {Column(name, kind).show(low)} in every training row")
    fill = float(np.median(known)) if flag or gone[rest].any() else None
    if fill is not None and kind == "date":  # a day, which a row could hold, not noon between two
        fill = float(np.floor(fill))
    return Column(name, kind, low, high, fill=fill, flag=flag)


def _labelled(labels: Labels, name: str, train: Index, rest: Index, most: int) -> Column:
    """The most frequent labels of the training rows; what else occurs goes to "other".

    A feature that is never 1 in training would get a gradient that means nothing. So "other" is
    made only of labels the training rows hold; where they hold none to spare, of the rarest.
    """
    names = [*labels.names, MISSING]
    codes = np.where(labels.codes < 0, len(labels.names), labels.codes)
    if MISSING in labels.names:
        codes = np.where(labels.codes < 0, labels.names.index(MISSING), codes)
    counts = np.bincount(codes[train], minlength=len(names))
    elsewhere = np.bincount(codes[rest], minlength=len(names)) > 0
    # Most frequent first; labels of equal count in the order of their text, not of the rows.
    seen = sorted(np.flatnonzero(counts), key=lambda i: (-counts[i], names[i]))
    strange = bool((elsewhere & (counts == 0)).any())
    kept = [names[i] for i in seen]
    has_other = OTHER in kept
    if len(kept) > most or (strange and not has_other):
        kept = [n for n in kept[: min(most, len(kept)) - 1] if n != OTHER]
        kept.append(OTHER)
        has_other = True
    missing = MISSING if MISSING in kept and bool((labels.codes < 0).any()) else None
    if len(kept) < 2:
        only = names[seen[0]]
        why = "empty" if only == MISSING else f"{only!r} in every training row"
        raise NoFeatureError(f"it is {why}")
    place = [names[i] in kept and names[i] != OTHER for i in seen]
    others = sum(int(counts[i]) for i, listed in zip(seen, place, strict=True) if not listed)
    column = Column(
        name,
        "category",
        categories=tuple(sorted(kept, key=_place)),
        other=OTHER if has_other else None,
        missing=missing,
        other_share=others / len(train) if has_other else None,
    )
    return column if len(kept) > 2 else replace(column, kind="binary", categories=_pair(kept))


def _place(label: str) -> tuple[int, float, str]:
    """Numbers by size, then texts by alphabet, then "other", then "missing"."""
    last = {OTHER: 2, MISSING: 3}.get(label, 1)
    number = rewritten(label)
    if number is None:
        return (last, 0.0, label)
    return (0, float(number.removesuffix("%")), label)


def _pair(labels: list[str]) -> tuple[str, str]:
    """(absent, present): present is the yes to a no, or the later one that is a real label."""
    first, second = labels
    yes = [b for a, b in ((first, second), (second, first)) if is_yes(a, b)]
    real = [n for n in labels if n not in (OTHER, MISSING)]
    present = (yes or sorted(real or labels, key=_place))[-1]
    (absent,) = (n for n in labels if n != present)
    return absent, present


def in_order(labels: list[str]) -> list[str]:
    """Classes of a target: of two the positive one last, more by number or alphabet."""
    return list(_pair(labels)) if len(labels) == 2 else sorted(labels, key=_place)
