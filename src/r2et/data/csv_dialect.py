"""The dialect of a table's cells: marks within numbers, and the texts that mean a missing value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r2et.data.numerals import Marks, spelling
from r2et.errors import require

# What people write where they have nothing to write.
MISSING = frozenset(("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null"))
# These may as well be labels: of a test, of a grade. They count in features of text files only.
DOUBTFUL = frozenset(("-", ".", "None"))


@dataclass(frozen=True)
class CsvDialect:
    """How cells are written, as far as a caller states it or a schema remembers it.

    decimal: the mark before the fraction of a number, "." or ",".
    thousands: the mark between groups of three digits.
    missing: the texts that mean a missing value.
    None means not stated: marks are looked for in the file, and the usual texts are missing.
    """

    decimal: str | None = None
    thousands: str | None = None
    missing: tuple[str, ...] | None = None

    @property
    def marks(self) -> Marks | None:
        """The marks, where at least one is known: of point and comma each implies the other."""
        if self.decimal is None and self.thousands is None:
            return None
        decimal = self.decimal or ("," if self.thousands == "." else ".")
        return Marks(decimal, self.thousands or ("." if decimal == "," else ","))

    def to_json(self) -> dict[str, Any]:
        """What is known, as plain data."""
        missing = None if self.missing is None else list(self.missing)
        fields = {"decimal": self.decimal, "thousands": self.thousands, "missing": missing}
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CsvDialect:
        """The dialect that to_json described."""
        known = isinstance(data, Mapping) and set(data) <= {"decimal", "thousands", "missing"}
        expected = "an object with decimal, thousands or missing"
        require(known, "Schema.from_json", "writing", expected, data)
        return stated_dialect("Schema.from_json", **data)


UNSTATED = CsvDialect()


def stated_dialect(
    where: str,
    decimal: str | None = None,
    thousands: str | None = None,
    missing: Sequence[Any] | None = None,
) -> CsvDialect:
    """The settings of a call, checked."""
    require(decimal in (None, ".", ","), where, "decimal", "'.' or ','", decimal)
    single = isinstance(thousands, str) and len(thousands) == 1 and not thousands.isalnum()
    fits = single and thousands not in ("+", "-", "%", decimal or "")
    expected = "one character that is neither a digit nor the decimal mark"
    require(thousands is None or fits, where, "thousands", expected, thousands)
    if missing is None:
        return CsvDialect(decimal, thousands)
    listed = isinstance(missing, Sequence) and not isinstance(missing, str)
    listed = listed and all(isinstance(cell, str | int | float) for cell in missing)
    require(listed, where, "missing", "a list of texts or numbers", missing)
    texts = dict.fromkeys(spelling(str(cell).strip()) for cell in missing)
    return CsvDialect(decimal, thousands, tuple(texts))
