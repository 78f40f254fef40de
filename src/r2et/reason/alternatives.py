"""What else a column would have to hold for the decision to be another, all else as it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from r2et.models.output import batched_logits, classes
from r2et.reason.columns import WHERE, ReasonColumn
from r2et.region.table_layout import MEASURED

VALUES = 101  # of a number, over its whole range
WHOLE = 400  # a whole number of at most so many values is tried at each of them


def alternatives(
    decided: nn.Module, x: Tensor, decision: Tensor, column: ReasonColumn
) -> list[str | None]:
    """For each row (B, n): the nearest value of this column alone that changes the decision (B,).

    None where no value of the column does, or where nothing is known of what it may hold.
    """
    source = column.source
    if source is None:
        return [None] * len(x)
    if source.kind in MEASURED:
        cells = _numbers(column)
        values = cells[:, None] if len(column.features) == 1 else _unflagged(cells)
    elif len(column.features) == 1:
        values = torch.tensor([[0.0], [1.0]])
    else:
        values = torch.eye(len(column.features))
    texts: list[str | None] = []
    places = list(column.features)
    for row, own in zip(x, decision.tolist(), strict=True):
        points = row.repeat(len(values), 1)
        points[:, places] = values.to(points)
        other = classes(batched_logits(decided, points, WHERE)) != own
        if not bool(other.any()):
            texts.append(None)
            continue
        far = (points[:, places] - row[places]).abs().sum(1).cpu()
        nearest = int(far.masked_fill(~other, torch.inf).argmin())
        texts.append(column.value(points[nearest]))
    return texts


def _numbers(column: ReasonColumn) -> Tensor:
    """Values of a number in 0..1: each whole one where they are few, else evenly spread."""
    source = column.source
    assert source is not None
    steps = source.high - source.low
    whole = source.kind in ("integer", "date") and float(steps).is_integer() and steps <= WHOLE
    return torch.linspace(0, 1, int(steps) + 1 if whole else VALUES)


def _unflagged(cells: Tensor) -> Tensor:
    """The same beside a flag that says the value is not missing."""
    return torch.stack([cells, torch.zeros_like(cells)], 1)
