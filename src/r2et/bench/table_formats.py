"""Formats of tables: Markdown, LaTeX and HTML; the winner bold, the papers' figure small."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from r2et.bench.result_table import ResultCell, ResultRow, ResultTable
from r2et.errors import printable

MARKS = "Bold: the best; underlined: the next."
SMALL, SAID = "Small: the papers' figure.", "Small: what was reported."
LINEAR, LINEARS = "the linear model", "linear models (one explanation for all rows)"
BELOW = "rows marked ° (the validation AUC of a seed is too far below Vanilla's)"
TIES = (
    "numbers marked ? (more than 5 % of the rows have equal scores at the border, so that P@k "
    "measures which feature comes first)"
)
DAGGERS = {
    "†": "† the better of the papers' best R2ET and the best other method",
    "‡": "‡ an addition of ours better than all of these",
}
TESTED = (
    "{they} a paired t-test over test rows (means over seeds, 5 %) and a difference of the same "
    "sign with every seed, of two or more. {say} nothing about other seeds or data, and {are} not "
    "corrected for how many are tested or for being the best of many."
)
LINK = re.compile(r"\](?=\()|<(?=[A-Za-z/!?])")


def _legend(
    marks: bool, small: Iterable[str], apart: Iterable[str], daggers: Iterable[str]
) -> tuple[str, ...]:
    first = [*([MARKS] if marks else []), *small]
    parts = list(apart)
    if parts:
        comma = "," if len(parts) > 2 else ""
        several = f"{', '.join(parts[:-1])}{comma} and " if parts[1:] else ""
        first.append(f"Not compared: {several}{parts[-1]}.")
    lines = [" ".join(first)] if first else []
    tested = [DAGGERS[dagger] for dagger in daggers]
    if tested:
        one = {"they": "It needs", "say": "It says", "are": "is"}
        both = {"they": "Both need", "say": "They say", "are": "are"}
        lines.append(f"{'; '.join(tested)}. {TESTED.format(**(one if len(tested) == 1 else both))}")
    return tuple(lines)


LEGEND = _legend(True, [SMALL], [LINEAR, BELOW, TIES], DAGGERS)  # where all of it is


def legend(tables: Iterable[ResultTable]) -> tuple[str, ...]:
    """What the marks mean that these tables have."""
    shown = list(tables)
    rows = [(table, row) for table in shown for row in table.rows]
    cells = [(table, number) for table, row in rows for number in row.numbers]
    small = [
        text
        for text, is_open in ((SMALL, False), (SAID, True))
        if any(number.reported for table, number in cells if table.open_to_all == is_open)
    ]
    linear = {table.open_to_all for table, row in rows if row.linear}
    apart = [text for text, is_open in ((LINEAR, False), (LINEARS, True)) if is_open in linear]
    apart += [BELOW] if any(row.below for _, row in rows) else []
    apart += [TIES] if any(number.tied for _, number in cells) else []
    daggers = [dagger for dagger in DAGGERS if any(n.dagger == dagger for _, n in cells)]
    return _legend(any(n.mark for _, n in cells), small, apart, daggers)


def markdown_text(text: str) -> str:
    """A text in which nobody's tags or links are any."""
    return LINK.sub(lambda found: "&lt;" if found[0] == "<" else "\\]", printable(text))


def marked(number: ResultCell) -> str:
    """What stands behind a number."""
    return number.dagger + ("?" if number.tied else "")


def markdown(table: ResultTable) -> str:
    """GitHub's Markdown."""

    def cell(number: ResultCell) -> str:
        text = "-" if number.why else number.text
        if number.mark:
            text = f"**{text}**" if number.mark == "best" else f"<u>{text}</u>"
        text += marked(number)
        return f"{text} <sub>{number.reported}</sub>" if number.reported else text

    head = [table.data, "chosen", *table.columns]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in table.rows:
        label = f"`{row.recipe}`" + ("°" if row.below else "")
        cells = [label, chosen_settings(row), *map(cell, row.numbers)]
        lines.append("| " + " | ".join(cells) + " |")
    notes = map(markdown_text, [*table.notes, *missing(table)])
    plain = (f"\\{note}" if note.startswith("-") else note for note in notes)  # no list of one
    return "\n".join([*lines, "", *(f"{note}  " for note in plain)]) + "\n"


def chosen_settings(row: ResultRow) -> str:
    """The settings that were chosen."""
    return ", ".join(
        name if value is True else f"{name} {value if isinstance(value, str) else f'{value:g}'}"
        for name, value in row.claim.chosen.items()
    )


