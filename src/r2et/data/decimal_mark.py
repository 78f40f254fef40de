"""Whether the numbers of a text file have a decimal point or a decimal comma."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow.compute as pc

from r2et.data.numerals import POINT, Marks
from r2et.errors import require

_END = r"\s*%?\s*$"
_SHAPE = rf"^\s*[+-]?[0-9.,]*[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?{_END}"
# One mark and three digits: a number below a million with thousands, or one with three decimals.
_EITHER = rf"^\s*[+-]?[1-9][0-9]{{0,2}}[.,][0-9]{{3}}{_END}"
MOSTLY = 0.9  # a column of numbers may have a few typos


def find_marks(
    where: str,
    file: str,
    columns: Mapping[str, Any],
    *,
    wanted: Collection[str],
    missing: Collection[str],
    european: bool,
) -> Marks | str:
    """The marks that the cells prove, or a cell that could be read both ways.

    columns: Arrow text by name. wanted: those whose numbers matter; the others only bear witness.
    missing: texts that stand for nothing. european: the file has `;` between its cells, as where
    a comma is the decimal mark.
    """
    marked = {name for name, column in columns.items() if _any(column, ",")}
    if not marked and not european:
        return POINT
    marked |= {name for name, column in columns.items() if _any(column, ".")}
    shape = "|".join((_SHAPE, *(rf"^\s*{re.escape(text)}\s*$" for text in sorted(missing))))
    numeric = [name for name in columns if name in marked and _mostly(columns[name], shape)]
    ours = [name for name in numeric if name in wanted]
    comma, point = (_proof(columns, ours, mark) for mark in ",.")
    expected = "a file whose numbers all have the same decimal mark (or give decimal=)"
    require(not (comma and point), where, file, expected, f"{comma} and {point}")
    if not comma and not point:
        doubtful = _first(columns, ours, _EITHER)
        if not doubtful:
            return POINT
        others = [name for name in numeric if name not in wanted]
        comma, point = (_proof(columns, others, mark) for mark in ",.")
        if bool(comma) == bool(point):
            return doubtful
    return Marks(",", ".") if comma else Marks(".", ",")


def _proof(columns: Mapping[str, Any], names: list[str], mark: str) -> str:
    """The first cell that makes no sense unless `mark` is the decimal mark, and its column."""
    x, y = (r"\.", ",") if mark == "." else (",", r"\.")
    forms = (
        rf"[0-9]+{x}(?:[0-9]{{0,2}}|[0-9]{{4,}})",
        rf"(?:0|[0-9]{{4,}}){x}[0-9]{{3}}",
        rf"{x}[0-9]+",
        rf"[0-9]*{x}[0-9]+[eE][+-]?[0-9]+",
        rf"[0-9]{{1,3}}(?:{y}[0-9]{{3}})+{x}[0-9]*",
        rf"[0-9]{{1,3}}(?:{y}[0-9]{{3}}){{2,}}",
    )
    # Without the mark itself only repeated thousands are proof; most columns have neither.
    names = [
        n for n in names if _any(columns[n], mark) or _first(columns, [n], f"{y}[0-9]{{3}}{y}")
    ]
    return _first(columns, names, rf"^\s*[+-]?(?:{'|'.join(forms)}){_END}")


def _first(columns: Mapping[str, Any], names: list[str], pattern: str) -> str:
    for name in names:
        row = pc.index(pc.match_substring_regex(columns[name], pattern), True).as_py()
        if row >= 0:
            return f"{columns[name][row].as_py().strip()!r} in column {name!r}"
    return ""


def _any(column: Any, text: str) -> bool:
    return bool(pc.any(pc.match_substring(column, text)).as_py())


def _mostly(column: Any, shape: str) -> bool:
    # The first rows tell text from numbers; only what may be numbers is read to the end.
    for cells in (column.slice(0, 1000), column):
        shaped = pc.sum(pc.match_substring_regex(cells, shape)).as_py() or 0
        if shaped < MOSTLY * (len(cells) - cells.null_count):
            return False
    return True
