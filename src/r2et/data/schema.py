"""What every table goes through: named columns in, features in 0..1 out, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from r2et.data.column import MEASURED, Column
from r2et.data.csv_dialect import UNSTATED, CsvDialect
from r2et.data.numerals import same_number
from r2et.data.values import Codes, Values, as_labels, label
from r2et.errors import require

FORMAT = 1
OFF = 0.05  # of a standard deviation: a year or so of age


@dataclass(frozen=True)
class Schema:
    """The columns of a table in the order of their features, and its target.

    classes: labels of the target in the order of the model's outputs. dropped: columns of the
    table that are not used, each with the reason. dialect: how the cells of its file were written,
    where that was stated or is unusual.
    """

    columns: tuple[Column, ...]
    target: str | None = None
    classes: tuple[str, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    dialect: CsvDialect = UNSTATED

    def __post_init__(self) -> None:
        for name in ("columns", "classes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "dropped", tuple((str(a), str(b)) for a, b in self.dropped))
        filled = bool(self.columns) and all(isinstance(c, Column) for c in self.columns)
        require(filled, "Schema", "columns", "at least one Column", self.columns)
        for kind, names in (("columns", [c.name for c in self.columns]), ("features", self.names)):
            twice = sorted(n for n, count in Counter(names).items() if count > 1)
            require(not twice, "Schema", kind, "named differently", twice)
        named = self.target is None or isinstance(self.target, str)
        require(named, "Schema", "target", "a column name or None", self.target)
        texts = all(isinstance(c, str) for c in self.classes)
        distinct = texts and len(set(self.classes)) == len(self.classes) != 1
        require(distinct, "Schema", "classes", "two or more distinct texts", self.classes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Readable names of the n features."""
        return tuple(name for column in self.columns for name in column.features)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Feature indices of each category column: of these exactly one is 1."""
        spans = zip(self.columns, self._spans, strict=True)
        return tuple(tuple(range(a, b)) for c, (a, b) in spans if c.kind == "category")

    @cached_property
    def steps(self) -> tuple[float, ...]:
        """The smallest change each feature can really have; 0 where any change is possible."""
        return tuple(step for column in self.columns for step in column.steps)

    def encode(self, raw: Mapping[str, Values], where: str = "Schema.encode") -> Tensor:
        """Raw columns by name, each of as many rows -> (rows, n) float32 features in 0..1.

        Each column is taken from `raw` once, so a mapping that reads on demand holds one at a time.
        """
        self._check_names(raw, where)
        out = torch.empty(0)
        for column, (a, b) in zip(self.columns, self._spans, strict=True):
            values = raw[column.name]
            rows = _rows(values)
            if a == 0:
                out = torch.zeros(rows, len(self.names))
            require(rows == len(out), where, f"column {column.name!r}", f"{len(out)} rows", rows)
            column.write(values, out.numpy()[:, a:b], where)
        return out

    def encode_target(self, values: Values, where: str = "Schema.encode_target") -> Tensor:
        """Labels of the target -> (rows,) int64 class indices."""
        labels = as_labels(where, self.target or "target", values)
        index = {same_number(label(name)): i for i, name in enumerate(self.classes)}
        places = [index.get(same_number(label(name)), -1) for name in labels.names]
        codes = np.array([*places, -2])[labels.codes]
        if len(codes) and codes.min() < 0:
            row = int(np.argmax(codes < 0))
            cell = "a missing value" if codes[row] == -2 else repr(labels.names[labels.codes[row]])
            known = f"one of {', '.join(self.classes)}"
            require(False, where, f"target {self.target!r}", known, f"{cell} in row {row}")
        return torch.from_numpy(codes.astype(np.int64))

    def decode(self, row: Tensor | Sequence[float]) -> dict[str, float | str | None]:
        """The raw values that one row of features (n,) stands for, by column name."""
        cells = torch.as_tensor(row).detach().cpu().numpy()
        n = len(self.names)
        require(cells.shape == (n,), "Schema.decode", "row", f"of shape ({n},)", cells.shape)
        spans = zip(self.columns, self._spans, strict=True)
        return {column.name: column.read(cells[a:b]) for column, (a, b) in spans}

    def deviations(self, x: Tensor) -> dict[str, float]:
        """Standard deviation of each number, integer and date over rows x (rows, n), in raw units.

        Values flagged as missing do not count.
        """
        n, where = len(self.names), "Schema.deviations"
        fits = x.ndim == 2 and x.shape[1] == n and len(x) > 0
        require(fits, where, "x", f"of shape (rows, {n})", x)
        spreads = {}
        for column, (a, _) in zip(self.columns, self._spans, strict=True):
            if column.kind in MEASURED:
                there = x[:, a].double()
                there = there[x[:, a + 1] < 0.5] if column.flag else there
                spread = float(there.std(correction=0)) if len(there) else 0.0
                spreads[column.name] = spread * (column.high - column.low)
        return spreads

    def usual_moves(self, x: Tensor) -> dict[str, float]:
        """How far rows are usually off, by column: a twentieth of a standard deviation over x.

        Of whole numbers and dates whole units, at least one. In raw units, as Feasible takes them.
        """
        kinds = {column.name: column.kind for column in self.columns}
        moves = {name: OFF * spread for name, spread in self.deviations(x).items()}
        whole = {name: max(1.0, float(round(far))) for name, far in moves.items()}
        usual = {n: far if kinds[n] == "number" else whole[n] for n, far in moves.items()}
        return {name: far for name, far in usual.items() if far > 0}

    def to_json(self) -> dict[str, Any]:
        """The schema as plain data, to be stored with a model."""
        return {
            "format": FORMAT,
            "columns": [column.to_json() for column in self.columns],
            "target": self.target,
            "classes": list(self.classes),
            "dropped": [list(pair) for pair in self.dropped],
            # The key that format 1 has for it.
            **({"writing": self.dialect.to_json()} if self.dialect != UNSTATED else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that to_json described."""
        where = "Schema.from_json"
        has_columns = isinstance(data, Mapping) and isinstance(data.get("columns"), list)
        require(has_columns, where, "data", "an object with columns", data)
        require(data.get("format") == FORMAT, where, "format", str(FORMAT), data.get("format"))
        dropped, classes = data.get("dropped", []), data.get("classes", [])
        listed = isinstance(classes, list) and isinstance(dropped, list)
        listed &= listed and all(isinstance(pair, list) and len(pair) == 2 for pair in dropped)
        require(
            listed, where, "classes and dropped", "a list, and one of pairs", (classes, dropped)
        )
        columns = tuple(Column.from_json(column) for column in data["columns"])
        dialect = CsvDialect.from_json(data.get("writing", {}))
        reasons = tuple((a, b) for a, b in dropped)
        return cls(columns, data.get("target"), tuple(classes), reasons, dialect)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """First and last-plus-one feature of each column."""
        ends = np.cumsum([len(column.features) for column in self.columns]).tolist()
        return list(zip([0, *ends[:-1]], ends, strict=True))

    def _check_names(self, raw: Mapping[str, Values], where: str) -> None:
        lacking = [c.name for c in self.columns if c.name not in raw]
        if lacking:
            have = ", ".join(list(raw)[:20]) or "no column"
            require(False, where, "the table", f"one with column {lacking[0]!r}", have)


def _rows(values: Values) -> int:
    codes: Codes | Values = getattr(values, "codes", values)
    return len(codes)
