"""What else a column would have to hold for the decision to be another, all else as it is."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from r2et.audit.raw_values import decimals
from r2et.models.output import batched_logits, classes
from r2et.reason.columns import WHERE, ReasonColumn
from r2et.region.table_layout import MEASURED

VALUES = (
    101  # of a number, over its whole range, and again before the nearest that changes the decision
)
WHOLE = 400  # a whole number of at most so many values is tried at each of them


class Alternative(NamedTuple):
    """A value that changes a decision, in words.

    value: the nearest that was found; None where none was.
    tried: how many other values were looked at.
    """

    value: str | None
    tried: int


def alternatives(
    decided: nn.Module, x: Tensor, decision: Tensor, column: ReasonColumn
) -> list[Alternative]:
    """For each row (B, n): the nearest value of this column alone that changes the decision (B,).

    Numbers are tried as they are told, with their last digit; "missing" is no value to have.
    Nothing is tried where it is not known what the column may hold.
    """
    source = column.source
    if source is None:
        return [Alternative(None, 0)] * len(x)
    measured = source.kind in MEASURED
    values = _numbers(column, source.low, source.high) if measured else _labels(column)
    texts = []
    for row, own in zip(x, decision.tolist(), strict=True):
        nearest = _nearest(decided, row, own, column, values)
        step = (source.high - source.low) / (VALUES - 1)
        while measured and nearest is not None and step >= 10.0 ** -_places(column):
            start, end = (_raw(column, cell) for cell in (row, nearest))
            before = end - step if start < end else end + step
            finer = _numbers(column, *sorted((before, end)))
            closer = _nearest(decided, row, own, column, finer)
            nearest = nearest if closer is None else closer
            step /= VALUES - 1
        places = list(column.features)
        tried = int((values.to(row) != row[places]).any(1).sum())
        texts.append(Alternative(None if nearest is None else column.value(nearest), tried))
    return texts


def _nearest(
    decided: nn.Module, row: Tensor, own: int, column: ReasonColumn, values: Tensor
) -> Tensor | None:
    """The row (n,) with the nearest of the values (V, f) at which another class is decided."""
    places = list(column.features)
    points = row.repeat(len(values), 1)
    points[:, places] = values.to(points)
    other = classes(batched_logits(decided, points, WHERE)) != own
    if not bool(other.any()):
        return None
    far = (points[:, places] - row[places]).abs().sum(1).cpu()
    return points[int(far.masked_fill(~other, torch.inf).argmin())]


def _labels(column: ReasonColumn) -> Tensor:
    """What a column of labels may hold, without the one for missing cells."""
    width = len(column.features)
    values = torch.tensor([[0.0], [1.0]]) if width == 1 else torch.eye(width)
    missing = getattr(column.source, "missing", None)
    gone = None if missing is None else list(column.source.categories).index(missing)  # type: ignore[union-attr]
    return values[[place for place in range(len(values)) if place != gone]]


def _numbers(column: ReasonColumn, least: float, most: float) -> Tensor:
    """Values of a number between two, as features (V, f): all whole ones, or as told in words."""
    source = column.source
    assert source is not None
    low, high = source.low, source.high
    least, most = max(least, low), min(most, high)
    whole = source.kind in ("integer", "date")
    count = round(most - least) + 1 if whole and most - least <= WHOLE else VALUES
    raw = torch.linspace(least, most, max(count, 2), dtype=torch.float64)
    values = sorted(set(raw.round(decimals=_places(column)).clamp(low, high).tolist()))
    cells = torch.tensor([(value - low) / (high - low) for value in values])
    flags = torch.zeros(len(cells), len(column.features) - 1)
    return torch.cat([cells[:, None], flags], 1)


def _places(column: ReasonColumn) -> int:
    """Decimals that the column's numbers are told with."""
    source = column.source
    assert source is not None
    whole = source.kind in ("integer", "date")
    return 0 if whole else decimals(source.high - source.low, 0.0)


def _raw(column: ReasonColumn, row: Tensor) -> float:
    """A number of a row (n,), in the column's own unit."""
    source = column.source
    assert source is not None
    return source.low + float(row[column.features[0]]) * (source.high - source.low)
