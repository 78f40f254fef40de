"""Several audits beside each other: a table, and accuracy against stability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from r2et.config import alike
from r2et.metrics import pareto_front
from r2et.report import settings_words
from r2et.report.labels import label
from r2et.report.summary_table import span, written
from r2et.report.svg import Axes, both, ticks
from r2et.report.words import SAME_FOR_ALL
from r2et.results import BASELINES, FIGURES, AuditResult, Figure, figures_of, is_included
from r2et.wording import ENDLESS, NONE, count, finite, fixed, percent, significant

Audits = Sequence[AuditResult]
# Of the figures known here; what audits bring along follows.
COMPARED = (
    "certified_share",
    "certified_precision",
    "precision_strong",
    "precision_noise",
    "radius_certified_median",
    "radius_attacked_median",
    "auc_clean",
    "auc_attacked",
    "auc_logistic",
    "auc_boosting",
    "auc_linear",
    "comprehensiveness",
    "sufficiency",
    "distinct_top_k",
    "largest_top_k_share",
)
ALIKE: tuple[tuple[str, Callable[[AuditResult], str]], ...] = (
    ("k", lambda a: count(a["summary"]["k"])),
    ("radius", lambda a: significant(a["summary"].get("radius"))),
    ("rows", lambda a: count(a["summary"].get("rows"))),
    ("size of a change", lambda a: str(a["settings"].get("norm") or "none")),
    ("changes allowed", settings_words.region),
    ("explanation", settings_words.explainer),
    ("training rows", lambda a: "included" if is_included(a) else "not included"),
    ("effort of the attack", lambda a: str(a["settings"].get("budget"))),
)
# What the config of an audit calls them.
CONFIG_NAMES = {"changes allowed": "region", "explanation": "explainer"}


def table(audits: Audits) -> list[dict[str, Any]]:
    """One line per figure: its words, and of each audit the figure, interval and whether best."""
    comparable = not differences(audits)
    known = {name: figure for audit in audits for name, figure in figures_of(audit).items()}
    names = [*COMPARED, *(name for name in known if name not in FIGURES)]
    lines = [name for name in names if name not in BASELINES or _measured(audits, name)]
    return [_line(known[name], audits, comparable) for name in lines]


def _measured(audits: Audits, name: str) -> bool:
    """Whether any of the audits has the figure."""
    return any(finite(audit["summary"].get(name)) is not None for audit in audits)


def _line(figure: Figure, audits: Audits, comparable: bool) -> dict[str, Any]:
    texts = [written(a, figure) for a in audits]
    best = _best(figure, audits, texts) if comparable and figure.better else [False] * len(texts)
    known = [b for b, text in zip(best, texts, strict=True) if text != NONE]
    # Nobody is best where all are.
    same = len(known) > 1 and all(known)
    return {
        "figure": figure,
        "same": same and len(set(texts)) > 1,
        "cells": [
            {"text": text, "span": span(a, figure), "best": b and not same and len(known) > 1}
            for a, text, b in zip(audits, texts, best, strict=True)
        ],
    }


def _best(figure: Figure, audits: Audits, texts: list[str]) -> list[bool]:
    """Whose figure is best, and whose interval reaches that: these rows cannot tell them apart."""
    if ENDLESS in texts:
        return [text == ENDLESS for text in texts]
    values = [finite(a["summary"].get(figure.name)) for a in audits]
    known = [v for v in values if v is not None]
    if not known:
        return [False] * len(texts)
    leader = max(known) if figure.better == "higher" else min(known)
    # By what is written: a difference nobody sees makes nobody best.
    best = [text == texts[values.index(leader)] for text in texts]
    for i, audit in enumerate(audits):
        low, high = (finite(audit["summary"].get(f"{figure.name}_{e}")) for e in ("low", "high"))
        if low is not None and high is not None:
            best[i] |= low <= leader <= high
    return best


def cautions(audits: Audits) -> list[str]:
    """What to know before the figures are compared."""
    uniform = []
    for audit in audits:
        share = finite(audit["summary"].get("largest_top_k_share"))
        if share is not None and share >= SAME_FOR_ALL and audit["summary"].get("rows") != 1:
            uniform.append(f"{audit['name']} ({percent(share)} of rows)")
    if not uniform:
        return []
    sentence = f"The same reasons for everybody: {', '.join(uniform)}."
    return [f"{sentence} That is stable, and says little about anybody."]


def differences(audits: Audits) -> list[str]:
    """In what the audits were not made alike, so that their figures cannot simply be compared."""
    sentences = []
    for setting, read in ALIKE:
        values = [read(a) for a in audits]
        same = alike((a.get("config") for a in audits), CONFIG_NAMES.get(setting, setting))
        if not (len(set(values)) == 1 if same is None else same):
            by_name = zip(audits, values, strict=True)
            sentences.append(f"{setting}: " + ", ".join(f"{v} ({a['name']})" for a, v in by_name))
    return sentences


def pareto(audits: Audits, figure: Figure, name: str) -> Markup | None:
    """Accuracy against stability, with the front that no model here is beyond."""
    both_of = [
        (
            str(a["name"]),
            finite(a["summary"].get("auc_clean")),
            finite(a["summary"].get(figure.name)),
        )
        for a in audits
    ]
    known = [(label, x, y) for label, x, y in both_of if x is not None and y is not None]
    if len(known) < 2 or differences(audits):
        return None
    points = [(x, y) for _, x, y in known]
    best = pareto_front(points)
    description = "; ".join(f"{label}: AUC {fixed(x)}, {percent(y)}" for label, x, y in known)
    leaders = ", ".join(known[i][0] for i in best)

    def draw(width: int) -> Markup:
        low, high = min(x for x, _ in points), max(x for x, _ in points)
        margin = 0.12 * (high - low) or 0.01
        title = figure.label.lower()
        axes = Axes(width, 320, (low - margin, high + margin), (-0.04, 1.12), top=26)
        axes.grid("AUC", title, percent, ticks(0, 1, 5))
        steps = _staircase([points[i] for i in best])
        axes.add('<path class="front" d="{}"/>', axes.path(steps))
        places = [axes.at(x, y) for x, y in points]
        for i, (a, b) in enumerate(places):
            style = "best" if i in best else "other"
            axes.add('<circle class="{}" cx="{}" cy="{}" r="6"/>', style, a, b)
        label(axes, places, [name for name, _, _ in known], title)
        return axes.svg(
            f"{name}-{width}",
            f"{figure.label} against AUC",
            f"{description}. On the Pareto front: {leaders}.",
        )

    return both(draw, wide=480)


def _staircase(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """From best to best, left to right: exactly what lies below and to the left is beaten."""
    corners = [points[0]]
    for x, y in points[1:]:
        corners += [(corners[-1][0], y), (x, y)]
    return corners
