"""One HTML file about one or several audits: no network, readable without its script."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from r2et.errors import require
from r2et.files import write_result
from r2et.report import charts, model_table, notes, row_tables, settings_words, words
from r2et.report.images import is_map
from r2et.report.rows import row_views
from r2et.report.shares import class_count, moves_of, pairs, shares_at_radius
from r2et.report.summary_table import cards, groups
from r2et.results import (
    FIGURES,
    INCLUDED,
    AuditResult,
    check_audit,
    is_included,
)
from r2et.wording import (
    count,
    finite,
    finites,
    measure_words,
    percent,
    percents,
    proved_percent,
    rows_of,
    significant,
)

WORST = 4  # rows drawn without the script; the others are a choice away
# What would end a script element, or a line of a script.
ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page(
    audits: Sequence[AuditResult],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
) -> None:
    """Write the page about audits (as `Audit.to_dict()` gives them) to a file."""
    listed = isinstance(audits, Sequence) and not isinstance(audits, str | bytes)
    require(listed, "page", "audits", "a list of audits", type(audits).__name__)
    require(len(audits) > 0, "page", "audits", "at least one audit", "none")
    for number, audit in enumerate(audits):
        check_audit(f"page: audit {number}", audit)
    write_result("page", path, html(audits, title=title))


def html(audits: Sequence[AuditResult], *, title: str | None = None) -> str:
    """The page as a text."""
    several = len(audits) > 1
    subject = f"{len(audits)} models" if several else str(audits[0]["name"])
    views = [_view(audit, f"a{number}") for number, audit in enumerate(audits)]
    style, script = _file("style.css"), _file("script.js")
    loader = jinja2.PackageLoader("r2et.report")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(percent=percent, proved_percent=proved_percent)
    environment.globals.update(significant=significant, count=count, rows_of=rows_of)
    return environment.get_template("page.html").render(
        title=title or f"Explanation audit: {subject}",
        views=views,
        level=3 if several else 2,
        compared=_compared(audits) if several else None,
        notes=notes,
        style=Markup(style),
        script=Markup(script),
        policy="default-src 'none'; img-src data:; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'",
    )


def island(data: Any) -> Markup:
    """Data inside a script element: JSON in which nothing can end that element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(ESCAPES))


def _view(audit: AuditResult, name: str) -> dict[str, Any]:
    """Everything the templates say about one audit."""
    summary, settings = audit["summary"], audit["settings"]
    shares, rows = shares_at_radius(audit), row_views(audit)
    radius, moves = finite(summary.get("radius")), moves_of(audit)
    texts = percents((shares.proved, shares.unknown, shares.broken))
    only = settings.get("only")
    # Rows that the model chose itself do not compare it with another.
    compared = {**summary, "auc_logistic": None} if only else summary
    return {
        "id": name,
        "name": audit["name"],
        "date": audit.get("date"),
        "seconds": finite(audit.get("seconds")),
        "summary": summary,
        **_place(radius, moves, only),
        "norm": words.NORMS.get(str(settings.get("norm"))),
        "shares": shares,
        "share_texts": dict(zip(charts.STATES, texts, strict=True)),
        "verdict": words.verdict(summary, shares, moves),
        "moves": moves,
        "proof": audit.get("proof"),
        "included": INCLUDED if is_included(audit) else "",
        "loud": words.loud(audit),
        "sets": words.sets(summary, shares),
        "cautions": [
            *words.cautions(compared, shares, class_count(audit)),
            *(audit.get("notes") or ()),
        ],
        "strip": charts.strip(shares, f"{name}-strip") if shares.rows else None,
        "mini": charts.strip(shares, f"{name}-mini", 26) if shares.rows else None,
        "curve": charts.curve(audit["curve"], radius, shares, f"{name}-curve"),
        "curve_rows": audit["curve"],
        "groups": groups(audit),
        "gates": [
            {"passed": gate["passed"] is True, "text": words.gate(gate)}
            for gate in audit.get("gates") or ()
        ],
        "cards": cards(summary),
        "level": percent(settings.get("level", 0.95)),
        "skipped": [
            (measure_words(s.get("what", "")), str(s.get("why", "")))
            for s in audit.get("skipped") or []
        ],
        "rows": rows,
        "worst": [r for r in rows if r["kind"] == "worst"][:WORST],
        "pixels": is_map(audit["scores_shape"]),
        "map": audit["scores_shape"][-2:],
        "scatters": _scatters(audit, name),
        "settings": _settings(audit),
        "inputs": row_tables.inputs(audit),
        "calibration": row_tables.calibration(audit, f"{name}-calibration"),
        "grouped": row_tables.grouped(audit),
        "durations": _durations(audit.get("durations")),
        "versions": dict(audit.get("versions") or {}),
        "assumptions": audit.get("assumptions") or notes.ASSUMPTIONS,
        "data": island(_explored(audit, rows)),
    }


