"""Gates: whether a figure of an audit is good enough to pass, and what there was no time for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from r2et.audit.measures import LATE, MEASURES
from r2et.audit.model_audit import Audit
from r2et.wording import rows_text

# The figures that a bar can be set for.
GATES = (
    "precision_strong",
    "precision_er",
    "precision_noise",
    "certified_share",
    "certified_precision",
    "auc_clean",
    "auc_attacked",
)


def late(audit: Audit, measures: Iterable[str] | None = None) -> bool:
    """Whether there was no time for some rows, or for some of these measures; by default any."""
    of = None if measures is None else {"rows", *measures}
    return any(LATE in s["why"] and (of is None or s["what"] in of) for s in audit.skipped)


def goes_on(audit: Audit, partial: Path) -> bool:
    """Whether there was no time for all, and more of it would go on from what is in the file."""
    return late(audit) and partial.exists() and partial.read_bytes().count(b"\n") > 1


def failed(audit: Audit, gate: str, fail_under: float | None) -> str | None:
    """Why the gate is shut, in a sentence; None where it is open."""
    if fail_under is None:
        return None
    value = audit.summary()[gate]
    if value is None:
        return f"audit: {gate} must be {fail_under:g} or more, got nothing: it was not measured."
    text = f"{value:.4f}"
    behind, asked = audit.result["counts"][gate], audit.result["settings"]["rows_asked"]
    # A figure of the rows that there was time for says nothing about the others.
    is_partial = late(audit, measures_of(gate))
    if is_partial:
        text += f" of {behind} of {rows_text(asked)}: give it more minutes, or fewer rows"
    if value < fail_under:
        return f"audit: {gate} must be {fail_under:g} or more, got {text}."
    if is_partial:
        return f"audit: {gate} must be measured on all rows to pass, got {text}."
    return None


def measures_of(name: str) -> list[str]:
    """The measures that a figure takes."""
    return [m.name for m in MEASURES.values() if any(figure.name == name for figure in m.figures)]
