"""A page of results made of claims alone: every number leads to the file that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from r2et.bench.cases import CASES, TABLES, standing
from r2et.bench.claim import Claim, load_claims
from r2et.bench.figures import PICTURES
from r2et.bench.panel import Panel, load_panels
from r2et.bench.reading import lines
from r2et.bench.render import markdown
from r2et.bench.table import Row, make_table
from r2et.bench.tables import ALIASES, TABLE_NAMES, spec
from r2et.bench.verdict import WORDS, Verdict, verdicts

HEAD = """# Results

Made by `python tools/results.py` from the files that the numbers lead to, and by nothing else; each
holds the numbers of every seed, the papers' figure, the settings and the versions, and names its
records, which lie in `{link}/runs`. Small: the papers' figure. Bold: the best, underlined: the
next; a recipe whose validation AUC is below Vanilla's minus 0.01 (digits: 0.015), marked °, and the
linear model are not in the race. † the best of R2ET and its kin and the best of the others differ
significantly (paired t-test over test rows, means over seeds, 5 %).
"""
SHORT = """## Where we reproduce the papers

What the papers' tables say about data that we have, with their numbers and ours; a data set's name
leads to its table below. Of {all} statements {yes} hold here, {more} to more than twice as much,
{less} to less than half as much, {no} do not hold; in {even} the papers or we have a lead of less
than half a point.
"""


def results(folder: Path, link: str, why: str = "") -> str:
    """The page of all claims in a folder. link: how it gets there. why: what to say of it."""
    names = ("leaderboard", *(name for name in TABLE_NAMES if name not in ALIASES))
    claims = {name: load_claims(folder, name) for name in names}
    parts = [HEAD.format(link=link)]
    found = verdicts(claim for some in claims.values() for claim in some)
    if found:
        counts = Counter(each.holds for each in found)
        parts.append(SHORT.format(all=len(found), **{n: counts[n] for n in WORDS}))
        parts += _verdicts(found)
    parts += [why] if why else []
    for name in names:
        parts += _tables(name, claims[name], link)
    for name in PICTURES:
        parts += _figure(name, load_panels(folder, name), link)
    return "\n".join(parts)


def _verdicts(found: list[Verdict]) -> Iterator[str]:
    yield "| | data | the papers | ours | so here, too |\n|---|---|---|---|---|"
    for table, group in groupby(found, lambda v: v.table):
        yield f"| **{spec(table, found[0].data).title}** | | | | |"
        some = list(group)
        order = list(dict.fromkeys(each.says for each in some))
        for each in sorted(some, key=lambda v: order.index(v.says)):
            whose = f"[{each.data}](#{table}-{each.data})"
            yield f"| {each.says} | {whose} | {each.theirs} | {each.ours} | {each.holds} |"
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
