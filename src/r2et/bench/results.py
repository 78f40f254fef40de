"""A page of results made of claims alone: every number leads to the file that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from r2et.bench.cases import CASES, TABLES, standing
from r2et.bench.claim import Claim, load_claims
from r2et.bench.facts import Facts
from r2et.bench.figures import PICTURES
from r2et.bench.panel import Panel, load_panels
from r2et.bench.reading import lines
from r2et.bench.render import LEGEND, markdown
from r2et.bench.table import Row, make_table
from r2et.bench.tables import ALIASES, TABLE_NAMES, spec
from r2et.bench.verdict import Verdict, verdicts

HEAD = """# Results

Made by `python tools/results.py` from files, and by nothing else. In a table a recipe's name leads
to the file that has all numbers of its row: those of every seed, the papers' figures, what was
tried and chosen, the settings and the versions, and the names of its records, which lie in
[`{link}/runs`]({link}/runs). A figure's rows lead to their files in the same way; a run of its own,
as that of Figures 2 and 4, has its records beside them. Numbers in sentences are looked up in the
same files.
"""
READ = """## How to read the tables

{legend}

A recipe is compared if the validation AUC of each of its seeds is at most 0.01 (digits: 0.015)
below that of Vanilla with the same seed. `cAUC`: AUC on clean test rows. `sets`: how many different
top-k sets the test rows get. `chosen`: the settings with the highest validation P@k.
"""
SHORT = """## Where we reproduce the papers

Each line is a sentence with two answers, the papers' and ours; the papers' number is their best of
all of their recipes, whether it was run here or not. A lead or gain of less than half a point is
"even". A data set's name leads to its table. Where ties decide, no line is given. Of {all} lines
{same} have the same answer in both; {lost} hold in the papers and not here, {new} here and not in
the papers; in {even} one side is even.
"""


def results(folder: Path, link: str, summary: str = "", why: str = "") -> str:
    """The page of all claims in a folder. link: how it gets there.

    summary, why: texts to begin with and to explain with, whose {words} are looked up.
    """
    names = ("leaderboard", *(name for name in TABLE_NAMES if name not in ALIASES))
    claims = {name: load_claims(folder, name) for name in names}
    panels = {name: load_panels(place(folder, name), name) for name in PICTURES}
    facts = Facts(claims, panels, [folder / "runs", *sorted(folder.glob("*/runs"))])
    parts = [HEAD.format(link=link)]
    parts += [facts.fill(summary), ""] if summary else []
    parts.append(READ.format(legend="\n\n".join(LEGEND)))
    parts += _tables("leaderboard", claims["leaderboard"], link)
    found = verdicts(claim for some in claims.values() for claim in some)
    if found:
        parts += [SHORT.format(all=len(found), **counts(found)), *_verdicts(found)]
    parts += [facts.fill(why), ""] if why else []
    for name in names[1:]:
        parts += _tables(name, claims[name], link)
    for name in PICTURES:
        own = place(folder, name).relative_to(folder)
        parts += _figure(name, panels[name], f"{link}/{own}".removesuffix("/."))
    return "\n".join(parts)


def place(folder: Path, name: str) -> Path:
    """Where a figure's panels are: in the folder, or in that of a run of its own within it."""
    runs = sorted(path.parent for path in folder.glob("*/runs"))
    return next((own for own in runs if (own / name).is_dir()), folder)


def counts(found: list[Verdict]) -> dict[str, int]:
    """How many sentences have which answers."""
    seen = Counter((each.papers, each.here) for each in found)
    same = sum(n for (theirs, ours), n in seen.items() if theirs == ours)
    lost, new = seen["yes", "no"], seen["no", "yes"]
    return {"same": same, "lost": lost, "new": new, "even": len(found) - same - lost - new}


def _verdicts(found: list[Verdict]) -> Iterator[str]:
    yield "| | data | the papers | | ours | | so |\n|---|---|---|---|---|---|---|"
    for table, group in groupby(found, lambda v: v.table):
        yield f"| **{spec(table, found[0].data).title}** | | | | | | |"
        some = list(group)
        order = list(dict.fromkeys(each.says for each in some))
        for each in sorted(some, key=lambda v: order.index(v.says)):
            whose = f"[{each.data}](#{table}-{each.data})"
            theirs, ours = f"{each.theirs} | {each.papers}", f"{each.ours} | {each.here}"
            yield f"| {each.says} | {whose} | {theirs} | {ours} | {each.holds} |"
    yield ""


def _tables(name: str, claims: list[Claim], link: str) -> Iterator[str]:
    some = [data for data in CASES if any(claim.data == data for claim in claims)]
    if some:
        yield f"## {spec(name, some[0]).title}\n"
    for data in some:
        table = make_table(spec(name, data), data, standing(data), _ordered(claims))
        yield f'<a id="{name}-{data}"></a>\n\n### {standing(data)}\n'
        yield markdown(table, lambda row: _place(row, link))


def _figure(name: str, panels: list[Panel], link: str) -> Iterator[str]:
    if not panels:
        return
    title = PICTURES[name].title
    yield f'<a id="{name}"></a>\n\n## {title}\n'
    yield f"![{title}]({link}/{name}.png)\n"
    found = [(panel, *lines(panel)) for panel in panels]
    if found[0][1]:
        head = ("data", "recipe", *found[0][1])
        yield f"| {' | '.join(head)} |\n|{'---|' * len(head)}"
        for panel, _, rows in found:
            whose = f"{standing(panel.data)} | [`{panel.recipe}`]({link}/{panel.name})"
            yield from (f"| {whose} | {' | '.join(row)} |" for row in rows)
        yield ""


def _place(row: Row, link: str) -> str:
    return f"{link}/{row.claim.name}"


def _ordered(claims: list[Claim]) -> list[Claim]:
    """As the papers order their rows, others after them."""
    names = list(TABLES)
    return sorted(claims, key=lambda c: names.index(c.recipe) if c.recipe in names else len(names))
