"""The pages of results, made of claims and panels alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from r2et.bench.candidates import TABLE_CANDIDATES
from r2et.bench.claim import Claim, in_regime
from r2et.bench.figure_plans import FIGURES
from r2et.bench.panel import Panel
from r2et.bench.paper_tables import ALIASES, TABLE_NAMES, table_spec
from r2et.bench.record import Record
from r2et.bench.registry import BENCHMARKS, dataset_title
from r2et.bench.result_table import make_table
from r2et.bench.table_formats import LEGEND, markdown
from result_pages.archive import END, Archive, merged
from result_pages.figure_tables import lines
from result_pages.first_screen import dataset_tables, overview
from result_pages.nearest_part import nearest_part
from result_pages.text_template import TextTemplate
from result_pages.verdicts import Verdict, verdicts

TABLES = ("leaderboard", *(name for name in TABLE_NAMES if name not in ALIASES))
SHOWN = (*TABLES, "nearest")
REGIMES = ("papers", "long")
HEADINGS = {"papers": "In the papers' regime", "long": "In the long regime"}
FIRST = "results.md"
HEAD = """# Results

P@k in percent under the papers' ERAttack, each time of Vanilla, of R2ET's best variant, and of the
best of ours: as the papers print it, and in [two regimes](bench.md#two-regimes) here, the papers'
short training and our long one; the length of training is most of the difference. `Strong`: under
`StrongAttack`, which deserves more belief. `proved`: share of rows whose top k cannot change at the
radius; of tables in the long regime.
"""
EACH = """## Each dataset

Of all methods. `sets`: how many different top-k sets the test rows get; one set for all rows is
stable and useless. Behind each first number a link to its table.
"""
MARKS = """° below the accuracy threshold; "-" not measured. ROCT, ADHD and BP are not to be
had; others [stand in](#each-dataset) for them. Made by `python tools/results.py` from {archives};
`python tools/results.py --show table1-papers/adult-r2et` prints what a row rests on, its records by
name.
"""
READ = """{legend}

A recipe is compared if the validation AUC of each of its seeds is at most 0.01 (digits: 0.015; in
the papers' regime what the table says) below that of Vanilla with the same seed. `cAUC`: AUC on
clean test rows. `sets`: how many different top-k sets the test rows get. `chosen`: the settings
with the highest validation P@k.
"""
SHORT = """## Where we reproduce the papers

Each line is a sentence with the papers' answer and ours; the papers' number is their best of all of
their recipes, whether it was run here or not. A lead or gain of less than half a point is "even".
Where ties decide, no line is given. In the long regime {same} of {all} lines have the same answer
in both; {lost} hold in the papers and not here, {new} here and not in the papers; in {even} one
side is even.
"""
PAGES = """## All of it

{links}
"""


def results(runs: Mapping[str, Archive], summary: str = "", why: str = "") -> dict[str, str]:
    """Every page of claims and panels, by its path below docs; the first is results.md.

    runs: by their names, that of the tables first.
    summary, why: texts to begin with and to explain with, whose {words} are looked up.
    """
    template = template_of(runs)
    pages: dict[str, str] = {}
    for name in SHOWN:
        parts = [part for regime in REGIMES for part in _tables(name, regime, template.claims)]
        if parts:
            title = table_spec(name, "adult").title
            legend = READ.format(legend="\n\n".join(LEGEND))
            pages[f"results/{name}.md"] = "\n".join([f"# {title}\n", legend, *parts])
    drawn = [part for name in FIGURES for part in _figure(name, template.panels[name])]
    if drawn:
        pages["results/figures.md"] = "\n".join(["# Figures\n", *drawn])
    if why:
        pages["results/why.md"] = template.fill(why) + "\n"
    return {FIRST: _first(runs, template, summary, pages), **pages}


def _first(
    runs: Mapping[str, Archive], template: TextTemplate, summary: str, pages: Mapping[str, str]
) -> str:
    """What is read first: all datasets in one table, what it says, each alone, and the rest."""
    files = [f"[`{name}{END}`](records/{name}{END})" for name in runs]
    of_table1 = {regime: template.claims[in_regime("table1", regime)] for regime in REGIMES}
    parts = [HEAD, *overview(of_table1), MARKS.format(archives=", ".join(files))]
    parts += [template.fill(summary), ""] if summary else []
    both = {
        regime: verdicts(c for name in TABLES for c in template.claims[in_regime(name, regime)])
        for regime in REGIMES
    }
    if both["long"]:
        parts.append(SHORT.format(all=len(both["long"]), **counts(both["long"])))
        parts += _verdicts(both["long"], both["papers"])
    near = _ordered(template.claims["nearest-papers"])
    records = [r for run in runs.values() for r in run.records.values() if in_papers_regime(r)]
    parts += nearest_part(near, "results/nearest.md", records, ("adult", "bank", "compas", "mnist"))
    parts += [EACH, *dataset_tables(of_table1)]
    links = [f"- [{text.splitlines()[0].lstrip('# ')}]({path})" for path, text in pages.items()]
    parts.append(PAGES.format(links="\n".join(links)))
    return "\n".join(parts)


def in_papers_regime(record: Record) -> bool:
    """Whether a measurement is of a network of that regime."""
    of = record.config.get("of")
    return isinstance(of, dict) and of.get("regime") == "papers"


def template_of(runs: Mapping[str, Archive]) -> TextTemplate:
    """Claims by table, panels by figure, and all records, for texts to ask for."""
    every_claim, every_panel = merged(runs.values())
    names = [in_regime(name, regime) for name in SHOWN for regime in REGIMES]
    claims = {name: _of(every_claim, name) for name in names}
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


def _verdicts(answers: list[Verdict], short: list[Verdict]) -> Iterator[str]:
    """The lines of the long regime, and beside each what the papers' regime says."""
    beside = {(each.table, each.says, each.data): each for each in short}
    yield f"| | data | the papers | | in their regime | so | long | so |\n|{8 * '---|'}"
    for table, group in groupby(answers, lambda v: v.table):
        yield f"| **{table_spec(table, answers[0].data).title}** | | | | | | | |"
        some = list(group)
        order = list(dict.fromkeys(each.says for each in some))
        for each in sorted(some, key=lambda v: order.index(v.says)):
            whose = f"[{each.data}](results/{table}.md#{table}-{each.data})"
            other = beside.get((table, each.says, each.data))
            there = "not run | " if other is None else f"{other.ours} | {other.holds}"
            theirs = f"{each.theirs} | {each.papers}"
            yield f"| {each.says} | {whose} | {theirs} | {there} | {each.ours} | {each.holds} |"
    yield ""


def _tables(name: str, regime: str, every: Mapping[str, Sequence[Claim]]) -> Iterator[str]:
    """The tables of one regime, those of each dataset under an anchor of its own."""
    place = in_regime(name, regime)
    claims = every[place]
    datasets = [data for data in BENCHMARKS if any(claim.data == data for claim in claims)]
    if datasets:
        yield f"## {HEADINGS[regime]}\n"
    for data in datasets:
        table = make_table(table_spec(name, data), data, dataset_title(data), _ordered(claims))
        yield f'<a id="{place}-{data}"></a>\n\n### {dataset_title(data)}\n'
        yield markdown(table)


def _figure(name: str, panels: Sequence[Panel]) -> Iterator[str]:
    if not panels:
        return
    title = FIGURES[name].title
    yield f'<a id="{name}"></a>\n\n## {title}\n'
    yield f"![{title}](../records/{name}.png)\n"
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
