"""Chunks put together again: columns over all rows, and what they lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from r2et.audit.bracket import check_unbeaten
from r2et.audit.input_rows import InputRows
from r2et.audit.measures import MEASURES, MeasuredChunk, attacked_radius
from r2et.audit.measures.attacks import RADII
from r2et.audit.statistics import Columns
from r2et.results import Skipped

ROUNDING = 1e-6  # of a share of k features in float32


def concatenated(parts: list[MeasuredChunk]) -> tuple[Columns, dict[int, tuple[Tensor, Tensor]]]:
    """All rows' columns, NaN where a chunk lacks one; and by place, inputs before and after."""
    columns: Columns = {}
    for name in dict.fromkeys(name for part in parts for name in part.columns):
        like = next(part.columns[name] for part in parts if name in part.columns)
        columns[name] = torch.cat([_column(part, name, like) for part in parts])
    pictured, start = {}, 0
    for part in parts:
        for i, place in enumerate(part.pictured["place"].tolist()):
            pictured[start + place] = (part.pictured["x"][i], part.pictured["x_adv"][i])
        start += len(part.columns["index"])
    if any(name in columns for name in RADII):
        columns["radius_attacked"] = attacked_radius(columns)
    return columns, pictured


def _column(part: MeasuredChunk, name: str, like: Tensor) -> Tensor:
    lacking = torch.full(
        (len(part.columns["index"]), *like.shape[1:]), torch.nan, dtype=torch.float64
    )
    return part.columns.get(name, lacking)


def check_bracket(columns: Columns) -> None:
    """No attack may enter what is proved: neither the radius, nor the share of reasons that stay.

    Where one of the two was not measured it is NaN, which is below nothing.
    """
    nothing = torch.full((len(columns["index"]),), torch.nan, dtype=torch.float64)

    def column(name: str) -> Tensor:
        return columns.get(name, nothing).double()

    beaten = column("radius_attacked") < column("radius_certified")
    for name in ("precision_strong", "precision_er"):
        beaten |= column(name) < column("certified_precision") - ROUNDING
    check_unbeaten(beaten, columns["index"])


def left_out(
    parts: list[MeasuredChunk], source: InputRows, summary: Mapping[str, Any]
) -> list[Skipped]:
    """What was not measured, and why, in sentences for people."""
    skipped: list[Skipped] = []
    done = sum(len(part.columns["index"]) for part in parts)
    if source.total is not None and done < source.total:
        why = f"the time was up after {done} of {source.total} rows"
        skipped.append({"what": "rows", "why": why})
    elif source.total is None and not source.ended:
        skipped.append({"what": "rows", "why": f"the time was up after {done} rows of the stream"})
    for measure in MEASURES:
        reasons: Counter[str] = Counter()
        for part in parts:
            if measure in part.skipped:
                reasons[part.skipped[measure]] += len(part.columns["index"])
        for why, rows in reasons.items():
            part_of = "" if rows == done else f" (for {rows} of {done} rows)"
            skipped.append({"what": measure, "why": why + part_of})
    if "label" not in parts[0].columns:
        skipped.append({"what": "accuracy", "why": "no labels were given"})
    elif summary["auc_clean"] is None:
        skipped.append({"what": "accuracy", "why": "the rows' labels are all of one class"})
    elif summary["auc_linear"] is None and summary["auc_logistic"] is None:
        why = "a class has a single row, and cross-validation takes two"
        skipped.append({"what": "linear model", "why": why})
    return skipped


def durations(parts: list[MeasuredChunk]) -> dict[str, float]:
    """Seconds spent on each measure, over all workers."""
    seconds: Counter[str] = Counter()
    for part in parts:
        seconds.update(part.seconds)
    return {name: seconds[name] for name in MEASURES if name in seconds}


def row_columns(columns: Columns, ids: list[str] | None) -> dict[str, list[Any] | None]:
    """The columns of the result as plain data; a number that is not there is None.

    ids: of all rows that were given, where they have some.
    """
    names = [name for measure in MEASURES.values() for name in measure.row_columns]
    plain = {name: _plain(columns[name]) if name in columns else None for name in names}
    if ids is None:
        return plain
    return {"id": [ids[i] for i in columns["index"].tolist()], **plain}


def _plain(values: Tensor) -> list[Any]:
    if not values.is_floating_point():
        return list(values.tolist())
    there = values.isfinite().tolist()
    pairs = zip(values.tolist(), there, strict=True)
    return [value if finite else None for value, finite in pairs]
