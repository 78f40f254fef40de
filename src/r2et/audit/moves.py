"""The changes a row could really have: as a command line gives them, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import torch

from r2et.errors import InputError, require
from r2et.region import Feasible, Region
from r2et.region.table_layout import MEASURED, TableSchema

WHERE = "audit"
FORM = "columns with how far they may move, as age=2,hours=2"
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WHOLE = ("integer", "date")  # columns that move by steps of 1
MOST_NAMED = 4  # columns in a sentence


def feasible_moves(
    schema: TableSchema,
    moves: str | None,
    switches: int | None,
    frozen: str | None = None,
    where: str = WHERE,
) -> Feasible:
    """The region of `--moves age=2,hours=2 --switches 1`, in the columns' own units.

    A column of categories is named without a number: then only those named may be switched, by
    default one of them at once. Where none is named, any may. where: what asks for it.
    """
    try:
        return _region(schema, moves, switches, frozen)
    except InputError as error:
        sentence = str(error).removeprefix(WHERE).removeprefix("Feasible")
        raise InputError(f"{where}{sentence}") from None


def _region(
    schema: TableSchema, moves: str | None, switches: int | None, frozen: str | None
) -> Feasible:
    names = [column.name for column in schema.columns]
    measured = {column.name for column in schema.columns if column.kind in MEASURED}
    held = [] if frozen is None else _names(frozen, names, "frozen")
    reach: dict[str, float] = {}
    named: list[str] = []
    for part in [] if moves is None else _parts(moves, names):
        name, sign, text = part if isinstance(part, tuple) else (part, "", "")
        _check_known("moves", name, names)
        expected = "without columns that are frozen"
        require(name not in held, WHERE, "moves", expected, name)
        twice = name in reach or name in named
        require(not twice, WHERE, "moves", "of each column once", f"{name} twice")
        if name in measured:
            reach[name] = _number(name, text if sign else None)
            continue
        expected = f"without a number for {name}, a column of categories (give --switches)"
        require(not sign, WHERE, "moves", expected, f"{name}={text}")
        named.append(name)
    if named:
        others = [n for n in names if n not in measured and n not in named]
        held += [name for name in others if name not in held]
        switches = 1 if switches is None else switches
        expected = "1 or more where columns of categories are named in --moves"
        require(switches > 0, WHERE, "switches", expected, switches)
    return Feasible(schema, moves=reach, switches=switches or 0, frozen=held)


def is_too_fine(region: Region, dtype: torch.dtype) -> bool:
    """Whether steps of 1 in a column that may move would be lost in the rounding of x's type."""
    if not isinstance(region, Feasible) or not dtype.is_floating_point:
        return False
    reach = dict(region.reaches)
    spans = (c.high - c.low for c in region.schema.columns if c.name in reach and c.kind in WHOLE)
    return any(4 * torch.finfo(dtype).eps * span > 1 for span in spans)


def words_of(region: Feasible) -> str:
    """How far rows may change, as a sentence goes on: "2 in age, 5 in hours and one category"."""
    kinds = {column.name: column.kind for column in region.schema.columns}
    parts = []
    for name, reach in region.reaches:
        days = f" day{'' if reach == 1 else 's'}" if kinds[name] == "date" else ""
        parts.append(f"{reach:.10g}{days} in {name}")
    if len(parts) > MOST_NAMED + 1:
        parts = [*parts[:MOST_NAMED], f"so on in {len(parts) - MOST_NAMED} more columns"]
    free = [name for name in region.columns if kinds[name] not in MEASURED]
    if region.switches and free:
        parts.append(_switched(region, free, kinds))
    return joined(parts)


def _switched(region: Feasible, free: list[str], kinds: dict[str, str]) -> str:
    most = min(region.switches, len(free))
    number = COUNTS[most] if most < len(COUNTS) else str(most)
    labels = [name for name, kind in kinds.items() if kind not in MEASURED]
    text = f"{number} {'category' if most == 1 else 'categories'}"
    if len(free) == len(labels) or len(free) > MOST_NAMED:
        return text
    return f"{text} ({', '.join(free)})"


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence: a, b and c."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _parts(text: str, names: list[str]) -> list[str | tuple[str, str, str]]:
    """The columns named in a text, with a number behind an equals sign where there is one.

    A comma within a column's own name does not end it.
    """
    parts: list[str | tuple[str, str, str]] = []
    begun = ""
    for piece in text.split(","):
        begun = f"{begun},{piece}" if begun else piece
        if begun.strip() in names:
            parts.append(begun.strip())
            begun = ""
        elif "=" in begun:
            name, sign, number = begun.rpartition("=")
            parts.append((name.strip(), sign, number.strip()))
            begun = ""
        elif not any(name.startswith(f"{begun.strip()},") for name in names):
            parts.append(begun.strip())
            begun = ""
    require(not begun, WHERE, "moves", FORM, text)
    return parts


def _number(name: str, text: str | None) -> float:
    expected = f"a number of the column's own units for {name}, as {name}=2"
    require(text is not None, WHERE, "moves", expected, f"{name} alone")
    try:
        number = float(text or "")
    except ValueError:
        number = -1.0
    require(0 < number < float("inf"), WHERE, "moves", f"{expected}, above 0", f"{name}={text}")
    return number


def _names(text: str, names: list[str], option: str) -> list[str]:
    if text in names:
        return [text]
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        _check_known(option, part, names)
    return parts


def _check_known(option: str, name: str, names: list[str]) -> None:
    """A column's name, or those nearest to it."""
    lowered = {known.lower(): known for known in names}
    near = [known for known in names if name and name.lower() in known.lower()][:3]
    close = [lowered[n] for n in get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    near = near or close
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = f"{name} (did you mean {' or '.join(near)}?)" if near else name or "nothing"
    require(name in names, WHERE, option, f"of columns of the table ({listed})", hint)
