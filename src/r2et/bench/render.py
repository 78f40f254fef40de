"""Tables as Markdown, LaTeX and HTML: bold winner, underlined runner-up, the papers' figure."""

from __future__ import annotations

import html
from collections.abc import Callable

from r2et.bench.table import Number, Row, Table

Link = Callable[[Row], str | None]


def markdown(table: Table, link: Link | None = None) -> str:
    """GitHub's Markdown; link: where a row's record is."""

    def cell(number: Number, row: Row) -> str:
        if number.why:
            text = "-"
        else:
            target = link(row) if link else None
            text = f"[{number.text}]({target})" if target else number.text
            if number.mark == "best":
                text = f"**{text}**"
            elif number.mark == "second":
                text = f"<u>{text}</u>"
            text += "†" if number.dagger else ""
        return f"{text} <sub>{number.reported}</sub>" if number.reported else text

    head = [table.data, "chosen", *table.columns]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in table.rows:
        label = f"`{row.recipe}`" + ("°" if row.below else "")
        cells = [label, _settings(row), *(cell(number, row) for number in row.numbers)]
        lines.append("| " + " | ".join(cells) + " |")
    notes = [*table.notes, *missing(table)]
    plain = (f"\\{note}" if note.startswith("-") else note for note in notes)  # no list of one
    return "\n".join([*lines, "", *(f"{note}  " for note in plain)]) + "\n"


def _settings(row: Row) -> str:
    return ", ".join(f"{n} {v:g}" for n, v in row.claim.chosen.items())


def missing(table: Table) -> list[str]:
    """What could not be had, and why; whose accuracy is below the threshold; what is in doubt."""
    why: dict[str, list[str]] = {}
    doubts: dict[str, list[str]] = {}
    for row in table.rows:
        for title, number in zip(table.columns, row.numbers, strict=True):
            if number.why:
                why.setdefault(number.why, []).append(f"{row.recipe} {title}")
            for doubt in number.doubts:
                doubts.setdefault(doubt, []).append(f"{row.recipe} {title}")
    found = [f"- {_few(places)}: {reason.rstrip('.')}." for reason, places in why.items()]
    found += [f"° {row.recipe}: {row.below}." for row in table.rows if row.below]
    return found + [f"? {_few(places)}: {doubt.rstrip('.')}." for doubt, places in doubts.items()]


def _few(places: list[str]) -> str:
    return ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")


ESCAPES = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
ESCAPES |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}


def tex(text: str) -> str:
    """A text for LaTeX."""
    plain = "".join(ESCAPES.get(c, c) for c in text)
    return plain.replace("±", r"$\pm$").replace("†", r"$^\dagger$").replace("°", r"$^\circ$")


def latex(table: Table) -> str:
    """A tabular for booktabs."""

    def cell(number: Number) -> str:
        text = "--" if number.why else tex(number.text)
        if number.mark:
            text = (r"\textbf{" if number.mark == "best" else r"\underline{") + text + "}"
        text += r"$^\dagger$" if number.dagger else ""
        return text + (r" {\scriptsize " + number.reported + "}" if number.reported else "")

    lines = [
        r"\begin{table}",
        r"\caption{" + tex(f"{table.title}, {table.data}. " + " ".join(table.notes)) + "}",
        r"\begin{tabular}{l" + "r" * len(table.columns) + "}",
        r"\toprule",
        " & ".join(["", *map(tex, table.columns)]) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        label = tex(row.recipe + ("°" if row.below else ""))
        lines.append(" & ".join([label, *map(cell, row.numbers)]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [r"\par\footnotesize " + tex(note) for note in missing(table)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem }
table { border-collapse: collapse; margin: 1rem 0 }
td, th { padding: .2rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } thead { border-bottom: 1px solid }
small { color: #777 } .why { color: #999 } .notes { color: #555; font-size: .9em }"""


def page(title: str, tables: list[Table]) -> str:
    """All tables as one HTML page that needs nothing else."""
    body = "\n".join(_section(table) for table in tables)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _section(table: Table) -> str:
    def cell(number: Number) -> str:
        told = f" <small>{number.reported}</small>" if number.reported else ""
        if number.why:
            return f'<td class="why" title="{html.escape(number.why)}">-{told}</td>'
        text = number.text
        if number.mark:
            tag = "b" if number.mark == "best" else "u"
            text = f"<{tag}>{text}</{tag}>"
        return f"<td>{text}{'†' if number.dagger else ''}{told}</td>"

    head = "".join(f"<th>{html.escape(c)}</th>" for c in ("", *table.columns))
    rows = []
    for row in table.rows:
        label = html.escape(row.recipe) + ("°" if row.below else "")
        rows.append(f"<tr><td>{label}</td>{''.join(map(cell, row.numbers))}</tr>")
    notes = "<br>".join(html.escape(n) for n in [*table.notes, *missing(table)])
    body = "\n".join(rows)
    return (
        f"<h2>{html.escape(table.data)}</h2>\n<table><thead><tr>{head}</tr></thead>\n"
        f'<tbody>\n{body}\n</tbody></table>\n<p class="notes">{notes}</p>'
    )
