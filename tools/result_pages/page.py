"""The page of results, made of claims and panels alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from r2et.bench.claim import Claim
from r2et.bench.figure_plans import FIGURES
from r2et.bench.panel import Panel
from r2et.bench.paper_tables import ALIASES, TABLE_NAMES, table_spec
from r2et.bench.registry import BENCHMARKS, TABLE_CANDIDATES, dataset_title
from r2et.bench.result_table import make_table
from r2et.bench.table_formats import LEGEND, markdown
from result_pages.archive import END, Archive, merged
from result_pages.figure_tables import lines
from result_pages.text_template import TextTemplate
from result_pages.verdicts import Verdict, verdicts

TABLES = ("leaderboard", *(name for name in TABLE_NAMES if name not in ALIASES))
HEAD = """# Results

Made by `python tools/results.py` from files, and by nothing else. Behind every row of a table there
is a claim: the numbers of every seed, the papers' figures, what was tried and chosen, the settings
and the versions, and the names of its records. Claims and records lie in
{archives};
`python tools/results.py --show table1/adult-r2et` prints a claim, and with a record's name that
record. A run of its own, as that of Figures 2 and 4, has a file of its own. Numbers in sentences
are looked up in the same files.
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


def results(runs: Mapping[str, Archive], link: str, summary: str = "", why: str = "") -> str:
    """The page of all claims and panels. link: how it gets to the folder of the archives.

    runs: by their names, that of the tables first.
    summary, why: texts to begin with and to explain with, whose {words} are looked up.
    """
    template = template_of(runs)
    claims, panels = template.claims, template.panels
    files = [f"[`{link}/{name}{END}`]({link}/{name}{END})" for name in runs]
    parts = [HEAD.format(archives=" and ".join(files))]
    parts += [template.fill(summary), ""] if summary else []
    parts.append(READ.format(legend="\n\n".join(LEGEND)))
    parts += _tables("leaderboard", claims["leaderboard"])
    answers = verdicts(claim for some in claims.values() for claim in some)
    if answers:
        parts += [SHORT.format(all=len(answers), **counts(answers)), *_verdicts(answers)]
    parts += [template.fill(why), ""] if why else []
    for name in TABLES[1:]:
        parts += _tables(name, claims[name])
    for name in FIGURES:
        parts += _figure(name, panels[name], link)
    return "\n".join(parts)


def template_of(runs: Mapping[str, Archive]) -> TextTemplate:
    """Claims by table, panels by figure, and all records, for texts to ask for."""
    every_claim, every_panel = merged(runs.values())
    claims = {name: _of(every_claim, name) for name in TABLES}
    panels = {name: _of(every_panel, name) for name in FIGURES}
    return TextTemplate(claims, panels, [run.records for run in runs.values()])


Kept = TypeVar("Kept", Claim, Panel)


def _of(items: Mapping[str, Kept], name: str) -> list[Kept]:
    """Those of one table or figure, in the order of their names."""
    return [items[key] for key in sorted(items) if key.startswith(f"{name}/")]


def counts(answers: list[Verdict]) -> dict[str, int]:
    """How many sentences have which answers."""
    seen = Counter((each.papers, each.here) for each in answers)
    same = sum(n for (theirs, ours), n in seen.items() if theirs == ours)
    lost, new = seen["yes", "no"], seen["no", "yes"]
    return {"same": same, "lost": lost, "new": new, "even": len(answers) - same - lost - new}


def _verdicts(answers: list[Verdict]) -> Iterator[str]:
    yield "| | data | the papers | | ours | | so |\n|---|---|---|---|---|---|---|"
    for table, group in groupby(answers, lambda v: v.table):
        yield f"| **{table_spec(table, answers[0].data).title}** | | | | | | |"
        some = list(group)
        order = list(dict.fromkeys(each.says for each in some))
        for each in sorted(some, key=lambda v: order.index(v.says)):
            whose = f"[{each.data}](#{table}-{each.data})"
            theirs, ours = f"{each.theirs} | {each.papers}", f"{each.ours} | {each.here}"
            yield f"| {each.says} | {whose} | {theirs} | {ours} | {each.holds} |"
    yield ""


def _tables(name: str, claims: Sequence[Claim]) -> Iterator[str]:
    datasets = [data for data in BENCHMARKS if any(claim.data == data for claim in claims)]
    if datasets:
        yield f"## {table_spec(name, datasets[0]).title}\n"
    for data in datasets:
        table = make_table(table_spec(name, data), data, dataset_title(data), _ordered(claims))
        yield f'<a id="{name}-{data}"></a>\n\n### {dataset_title(data)}\n'
        yield markdown(table)


def _figure(name: str, panels: Sequence[Panel], link: str) -> Iterator[str]:
    if not panels:
        return
    title = FIGURES[name].title
    yield f'<a id="{name}"></a>\n\n## {title}\n'
    yield f"![{title}]({link}/{name}.png)\n"
    tables = [(panel, *lines(panel)) for panel in panels]
    if tables[0][1]:
        head = ("data", "recipe", *tables[0][1])
        yield f"| {' | '.join(head)} |\n|{'---|' * len(head)}"
        for panel, _, rows in tables:
            whose = f"{dataset_title(panel.data)} | `{panel.recipe}`"
            yield from (f"| {whose} | {' | '.join(row)} |" for row in rows)
        yield ""


def _ordered(claims: Sequence[Claim]) -> list[Claim]:
    """As the papers order their rows, others after them."""
    names = list(TABLE_CANDIDATES)
    return sorted(claims, key=lambda c: names.index(c.recipe) if c.recipe in names else len(names))
