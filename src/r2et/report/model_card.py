"""The section of a model card about its explanations: Markdown, from an audit's figures alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from r2et.report import notes, row_tables, settings_words, words
from r2et.report.shares import class_count, moves_of, shares_at_radius
from r2et.report.summary_table import groups
from r2et.results import AuditResult
from r2et.wording import measure_words, percent, rows_of

# What Markdown, or HTML within it, would read as something else.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")

PACK_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)  # needs no quotes anywhere


def plain_name(name: str) -> str:
    """The name of a pack as it can stand in a command; another one where it cannot."""
    return name if PACK_NAME.fullmatch(name) else "evidence.zip"


def model_card(audit: AuditResult, pack: str = "evidence.zip") -> str:
    """Figures with their intervals, what they rest on and what they do not say.

    pack: the name of the file that the section is part of.
    """
    summary, settings = audit["summary"], audit["settings"]
    shares, moves = shares_at_radius(audit), moves_of(audit)
    level = percent(settings.get("level", 0.95))
    parts = [
        f"## Stability of explanations: {escaped(audit['name'])}",
        *(f"**{escaped(sentence)}**" for sentence in words.loud(audit)),
        escaped(words.verdict(summary, shares, moves)),
        "### What was audited",
        _bullets(_audited(audit)),
        "### Figures",
        f"Intervals are at {level}, for other rows of the same kind.",
        _figures(audit),
        *_gates(audit),
        "### What the proof rests on",
        escaped(audit.get("proof") or ""),
        escaped(audit.get("assumptions") or notes.ASSUMPTIONS).rstrip(".") + ".",
        "### Limitations",
        _bullets(_limitations(audit)),
        "### How to repeat it",
        f"`r2et verify {plain_name(pack)}` checks every file of the pack by its SHA-256, audits the"
        " same model on the same rows again, and says which figures are equal to the bit and which"
        " within tolerance.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """Somebody's text on one line, as text and nothing else."""
    return SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def _audited(audit: AuditResult) -> list[str]:
    summary = audit["summary"]
    facts = [
        ("rows", rows_of(summary.get("rows"))),
        ("reasons shown (k)", str(summary["k"])),
        ("changes allowed", settings_words.region(audit) or str(audit["settings"].get("region"))),
        (
            "explanation",
            settings_words.explainer(audit) or str(audit["settings"].get("explainer")),
        ),
        ("effort of the attack", str(audit["settings"].get("budget"))),
        ("seed", str(audit["settings"].get("seed"))),
        *row_tables.inputs(audit),
        ("date", str(audit.get("date"))),
        ("versions", ", ".join(f"{n} {v}" for n, v in (audit.get("versions") or {}).items())),
    ]
    return [f"{escaped(name)}: {escaped(text)}" for name, text in facts]


def _figures(audit: AuditResult) -> str:
    lines = ["| figure | value | interval | rows |", "|---|---|---|---|"]
    for group in groups(audit):
        for line in group["lines"]:
            if line["measured"]:
                cells = (line["figure"].label, line["text"], line["span"], line["rows"])
                lines.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(lines)


def _gates(audit: AuditResult) -> list[str]:
    gates = audit.get("gates") or []
    if not gates:
        return []
    lines = [f"{'passed' if g['passed'] else 'FAILED'}: {escaped(words.gate(g))}" for g in gates]
    return ["### Bounds that were asked for", _bullets(lines)]


def _limitations(audit: AuditResult) -> list[str]:
    shares = shares_at_radius(audit)
    own = [
        *words.cautions(audit["summary"], shares, class_count(audit)),
        *(audit.get("notes") or ()),
        *(
            f"Not measured: {measure_words(skipped.get('what'))}: {skipped.get('why')}"
            for skipped in audit.get("skipped") or ()
        ),
    ]
    general = dict(notes.METHOD)["What the audit does not say"]
    return [escaped(text) for text in (*own, general)]


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
