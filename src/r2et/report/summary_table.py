"""The figures of an audit's summary as the page shows them: in groups, and beside the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from r2et.report.shares import endless, search_limit
from r2et.results import (
    BASELINES,
    FIGURES,
    INCLUDED,
    UNITS,
    AuditResult,
    Figure,
    figures_of,
    is_included,
)
from r2et.wording import ENDLESS, count, finite, proved_radius

# Beside stability always: a title, a figure with its words, another figure with its words.
CARDS = (
    ("Accuracy", "auc_clean", "AUC", "auc_logistic", "logistic regression: {}"),
    ("Kept under attack", "precision_strong", "of the reasons", "certified_precision",
     "proved: {}"),
    ("Noise floor", "precision_noise", "kept under random changes of that size", "", ""),
    ("Faithfulness", "comprehensiveness", "comprehensiveness", "sufficiency", "sufficiency: {}"),
    ("Individuality", "distinct_top_k", "different sets of reasons", "largest_top_k_share",
     "the commonest: {} of rows"),
)  # fmt: skip


def groups(audit: AuditResult) -> list[dict[str, Any]]:
    """The summary, group by group: each figure with its text, interval and rows."""
    by_title: dict[str, list[dict[str, Any]]] = {}
    for figure in figures_of(audit).values():
        if figure.name in BASELINES and finite(audit["summary"].get(figure.name)) is None:
            continue
        by_title.setdefault(figure.group, []).append(_line(audit, figure))
    also = f", {INCLUDED}" if is_included(audit) else ""
    return [{"title": f"{title}{also}", "lines": lines} for title, lines in by_title.items()]


def _line(audit: AuditResult, figure: Figure) -> dict[str, Any]:
    is_known = finite(audit["summary"].get(figure.name)) is not None
    in_vain = endless(audit, figure.name)
    behind = finite((audit.get("counts") or {}).get(figure.name)) if is_known or in_vain else None
    return {
        "figure": figure,
        "text": written(audit, figure),
        "measured": is_known or in_vain,
        "span": span(audit, figure),
        "rows": "" if behind is None else count(behind),
    }


def written(audit: AuditResult, figure: Figure, end: str = "") -> str:
    """A figure of the summary, or an end of its interval; a bound is written as one."""
    name = f"{figure.name}{end}"
    if not end and endless(audit, name):
        return ENDLESS
    value = finite(audit["summary"].get(name))
    text = UNITS[figure.unit].page(value)
    if value is None or not figure.proved_radius:
        return text
    return proved_radius(text, value, search_limit(audit))


def span(audit: AuditResult, figure: Figure) -> str:
    """The interval of a figure in words; empty where there is none, or both ends are one bound."""
    values = (audit["summary"].get(f"{figure.name}{end}") for end in ("", "_low", "_high"))
    if any(finite(value) is None for value in values):
        return ""
    least, most = (written(audit, figure, end) for end in ("_low", "_high"))
    if least == most == written(audit, figure) and least.startswith("at least"):
        return ""
    return f"{f'{figure.ends}: ' if figure.ends else ''}{least} to {most}"


def cards(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """The figures that stand beside the verdict; what was not measured says so."""
    rows = []
    for title, name, text, other, also in CARDS:
        more = [text] if finite(summary.get(name)) is not None else []
        if other and finite(summary.get(other)) is not None:
            more.append(also.format(_page_text(other, summary)))
        rows.append({"title": title, "figure": _page_text(name, summary), "text": "; ".join(more)})
    return rows


def _page_text(name: str, summary: Mapping[str, Any]) -> str:
    return UNITS[FIGURES[name].unit].page(summary.get(name))