def missing(table: ResultTable) -> list[str]:
    """What could not be had, and why; who is below the threshold, or linear; what is in doubt."""
    why: dict[str, list[str]] = {}
    doubts: dict[tuple[bool, str], list[str]] = {}
    for row in table.rows:
        for title, number in zip(table.columns, row.numbers, strict=True):
            if number.why:
                why.setdefault(number.why, []).append(f"{row.recipe} {title}")
            for doubt in number.doubts:
                doubts.setdefault((number.tied, doubt), []).append(f"{row.recipe} {title}")
    lines = [f"- {_few(places)}: {reason.rstrip('.')}." for reason, places in why.items()]
    lines += [f"° {row.recipe}: {row.below}." for row in table.rows if row.below]
    linear = [row.recipe for row in table.rows if row.linear]
    if linear and table.open_to_all:  # its name does not say so
        lines.append(f"Linear, so not compared: {', '.join(linear)}.")
    for (tied, doubt), places in doubts.items():
        lines.append(f"{'? ' if tied else ''}{_few(places)}: {doubt.rstrip('.')}.")
    return lines


def _few(places: list[str]) -> str:
    return ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")


ESCAPES = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
ESCAPES |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}


def tex(text: str) -> str:
    """A text for LaTeX."""
    plain = "".join(ESCAPES.get(c, c) for c in text)
    for mark, word in {"±": r"\pm", "†": r"^\dagger", "‡": r"^\ddagger", "°": r"^\circ"}.items():
        plain = plain.replace(mark, f"${word}$")
    return plain


def latex(table: ResultTable) -> str:
    """A tabular for booktabs; what there is to say stands below it."""

    def cell(number: ResultCell) -> str:
        text = "--" if number.why else tex(number.text)
        if number.mark:
            text = (r"\textbf{" if number.mark == "best" else r"\underline{") + text + "}"
        text += tex(marked(number))
        return text + (r" {\scriptsize " + number.reported + "}" if number.reported else "")

    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\caption{" + tex(f"{table.title}, {table.data}.") + "}",
        r"\label{tab:" + f"{table.name}-{table.data.split()[0]}" + "}",
        r"\begin{tabular}{ll" + "r" * len(table.columns) + "}",
        r"\toprule",
        " & ".join(["", "chosen", *map(tex, table.columns)]) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        label = tex(row.recipe + ("°" if row.below else ""))
        lines.append(
            " & ".join([label, tex(chosen_settings(row)), *map(cell, row.numbers)]) + r" \\"
        )
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = (*table.notes, *missing(table), *legend([table]))
    lines += [r"\par\footnotesize " + tex(note) for note in notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem }
table { border-collapse: collapse; margin: 1rem 0 }
td, th { padding: .2rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } thead { border-bottom: 1px solid }
small { color: #777 } .why { color: #999 } .notes { color: #555; font-size: .9em }"""


def page(title: str, tables: list[ResultTable]) -> str:
    """All tables as one HTML page that needs nothing else."""
    body = "\n".join(_section(table) for table in tables)
    body += f'\n<p class="notes">{"<br>".join(html.escape(line) for line in legend(tables))}</p>'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _section(table: ResultTable) -> str:
    def cell(number: ResultCell) -> str:
        small = f" <small>{number.reported}</small>" if number.reported else ""
        if number.why:
            return f'<td class="why" title="{html.escape(number.why)}">-{small}</td>'
        text = number.text
        if number.mark:
            tag = "b" if number.mark == "best" else "u"
            text = f"<{tag}>{text}</{tag}>"
        return f"<td>{text}{marked(number)}{small}</td>"

    head = "".join(f"<th>{html.escape(c)}</th>" for c in ("", "chosen", *table.columns))
    rows = []
    for row in table.rows:
        label = html.escape(row.recipe) + ("°" if row.below else "")
        cells = f"<td>{html.escape(chosen_settings(row))}</td>{''.join(map(cell, row.numbers))}"
        rows.append(f"<tr><td>{label}</td>{cells}</tr>")
    notes = "<br>".join(html.escape(n) for n in [*table.notes, *missing(table)])
    body = "\n".join(rows)
    return (
        f"<h2>{html.escape(table.data)}</h2>\n<table><thead><tr>{head}</tr></thead>\n"
        f'<tbody>\n{body}\n</tbody></table>\n<p class="notes">{notes}</p>'
    )
