"""Scores of columns: the attributions of a column's features, summed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from r2et.errors import require

Groups: TypeAlias = tuple[tuple[int, ...], ...]

EXPECTED = "sequences of feature numbers, each in one group at most, as data.groups has them"


def as_groups(where: str, groups: Any) -> Groups | None:
    """Groups in any form as tuples; None where there is none."""
    if groups is None:
        return None
    is_valid = isinstance(groups, Iterable) and not isinstance(groups, str)
    parts = list(groups) if is_valid else []
    is_valid &= all(isinstance(part, Iterable) and not isinstance(part, str) for part in parts)
    require(is_valid, where, "groups", EXPECTED, groups)
    values = [[v.item() if hasattr(v, "item") else v for v in part] for part in parts]
    flat = [v for part in values for v in part]
    is_valid = all(values) and all(type(v) is int and v >= 0 for v in flat)
    require(is_valid and len(set(flat)) == len(flat), where, "groups", EXPECTED, groups)
    return tuple(tuple(sorted(part)) for part in values) or None


@lru_cache(maxsize=64)
def column_of(groups: Groups | None, n: int) -> Tensor:
    """(n,) the column that each of n features belongs to.

    Columns come in the order of their first features; a feature in no group is one of its own.
    """
    owner = {feature: group[0] for group in groups or () for feature in group}
    firsts = [owner.get(feature, feature) for feature in range(n)]
    places = {first: place for place, first in enumerate(sorted(set(firsts)))}
    return torch.tensor([places[first] for first in firsts], dtype=torch.long)


def membership(groups: Groups | None, n: int) -> Tensor:
    """(n, columns) float64: 1 where the feature is of the column."""
    column = column_of(groups, n)
    return torch.nn.functional.one_hot(column, int(column.max()) + 1).double()


def grouped(where: str, raw: Tensor, groups: Groups | None) -> Tensor:
    """Attributions (B, ...) summed within each column: (B, columns)."""
    flat = raw.flatten(1)
    if groups is None:
        return flat
    n = flat.shape[1]
    last = max(feature for group in groups for feature in group)
    require(last < n, where, "groups", f"of features below {n}, as many as x has", last)
    return flat @ membership(groups, n).to(flat)
