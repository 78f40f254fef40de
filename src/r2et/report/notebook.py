"""Results as a notebook shows them: small HTML without script or style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from markupsafe import Markup

from r2et.report import words
from r2et.report.shares import class_count, moves_of, shares_at_radius
from r2et.report.summary_table import groups
from r2et.results import AuditResult
from r2et.wording import percents

# Read on white and on black; the text keeps the notebook's own colour.
COLOURS = {"proved": "#3b7dbd", "unknown": "#9a9a9a", "broken": "#c8581c"}
CELL = "text-align:left;padding:.15em .9em .15em 0;vertical-align:top"
WIDE = f"{CELL};min-width:14em"  # of a column of sentences beside a longer one
PEOPLE = 10  # of whom a notebook shows the reasons


def audit_html(audit: AuditResult) -> str:
    """The verdict, the three shares as a bar, what to keep in mind, and every figure."""
    shares, moves = shares_at_radius(audit), moves_of(audit)
    summary = audit["summary"]
    cautions = [
        *words.loud(audit),
        *words.cautions(summary, shares, class_count(audit)),
        *(audit.get("notes") or ()),
    ]
    lines = [
        (line["figure"].label, line["text"], line["span"])
        for group in groups(audit)
        for line in group["lines"]
        if line["measured"]
    ]
    values = {"proved": shares.proved, "unknown": shares.unknown, "broken": shares.broken}
    return _block(
        Markup("<strong>{}</strong>").format(audit["name"]),
        _paragraph(words.verdict(summary, shares, moves)),
        _bar(values) if shares.rows else Markup(""),
        *(_paragraph(text, "font-style:italic") for text in cautions),
        _folded("All figures", _table(("figure", "value", "interval"), lines)),
    )


def reasons_html(reasons: Mapping[str, Any]) -> str:
    """Person by person the reasons with their proof. reasons: as `Reasons.to_dict()` gives them."""
    people = list(reasons["people"])
    parts = [_person(person) for person in people[:PEOPLE]]
    if len(people) > PEOPLE:
        parts.append(_paragraph(f"... and {len(people) - PEOPLE} more rows"))
    parts.append(_paragraph(f"Contributions are compared with {reasons['baseline']}."))
    shares = reasons["shares"]
    if shares["proved"] is not None:
        parts.append(_paragraph(f"For {reasons['changes']}:"))
        parts.append(_bar({name: float(shares[name]) for name in COLOURS}))
    parts += [_paragraph(text, "font-style:italic") for text in reasons["notes"]]
    return _block(*parts)


def _person(person: Mapping[str, Any]) -> Markup:
    against = "" if person["decision"] == person["toward"] else f", toward {person['toward']}"
    title = f"Row {person['row']}: {person['decision']} ({100 * person['probability']:.0f} %)"
    lines = [
        (
            str(own["rank"]),
            own["sentence"] or f"{own['column']}: {own['value']}",
            f"{own['contribution']:+.2f}",
            _state(own),
        )
        for own in person["reasons"]
    ]
    head = ("", "reason", "contribution", "under the changes")
    asked = any(line[-1] for line in lines)
    shown = lines if asked else [line[:-1] for line in lines]
    table = _table(head if asked else head[:-1], shown, wide=1)
    empty = _paragraph(f"no column speaks for {person['toward']}")
    named = Markup("<strong>{}{}</strong>").format(title, against)
    return Markup('<div style="margin:.6em 0">{}{}</div>').format(named, table if lines else empty)


def _state(reason: Mapping[str, Any]) -> str:
    if reason["proved"]:
        return "proved"
    if reason["broken_by"] is not None:
        return f"lost with {reason['broken_by']}"
    return "" if reason["proved"] is None else "not proved"


def _bar(shares: Mapping[str, float]) -> Markup:
    """Shares as a bar, and as words below it."""
    texts = dict(zip(shares, percents(list(shares.values())), strict=True))
    filled = Markup("").join(
        Markup('<span style="flex:{} 0 0;background:{}"></span>').format(
            f"{share:.4f}", COLOURS[name]
        )
        for name, share in shares.items()
        if share > 0
    )
    legend = Markup(" &nbsp; ").join(
        Markup('<span style="color:{}">&#9632;</span> {} {}').format(
            COLOURS[name], name, texts[name]
        )
        for name in shares
    )
    return Markup(
        '<div aria-hidden="true" style="display:flex;height:1em;max-width:40em">{}</div><p'
        ' style="margin:.2em 0 .6em">{}</p>'
    ).format(filled, legend)


def _table(head: Iterable[str], lines: Iterable[Iterable[str]], wide: int | None = None) -> Markup:
    """Cells of text; wide: the number of a column that keeps room for its words."""

    def cells(tag: str, values: Iterable[str]) -> Markup:
        form = Markup('<{0} style="{1}">{2}</{0}>')
        return Markup("").join(
            form.format(Markup(tag), WIDE if place == wide else CELL, value)
            for place, value in enumerate(values)
        )

    rows = Markup("").join(Markup("<tr>{}</tr>").format(cells("td", line)) for line in lines)
    return Markup(
        '<table style="border-collapse:collapse"><thead><tr>{}</tr></thead><tbody>{}</tbody>'
        "</table>"
    ).format(cells("th", head), rows)


def _paragraph(text: str, style: str = "") -> Markup:
    return Markup('<p style="margin:.3em 0;max-width:44em;{}">{}</p>').format(style, text)


def _folded(title: str, content: Markup) -> Markup:
    form = '<details><summary style="cursor:pointer">{}</summary>{}</details>'
    return Markup(form).format(title, content)


def _block(*parts: Markup) -> str:
    return str(Markup("<div>{}</div>").format(Markup("").join(parts)))
