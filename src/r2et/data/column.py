"""One column of a table, and the features it becomes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from r2et.data.numerals import same_number
from r2et.data.values import Codes, Values, as_date, as_labels, as_numbers, label
from r2et.errors import require

Kind: TypeAlias = Literal["number", "integer", "date", "binary", "category"]
MEASURED = ("number", "integer", "date")
# (absent, present): pairs whose second label says no more than the column's name does.
NO_YES = (
    ("0", "1"),
    ("-1", "1"),
    ("no", "yes"),
    ("false", "true"),
    ("n", "y"),
    ("f", "t"),
    ("-", "+"),
)


@dataclass(frozen=True)
class Column:
    """How one column is turned into features in 0..1 and back.

    number, integer, date: (value - low) / (high - low), clipped to 0..1; dates count in days since
    1970-01-01. A missing value becomes `fill`; with `flag`, a second feature is 1 where it was.
    binary: 0 for categories[0], 1 for categories[1]. category: one feature per category, one-hot.
    Both: `other` is the category for labels not listed, `missing` the one for missing values;
    `other_share` is how many of the training rows were in `other`, if that is known. Labels that
    spell the same number are the same. What has no such place is refused, never guessed.
    """

    name: str
    kind: Kind
    low: float = 0.0
    high: float = 1.0
    categories: tuple[str, ...] = ()
    fill: float | None = None
    flag: bool = False
    other: str | None = None
    missing: str | None = None
    other_share: float | None = None

    def __post_init__(self) -> None:
        require(isinstance(self.name, str) and bool(self.name), "Column", "name", "text", self.name)
        where = f"Column {self.name!r}"
        require(
            self.kind in get_args(Kind),
            where,
            "kind",
            f"one of {_listed(get_args(Kind))}",
            self.kind,
        )
        listed = isinstance(self.categories, Sequence) and not isinstance(self.categories, str)
        require(listed, where, "categories", "a list", self.categories)
        object.__setattr__(self, "categories", tuple(self.categories))
        if self.kind in MEASURED:
            ends = (self.low, self.high)
            in_order = all(_finite(v) for v in ends) and 0 < self.high - self.low < math.inf
            require(in_order, where, "low and high", "finite numbers, low below high", ends)
            require(
                self.fill is None or _finite(self.fill), where, "fill", "a finite number", self.fill
            )
            flag = isinstance(self.flag, bool) and (self.fill is not None or not self.flag)
            require(flag, where, "flag", "False, or True together with a fill", self.flag)
            return
        labels = self.categories
        distinct = all(isinstance(v, str) for v in labels) and len(self._places()) == len(labels)
        require(distinct, where, "categories", "distinct texts (01 and 1 are the same)", labels)
        right = len(labels) == 2 if self.kind == "binary" else len(labels) > 1
        count = "two labels, absent and present" if self.kind == "binary" else "at least two labels"
        require(right, where, "categories", count, labels)
        for field, place in (("other", self.other), ("missing", self.missing)):
            require(place is None or place in labels, where, field, "None or a category", place)
        share = self.other_share
        in_range = share is None or (_finite(share) and 0 <= share <= 1)
        require(in_range, where, "other_share", "None or a share from 0 to 1", share)

    @property
    def features(self) -> tuple[str, ...]:
        """Readable names of the features, e.g. "age" or "marital status: married"."""
        if self.kind in MEASURED:
            return (self.name, f"{self.name}: missing") if self.flag else (self.name,)
        if self.kind == "binary":
            plain = is_yes(*self.categories)
            return (self.name if plain else f"{self.name}: {self.categories[1]}",)
        return tuple(f"{self.name}: {label}" for label in self.categories)

    @property
    def steps(self) -> tuple[float, ...]:
        """The smallest change each feature can really have; 0 where any change is possible."""
        whole = self.kind in ("integer", "date")
        first = 1 / (self.high - self.low) if whole else float(self.kind not in MEASURED)
        return (first, *(1.0 for _ in self.features[1:]))

    def write(self, values: Values, out: NDArray[np.float32], where: str = "Column.write") -> None:
        """Encode the values (rows) into out (rows, features), which holds zeros."""
        if self.kind in MEASURED:
            self._write_numbers(values, out, where)
            return
        codes = self._codes(values, where)
        if self.kind == "binary":
            out[:, 0] = codes
        else:
            out[np.arange(len(codes)), codes] = 1.0

    def read(self, cells: NDArray[Any]) -> float | str | None:
        """The raw value that the features (features,) of one row stand for; None if missing.

        Integers are not rounded to whole numbers, so that a perturbation shows. A row between two
        categories reads as the nearer one.
        """
        if self.kind == "category":
            return self.categories[int(np.argmax(cells))]
        if self.kind == "binary":
            return self.categories[int(cells[0] >= 0.5)]
        if self.flag and cells[1] >= 0.5:
            return None
        return self.show(self.low + float(cells[0]) * (self.high - self.low))

    def show(self, value: float) -> float | str:
        """A raw number as a person reads it: an ISO date, or rounded to 1e-7 of the range."""
        if self.kind == "date":
            return as_date(value)
        # Adding 0.0 makes a 0.0 of -0.0.
        return round(value, 7 - math.ceil(math.log10(self.high - self.low))) + 0.0

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as plain data."""
        defaults = {f.name: f.default for f in fields(self)}
        kept = {k: v for k, v in asdict(self).items() if v != defaults[k]}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in kept.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Column:
        """The column that to_json described."""
        has_both = isinstance(data, Mapping) and {"name", "kind"} <= set(data)
        require(has_both, "Column.from_json", "data", "an object with name and kind", data)
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        require(not unknown, "Column.from_json", "data", "made of known fields", unknown)
        return cls(**data)

    def _write_numbers(self, values: Values, out: NDArray[np.float32], where: str) -> None:
        numbers = as_numbers(where, self.name, values, dates=self.kind == "date")
        gone = np.isnan(numbers)
        if self.fill is None:
            self._refuse(where, gone, "without missing values", "a missing value")
        self._refuse(where, np.isinf(numbers), "finite", "infinity")
        filled = np.where(gone, self.fill if self.fill is not None else 0.0, numbers)
        # Clipped: outside 0..1 the network was never trained, and no bound could hold x.
        out[:, 0] = (np.clip(filled, self.low, self.high) - self.low) / (self.high - self.low)
        if self.flag:
            out[:, 1] = gone

    def _codes(self, values: Values, where: str) -> Codes:
        """(rows,) index of each row's category."""
        labels = as_labels(where, self.name, values)
        index = self._places()
        # -1 where there is no such category; a label may be the empty text.
        other = -1 if self.other is None else self.categories.index(self.other)
        missing = other if self.missing is None else self.categories.index(self.missing)
        places = [index.get(same_number(label(name)), other) for name in labels.names]
        gone = labels.codes < 0
        if missing < 0:
            self._refuse(where, gone, "without missing values", "a missing value")
        codes = np.array([*places, missing], dtype=np.int32)[labels.codes]
        unseen = codes < 0
        if unseen.any():
            name = labels.names[labels.codes[int(np.argmax(unseen))]]
            known = f"one of {_listed(self.categories)}"
            self._refuse(where, unseen, known, repr(name[:80]))
        return codes

    def lists(self, name: str) -> bool:
        """Whether a label is one of the categories."""
        return same_number(label(name)) in self._places()

    def _places(self) -> dict[str, int]:
        """Where each category is, by what labels of the same number have in common."""
        return {same_number(label(name)): i for i, name in enumerate(self.categories)}

    def _refuse(self, where: str, bad: NDArray[np.bool_], expected: str, value: str) -> None:
        if bad.any():
            got = f"{value} in row {int(np.argmax(bad))} and {int(bad.sum()) - 1} more"
            require(
                False, where, f"column {self.name!r}", expected, got.removesuffix(" and 0 more")
            )


def is_yes(absent: str, present: str) -> bool:
    """Whether these are a no and its yes."""
    return (absent.lower(), present.lower()) in NO_YES


def _listed(labels: tuple[str, ...]) -> str:
    shown = ", ".join(labels[:8])
    return shown if len(labels) <= 8 else f"{shown} and {len(labels) - 8} more"


def _finite(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # no NaN either
