"""From rows to one figure each, with its interval; and the curve over the radius."""

from __future__ import annotations

from typing import Any

import numpy as np

from r2et.audit.linear_baseline import LinearBaseline
from r2et.audit.measures import MEASURES
from r2et.audit.settings import AuditSettings
from r2et.audit.statistics import UNKNOWN, Auc, Columns, Estimate
from r2et.results import CurvePoint

POINTS = 40  # of the curve


def summarize(
    columns: Columns,
    settings: AuditSettings,
    linear: LinearBaseline,
    boosting: Estimate = UNKNOWN,
) -> tuple[dict[str, Any], dict[str, int]]:
    """The flat summary of an audit, and how many rows are behind each figure."""
    estimates = {
        figure.name: statistic(columns, settings)
        for measure in MEASURES.values()
        for figure, statistic in measure.figures.items()
    }
    estimates["auc_logistic"] = Auc("logits_logistic")(columns, settings)
    on_rows = Auc("logits_boosting")(columns, settings)
    estimates["auc_boosting"] = boosting if on_rows.value is None else on_rows
    estimates["auc_linear"] = _linear(linear)
    summary: dict[str, Any] = {
        "rows": len(columns["index"]),
        "k": settings.k,
        "radius": None if settings.moves else settings.radius,
    }
    for name, estimate in estimates.items():
        ends = {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        summary.update({name: estimate.value, **ends})
    # An infinite median is None too, but not for want of rows.
    counts = {name: estimate.rows for name, estimate in estimates.items() if estimate.rows}
    return summary, counts


def _linear(linear: LinearBaseline) -> Estimate:
    """The mean over the folds, and the least and greatest of them."""
    folds = linear.auc()
    if not folds:
        return Estimate(None, None, None, 0)
    return Estimate(float(np.mean(folds)), min(folds), max(folds), linear.rows)


def curve(columns: Columns, settings: AuditSettings) -> list[CurvePoint]:
    """Shares of rows proved, unknown and broken, over radii up to the limit."""
    proved, broken = columns.get("radius_certified"), columns.get("radius_attacked")
    if broken is None:
        return []
    there = ~broken.isnan()
    if not bool(there.any()):
        return []
    broken, proved = broken[there], None if proved is None else proved[there].nan_to_num(0.0)
    ends = np.geomspace(settings.limit / 1000, settings.limit, POINTS).tolist()
    points: list[CurvePoint] = []
    for radius in sorted({*ends[:-1], float(settings.limit), settings.radius}):
        held = 0.0 if proved is None else float((proved >= radius).double().mean())
        lost = float((broken <= radius).double().mean())
        unknown = max(0.0, 1 - held - lost)
        points.append({"radius": radius, "proved": held, "unknown": unknown, "broken": lost})
    return points
