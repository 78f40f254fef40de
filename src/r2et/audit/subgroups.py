"""Whether probabilities come true, over all rows and for each group of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from r2et.audit.settings import WHERE, AuditSettings
from r2et.audit.statistics import UNKNOWN, Auc, Columns, Estimate, Mean, share_of
from r2et.errors import require
from r2et.models.output import log_odds
from r2et.results import CalibrationBin, GroupedBy, Subgroup

BINS = 10  # of equal width
FEW_VALUES = 8  # a column of numbers with more of them is cut at its quartiles
MOST_GROUPS = 12  # further values are one group
MISSING = "missing"


def came_true(columns: Columns) -> tuple[Tensor, Tensor] | None:
    """Probabilities (B,) and what came true (B,); None without labels.

    Of two classes, the probability of class 1; of more, that of the class decided on.
    """
    if "label" not in columns or "logits" not in columns:
        return None
    logits, y = columns["logits"].double(), columns["label"].long()
    two = logits.shape[1] <= 2
    of = torch.ones_like(y) if two else logits.argmax(1)
    return log_odds(logits, of).sigmoid(), y == of


def calibration(columns: Columns, settings: AuditSettings) -> list[CalibrationBin] | None:
    """Rows by their predicted probability, in ten ranges, without empty ones."""
    known = came_true(columns)
    if known is None:
        return None
    probability, true = known
    place = (probability * BINS).long().clamp(0, BINS - 1)
    bins: list[CalibrationBin] = []
    for number in sorted(set(place.tolist())):
        inside = place == number
        observed = share_of(true[inside], settings.level)
        value = observed.value or 0.0
        bins.append(
            {
                "low": number / BINS,
                "high": (number + 1) / BINS,
                "rows": observed.rows,
                "predicted": float(probability[inside].mean()),
                "observed": value,
                # Of a single row everything is possible.
                "observed_low": 0.0 if observed.low is None else observed.low,
                "observed_high": 1.0 if observed.high is None else observed.high,
            }
        )
    return bins


def calibration_error(columns: Columns, settings: AuditSettings) -> Estimate:
    """Mean over rows of |observed - predicted| of their range (expected calibration error).

    No interval: resampled rows stray further from their probabilities than the rows do.
    """
    bins = calibration(columns, settings)
    if not bins:
        return UNKNOWN
    rows = sum(each["rows"] for each in bins)
    error = sum(each["rows"] * abs(each["observed"] - each["predicted"]) for each in bins) / rows
    return Estimate(error, None, None, rows)


def grouped_by(
    column: str, values: list[Any], columns: Columns, settings: AuditSettings
) -> GroupedBy:
    """AUC, calibration and stability of each group of rows.

    values: of all rows that were given; `columns["index"]` says which were audited.
    """
    names = group_names(values)
    taken = [names[i] for i in columns["index"].tolist()]
    there = set(taken)
    groups = [
        _group(name, torch.tensor([other == name for other in taken]), columns, settings)
        for name in dict.fromkeys(_ordered(names))
        if name in there
    ]
    return {"column": column, "groups": groups}


def _group(value: str, inside: Tensor, columns: Columns, settings: AuditSettings) -> Subgroup:
    some = {name: column[inside] for name, column in columns.items()}
    area = Auc("logits")(some, settings)
    kept = Mean("precision_strong", (0.0, 1.0))(some, settings)
    known = came_true(some)
    observed = UNKNOWN if known is None else share_of(known[1], settings.level)
    return {
        "value": value,
        "rows": int(inside.sum()),
        "auc": area.value,
        "auc_low": area.low,
        "auc_high": area.high,
        "predicted": None if known is None else float(known[0].mean()),
        "observed": observed.value,
        "observed_low": observed.low,
        "observed_high": observed.high,
        "precision": kept.value,
        "precision_low": kept.low,
        "precision_high": kept.high,
    }


def group_names(values: list[Any]) -> list[str]:
    """The group of each row: its value; of many different numbers, the quarter that it lies in."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    present = [v for v in values if v is not None]
    if present and len(numbers) == len(present) and len(set(numbers)) > FEW_VALUES:
        return _quarters(values, numbers)
    texts = [MISSING if v is None else _text(v) for v in values]
    common = {text for text, _ in Counter(texts).most_common(MOST_GROUPS)}
    rest = len(set(texts)) - len(common)
    return [text if text in common else f"{rest} other values" for text in texts]


def _quarters(values: list[Any], numbers: list[float]) -> list[str]:
    """Ranges between quartiles that rows really have; equal numbers are in one range."""
    edges = np.unique(np.quantile(numbers, (0.25, 0.5, 0.75), method="lower"))
    place = {v: int(np.searchsorted(edges, v)) for v in set(numbers)}
    ends = {
        number: (min(inside), max(inside))
        for number in set(place.values())
        if (inside := [v for v in place if place[v] == number])
    }
    names = {number: _range(*pair) for number, pair in ends.items()}
    return [MISSING if v is None else names[place[v]] for v in values]


def _range(low: float, high: float) -> str:
    return _text(low) if low == high else f"{_text(low)} to {_text(high)}"


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _ordered(names: list[str]) -> Iterable[str]:
    """Ranges and numbers by size, texts by the alphabet, what is missing and the rest last."""

    def key(name: str) -> tuple[int, float, str]:
        first = name.split(" to ")[0]
        last = name == MISSING or name.endswith(" other values")
        try:
            return (2 if last else 0, float(first), name)
        except ValueError:
            return (2 if last else 1, 0.0, name)

    return sorted(set(names), key=key)


def check_ids(ids: Any, rows: int | None) -> list[str] | None:
    """One identifier for each row that was given."""
    if ids is None:
        return None
    listed = _listed("ids", ids, rows)
    return ["" if value is None else str(value) for value in listed]


def check_by(by: Any, rows: int | None) -> dict[str, list[Any]]:
    """By the name of a column, one value for each row that was given."""
    if by is None:
        return {}
    is_valid = isinstance(by, Mapping) or hasattr(by, "items")
    expected = "a dictionary from a column's name to its values"
    require(is_valid, WHERE, "by", expected, type(by).__name__)
    return {str(name): _listed(f"by {name}", values, rows) for name, values in by.items()}


def _listed(name: str, values: Any, rows: int | None) -> list[Any]:
    expected = "left out for a stream of rows"
    require(rows is not None, WHERE, name, expected, type(values).__name__)
    is_valid = isinstance(values, Iterable) and not isinstance(values, str)
    require(is_valid, WHERE, name, f"{rows} values, one per row", type(values).__name__)
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    require(len(listed) == rows, WHERE, name, f"{rows} values, one per row", f"{len(listed)}")
    return [None if isinstance(v, float) and v != v else v for v in listed]
