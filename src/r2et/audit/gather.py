"""Chunks put together again: columns over all rows, and what they lack."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor

from r2et.audit.bracket import check_unbeaten
from r2et.audit.measures import ATTACKED, MEASURES, Columns, Measured, attacked
from r2et.audit.source import Source

ROUNDING = 1e-6  # of a share of k features in float32
# What a row of the result says.
ROW = (
    *("index", "target", "label", "probability", "top", "precision_noise", "precision_er"),
    *("precision_strong", "distance_strong", "first_flip", "radius_certified"),
    *("certified_precision", "radius_attacked", "thickness", "thickness_probability"),
    *("hessian_norm", "sensitivity", "dffot", "comprehensiveness", "sufficiency"),
)


def joined(parts: list[Measured]) -> tuple[Columns, dict[int, tuple[Tensor, Tensor]]]:
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
    if any(name in columns for name in ATTACKED):
        columns["radius_attacked"] = attacked(columns)
    return columns, pictured


def _column(part: Measured, name: str, like: Tensor) -> Tensor:
    lacking = torch.full(
        (len(part.columns["index"]), *like.shape[1:]), torch.nan, dtype=torch.float64
    )
    return part.columns.get(name, lacking)


def check_bracket(columns: Columns) -> None:
    """No attack may enter what is proved: neither the radius, nor the share of reasons that stay.

    Where one of the two was not measured it is NaN, which is below nothing.
    """
    nothing = torch.full((len(columns["index"]),), torch.nan, dtype=torch.float64)

    def found(name: str) -> Tensor:
        return columns.get(name, nothing).double()

    beaten = found("radius_attacked") < found("radius_certified")
    for name in ("precision_strong", "precision_er"):
        beaten |= found(name) < found("certified_precision") - ROUNDING
    check_unbeaten(beaten, columns["index"])


def left_out(
    parts: list[Measured], source: Source, auc: float | None, auc_linear: float | None
) -> list[dict[str, str]]:
    """What was not measured, and why, in sentences for people."""
    found = []
    done = sum(len(part.columns["index"]) for part in parts)
    if source.total is not None and done < source.total:
        why = f"the time was up after {done} of {source.total} rows"
        found.append({"what": "rows", "why": why})
    elif source.total is None and not source.ended:
        found.append({"what": "rows", "why": f"the time was up after {done} rows of the stream"})
    for measure in MEASURES:
        reasons: Counter[str] = Counter()
        for part in parts:
            if measure in part.skipped:
                reasons[part.skipped[measure]] += len(part.columns["index"])
        for why, rows in reasons.items():
            part_of = "" if rows == done else f" (for {rows} of {done} rows)"
            found.append({"what": measure, "why": why + part_of})
    if "label" not in parts[0].columns:
        found.append({"what": "accuracy", "why": "no labels were given"})
    elif auc is None:
        found.append({"what": "accuracy", "why": "the rows' labels are all of one class"})
    elif auc_linear is None:
        why = "a class has a single row, and cross-validation takes two"
        found.append({"what": "linear model", "why": why})
    return found


def durations(parts: list[Measured]) -> dict[str, float]:
    """Seconds spent on each measure, over all workers."""
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part.seconds)
    return {name: found[name] for name in MEASURES if name in found}


def row_columns(columns: Columns) -> dict[str, list[Any] | None]:
    """The columns of the result as plain data; a number that is not there is None."""
    return {name: _plain(columns[name]) if name in columns else None for name in ROW}


def _plain(values: Tensor) -> list[Any]:
    if not values.is_floating_point():
        return list(values.tolist())
    there = values.isfinite().tolist()
    pairs = zip(values.tolist(), there, strict=True)
    return [value if finite else None for value, finite in pairs]