def _settings(audit: AuditResult) -> dict[str, str]:
    """What was asked for, in words."""
    in_words = {
        "region": settings_words.region(audit),
        "explainer": settings_words.explainer(audit),
        "norm": words.NORMS.get(str(audit["settings"].get("norm"))),
    }
    # Changes of a table's columns have no radius, and are said in words as the region.
    without = () if moves_of(audit) is None else ("moves", "radius", "norm", "limit")
    return {
        notes.SETTINGS.get(name, name): in_words.get(name) or _plain(value)
        for name, value in audit["settings"].items()
        # Said above, beside the name of the data.
        if name not in without and (name != "rows_given" or not audit.get("inputs"))
    }


def _place(radius: float | None, moves: str | None, only: object = None) -> dict[str, str]:
    """Where rows were audited: in a line of facts, behind "at", and behind "a change"."""
    decided = f"decided {only}, " if only else ""
    place = "the region" if radius is None else f"radius {significant(radius)}"
    if moves is None:
        return {"radius": place, "at": f"{decided}at {place}", "change": f"within {place}"}
    return {
        "radius": f"changes of at most {moves}",
        "at": f"{decided}for these changes",
        "change": f"of at most {moves}",
    }


def _explored(audit: AuditResult, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the script steps through."""
    height, width = audit["scores_shape"][-2:] if is_map(audit["scores_shape"]) else (1, 1)
    return {
        "pixels": is_map(audit["scores_shape"]),
        "box": f"0 0 {width} {height}",
        "k": audit["summary"]["k"],
        "rows": rows,
    }


def _scatters(audit: AuditResult, name: str) -> list[dict[str, Any]]:
    """Figure 2: the first flip against thickness, and against the Hessian norm, where measured."""
    flips, scatters = finites(audit["rows"].get("first_flip")), []
    for column, label in (("thickness", "thickness"), ("hessian_norm", "Hessian norm")):
        values = finites(audit["rows"].get(column))
        both = pairs(values, flips)
        if both is not None:
            drawn = charts.scatter(both, label, "steps to first flip", f"{name}-{column}")
            measured = zip(values, flips, strict=True)
            never = sum(value is not None and flip is None for value, flip in measured)
            sentence = f"{charts.correlated(both)} {rows_of(both.total)}"
            if len(both.points) < both.total:
                sentence += f", of which {len(both.points)} are drawn"
            sentence += f"; {rows_of(never)} more never flipped." if never else "."
            scatters.append({"label": label, "svg": drawn, "sentence": sentence})
    return scatters


def _compared(audits: Sequence[AuditResult]) -> dict[str, Any]:
    figures = [FIGURES[n] for n in ("precision_strong", "certified_share")]
    drawn = [(f, model_table.pareto(audits, f, f"pareto-{f.name}")) for f in figures]
    return {
        "names": [a["name"] for a in audits],
        "lines": model_table.table(audits),
        "differences": model_table.differences(audits),
        "cautions": model_table.cautions(audits),
        "pareto": [(f, svg) for f, svg in drawn if svg is not None],
    }


def _durations(parts: Any) -> str:
    """Where the time went, longest first."""
    known = parts.items() if isinstance(parts, Mapping) else ()
    timed = [(str(name), s) for name, value in known if (s := finite(value)) is not None]
    timed.sort(key=lambda part: -part[1])
    return ", ".join(f"{name} {significant(s)} s" for name, s in timed if s >= 0.001)


def _plain(value: Any) -> str:
    """A setting as a reader sees it."""
    if value is None:
        return "none"
    number = finite(value)
    if number is None:
        return str(value)
    return count(number) if number.is_integer() else significant(number, 4)


def _file(name: str) -> str:
    return (resources.files("r2et.report") / "templates" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
