"""How the rows given to a classifier become features of its network, in 0..1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from r2et.data import Column, Schema, apply_schema
from r2et.data.column import MEASURED
from r2et.data.table_columns import infer_schema
from r2et.errors import InputError
from r2et.estimator.one_hot import Groups, column_titles, given_groups, groups_by_name, stem

FARTHEST = 1e6  # scaled features beyond it would make float32 and float64 networks disagree
LARGEST = np.finfo(np.float64).max


def is_frame(rows: Any) -> bool:
    """Whether these are a pandas DataFrame."""
    return type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns")


def is_table(rows: Any) -> bool:
    """A DataFrame whose cells are not all numbers: texts, categories, flags, dates, or gaps."""
    if not is_frame(rows):
        return False
    kinds = [getattr(kind, "kind", "O") for kind in rows.dtypes]
    return any(kind not in "iuf" for kind in kinds) or bool(rows.isna().any(axis=None))


@dataclass(frozen=True, eq=False)
class Encoding(ABC):
    """What was learned of the rows of fit.

    names: of the n features.
    groups: places of features that are one column's categories.
    low, size: (n,) raw value that is 0, and raw units from there to 1.
    schema: the columns in words and units; None where a table cannot say them.
    """

    names: tuple[str, ...]
    groups: Groups
    low: NDArray[np.float64]
    size: NDArray[np.float64]
    schema: Schema | None

    @abstractmethod
    def __call__(self, rows: Any) -> Tensor:
        """Rows as features (B, n) float64; of a single feature a second one beside it, always 0."""

    @property
    def columns(self) -> int:
        """How many columns the features are of."""
        if self.schema is not None:
            return len(self.schema.columns)
        return len(self.names) - sum(len(group) - 1 for group in self.groups)


@dataclass(frozen=True, eq=False)
class NumberEncoding(Encoding):
    """Numbers, each scaled by its range over the rows of fit."""

    def __call__(self, rows: NDArray[np.float64]) -> Tensor:
        moved = (rows / 2 - self.low / 2) / (self.size / 2)
        return _paired(torch.from_numpy(moved.clip(-FARTHEST, FARTHEST)))

    @classmethod
    def of(
        cls, where: str, rows: NDArray[np.float64], names: Sequence[str], groups: Any = None
    ) -> NumberEncoding:
        """Least value and range of each feature; a constant one has range 1.

        groups: given ones; None finds them by name.
        """
        grouped = (
            groups_by_name(names, rows)
            if groups is None
            else given_groups(where, groups, names, rows)
        )
        low, high = rows.min(0), rows.max(0)
        # Halves, since the difference of two huge numbers may be too large to be one.
        half = np.minimum(high / 2 - low / 2, LARGEST / 2)
        size = np.where(half > 0, 2 * half, 1.0)
        flags = [i for group in grouped for i in group]
        low[flags], size[flags] = 0.0, 1.0  # also of a category that every row holds
        schema = _described(rows, names, grouped, low, size)
        return cls(tuple(names), grouped, low, size, schema)


@dataclass(frozen=True, eq=False)
class TableEncoding(Encoding):
    """A DataFrame of any cells, read by its schema."""

    def __call__(self, rows: Any) -> Tensor:
        assert self.schema is not None
        return _paired(apply_schema(self.schema, rows)[0].double())

    @classmethod
    def of(cls, where: str, rows: Any, kinds: Any, held: NDArray[np.int64]) -> TableEncoding:
        """Columns inferred as load_table does.

        held: numbers of the rows set aside, from which no scale and no category is learned.
        """
        schema = infer_schema(where, rows, kinds, held)
        low: list[float] = []
        size: list[float] = []
        for column in schema.columns:
            measured = column.kind in MEASURED
            others = len(column.features) - 1
            low += [column.low if measured else 0.0] + [0.0] * others
            size += [column.high - column.low if measured else 1.0] + [1.0] * others
        return cls(schema.names, schema.groups, np.array(low), np.array(size), schema)


def _paired(features: Tensor) -> Tensor:
    if features.shape[1] > 1:
        return features
    return torch.cat([features, torch.zeros_like(features)], 1)


def _described(
    rows: NDArray[np.float64],
    names: Sequence[str],
    groups: Groups,
    low: NDArray[np.float64],
    size: NDArray[np.float64],
) -> Schema | None:
    """The features as columns of a table; None where one of them has no such column.

    That is a single feature, names that are the same, and ranges beyond what a number can hold.
    """
    if len(names) < 2:
        return None
    later = {i for group in groups for i in group[1:]}
    first = {group[0]: group for group in groups}
    places = [place for place in range(len(names)) if place not in later]
    columns = []
    try:
        for place, title in zip(places, column_titles(names, groups), strict=True):
            if place in first:
                own = [names[i] for i in first[place]]
                labels = tuple(name[len(stem(own)) :] for name in own)
                columns.append(Column(title, "category", categories=labels))
            else:
                kind = "integer" if bool((rows[:, place] % 1 == 0).all()) else "number"
                a = float(low[place])
                columns.append(Column(title, kind, a, a + float(size[place])))  # type: ignore[arg-type]
        return Schema(tuple(columns))
    except InputError:
        return None
