"""Several audits beside each other: a table, and accuracy against stability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from r2et.report.findings import front
from r2et.report.measures import COMPARED, MEASURES, Measure, written
from r2et.report.numbers import ENDLESS, NONE, count, finite, fixed, percent, significant
from r2et.report.svg import LETTER, Axes, both, ticks

Audits = Sequence[Mapping[str, Any]]
LABEL = 18  # letters of a model's name on a chart
ALIKE: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("k", lambda a: count(a["summary"]["k"])),
    ("radius", lambda a: significant(a["summary"].get("radius"))),
    ("rows", lambda a: count(a["summary"].get("rows"))),
    ("size of a change", lambda a: str(a["settings"].get("norm"))),
    ("changes allowed", lambda a: str(a["settings"].get("region"))),
    ("explanation", lambda a: str(a["settings"].get("explainer"))),
    ("effort of the attack", lambda a: str(a["settings"].get("budget"))),
)


def table(audits: Audits) -> list[dict[str, Any]]:
    """One line per measure: its words, and of each audit the figure and whether it is best."""
    return [_line(MEASURES[name], audits) for name in COMPARED]


def _line(measure: Measure, audits: Audits) -> dict[str, Any]:
    values = [finite(a["summary"].get(measure.name)) for a in audits]
    texts = [written(a, measure) for a in audits]
    known = [v for v in values if v is not None]
    best = ENDLESS if ENDLESS in texts and known else None
    if best is None and measure.better and len(known) > 1 and min(known) != max(known):
        leader = values.index(max(known) if measure.better == "higher" else min(known))
        best = texts[leader]
    # By what is written: a difference nobody sees makes nobody best.
    if best is not None and all(t in (best, NONE) for t in texts):
        best = None
    return {"measure": measure, "cells": [{"text": t, "best": t == best} for t in texts]}


def differences(audits: Audits) -> list[str]:
    """In what the audits were not made alike, so that their figures cannot simply be compared."""
    found = []
    for label, read in ALIKE:
        values = [read(a) for a in audits]
        if len(set(values)) > 1:
            by_name = zip(audits, values, strict=True)
            found.append(f"{label}: " + ", ".join(f"{v} ({a['name']})" for a, v in by_name))
    return found


def pareto(audits: Audits, measure: Measure, name: str) -> Markup | None:
    """Accuracy against stability, with the front that no model here is beyond."""
    both_of = [
        (
            str(a["name"]),
            finite(a["summary"].get("auc_clean")),
            finite(a["summary"].get(measure.name)),
        )
        for a in audits
    ]
    known = [(label, x, y) for label, x, y in both_of if x is not None and y is not None]
    if len(known) < 2:
        return None
    points = [(x, y) for _, x, y in known]
    best = front(points)
    told = "; ".join(f"{label}: AUC {fixed(x)}, {percent(y)}" for label, x, y in known)
    leaders = ", ".join(known[i][0] for i in best)

    def draw(width: int) -> Markup:
        low, high = min(x for x, _ in points), max(x for x, _ in points)
        margin = 0.12 * (high - low) or 0.01
        axes = Axes(width, 320, (low - margin, high + margin), (-0.04, 1.06), top=30)
        axes.grid("AUC", measure.label.lower(), percent, ticks(0, 1, 5))
        steps = _staircase([points[i] for i in best])
        axes.add('<path class="front" d="{}"/>', axes.path(steps))
        taken: list[tuple[float, float, float, float]] = []
        places = [axes.at(x, y) for x, y in points]
        for (a, b), i in zip(places, range(len(places)), strict=True):
            style = "best" if i in best else "other"
            axes.add('<circle class="{}" cx="{}" cy="{}" r="6"/>', style, a, b)
            taken.append((a - 8, b - 8, a + 8, b + 8))
        for (a, b), (label, _, _) in zip(places, known, strict=True):
            _label(axes, a, b, label, taken)
        return axes.svg(
            f"{name}-{width}",
            f"{measure.label} against AUC",
            f"{told}. On the Pareto front: {leaders}.",
        )

    return both(draw, wide=480)


def _staircase(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """From best to best, left to right: exactly what lies below and to the left is beaten."""
    found = [points[0]]
    for x, y in points[1:]:
        found += [(found[-1][0], y), (x, y)]
    return found


def _label(
    axes: Axes, a: float, b: float, label: str, taken: list[tuple[float, float, float, float]]
) -> None:
    """The model's name at the first free place around its point."""
    short = label if len(label) <= LABEL else label[: LABEL - 1] + "…"
    size = LETTER * len(short) + 2
    spots = [(a + 11, b + dy) for dy in (-7, 17, 30, -21)]
    spots += [(a - 11 - size, b + dy) for dy in (17, -7, 30, -21)]
    spots += [(a - size / 2, b - 13), (a - size / 2, b + 22)]

    def free(spot: tuple[float, float]) -> bool:
        x, y = spot
        inside = x >= axes.left and x + size <= axes.width and 12 <= y <= axes.height - axes.bottom
        clear = all(
            x + size < left or x > right or y < upper or y - 12 > lower
            for left, upper, right, lower in taken
        )
        return inside and clear

    x, y = next((s for s in spots if free(s)), spots[0])
    taken.append((x, y - 12, x + size, y))
    axes.text((round(x, 1), round(y, 1)), short, "strong haloed")
