"""The columns of Arrow data: a file that was read, or an object that hands them over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from r2et.data.numerals import POINT, Marks, grouped_pattern
from r2et.data.raw_table import CODE, RawTable
from r2et.data.values import Labels, Numbers
from r2et.errors import require


class ArrowTable(RawTable):
    """Arrow columns, each fetched when it is looked at."""

    def __init__(
        self,
        where: str,
        names: Sequence[str],
        rows: int,
        fetch: Callable[[int], Any],
        *,
        marks: Marks = POINT,
        given: Collection[str] | None = None,
        text: bool = False,
    ) -> None:
        super().__init__(where, names, rows, marks=marks, given=given, text=text)
        self._fetch = fetch
        self._fetched: tuple[int, Any] = (-1, None)
        # Numbers are asked for twice in a row: to tell the kind, and to learn the range.
        self._parsed: tuple[tuple[str, frozenset[str]], Numbers] = (("", frozenset()), np.zeros(0))

    def column(self, place: int) -> Any:
        """The column at this place, without dictionaries; the last one is kept."""
        if self._fetched[0] != place:
            self._fetched = (-1, None)  # so that two are never held
            self._fetched = (place, _plain(self._fetch(place)))
        return self._fetched[1]

    def numbers(self, name: str, missing: Collection[str] | None = None) -> Numbers | None:
        asked = (name, frozenset(missing or self.missing))
        if self._parsed[0] == asked:
            return self._parsed[1]
        column = self.column(self.names.index(name))
        if self._last[0] != name and _is_text(column.type):
            # Arrow reads a million numbers at once; what it cannot read is looked at in peace.
            # The first rows first: Arrow words an error for each cell that is no number.
            first = _parse(column.slice(0, 1000), self.marks, asked[1])
            parsed = None if first is None else _parse(column, self.marks, asked[1])
            if parsed is not None:
                self._parsed = (asked, np.asarray(self._known(parsed)))
                return self._parsed[1]
        return super().numbers(name, missing)

    def coded(self, name: str) -> bool:
        column = self.column(self.names.index(name))
        if not _is_text(column.type):
            return False
        return bool(pc.any(pc.match_substring_regex(column, f"^{CODE.pattern}$")).as_py())

    def counts(self, name: str) -> NDArray[np.int64]:
        column = self.column(self.names.index(name))
        if not _is_text(column.type):
            return super().counts(name)
        counts = pc.value_counts(column.drop_null()).field("counts")
        return np.asarray(counts.to_numpy(zero_copy_only=False))

    def read(self, place: int, rows: int) -> Labels | NDArray[Any]:
        column, kind = self.column(place).slice(0, rows), pa.types
        of = column.type
        if kind.is_null(of):
            return np.full(len(column), np.nan)
        if kind.is_timestamp(of) or kind.is_date(of):
            # Not safe: a fraction of a microsecond is lost, and missed by nobody.
            return np.asarray(column.cast(pa.timestamp("us"), safe=False).to_numpy())
        if kind.is_float32(of) or (kind.is_integer(of) and not column.null_count):
            return np.asarray(column.to_numpy())
        if kind.is_integer(of) or kind.is_floating(of) or kind.is_decimal(of):
            return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
        boolean = kind.is_boolean(of)
        name = f"column {self.names[place]!r}"
        require(boolean or _is_text(of), self.where, name, "numbers, texts or dates", str(of))
        # In one piece: the dictionaries of a thousand chunks take long to unify.
        coded = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
        names = coded.dictionary.to_pylist()
        if boolean:
            names = [name.capitalize() for name in names]  # as Python and pandas spell them
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Labels(tuple(names), codes.astype(np.int32))


def _is_text(of: Any) -> bool:
    return str(of) in ("string", "large_string")


def _plain(column: Any) -> Any:
    """Without dictionaries and views, for which Arrow lacks most functions."""
    of = column.type
    if pa.types.is_dictionary(of) and str(of.value_type) == "string_view":
        text = pa.large_string()
        pieces = [piece.dictionary.cast(text).take(piece.indices) for piece in column.chunks]
        return pa.chunked_array(pieces, text)
    if pa.types.is_dictionary(of):
        column = column.cast(of.value_type)
    return column.cast(pa.large_string()) if str(column.type) == "string_view" else column


def _parse(column: Any, marks: Marks, missing: Collection[str]) -> Numbers | None:
    """A column of text as float64, NaN where missing; None if Arrow cannot read it."""
    plain = pc.utf8_trim_whitespace(column)
    gone = pc.is_in(plain, value_set=pa.array(sorted(missing), plain.type))
    plain = pc.if_else(gone, pa.scalar(None, plain.type), plain)
    if marks.thousands:
        marked = pc.match_substring(plain, marks.thousands)
        if pc.any(marked).as_py():
            grouped = pc.match_substring_regex(plain, f"^(?:{grouped_pattern(marks)})$")
            if not pc.all(pc.or_(pc.invert(marked), grouped)).as_py():
                return None
            plain = pc.replace_substring(plain, marks.thousands, "")
    if marks.decimal != ".":
        if pc.any(pc.match_substring(plain, ".")).as_py():
            return None
        plain = pc.replace_substring(plain, marks.decimal, ".")
    try:
        return np.asarray(pc.cast(plain, pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        return None
