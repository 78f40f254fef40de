"""The first screen: the papers' eight datasets in one table, then a table of each, from claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from r2et.bench.claim import Claim, in_regime
from r2et.bench.paper_tables import TABLE_SPECS
from r2et.bench.papers import ADDITIONS, BASELINE, OTHER_METHODS, R2ET_VARIANTS, paper_tables
from r2et.bench.registry import dataset_title
from r2et.bench.table_plan import ResultColumn

# The papers' eight, as they call them, and what we have of each.
EIGHT = (
    ("adult", "Adult", "adult"),
    ("bank", "Bank", "bank"),
    ("compas", "COMPAS", "compas"),
    ("mnist", "MNIST, 3 against 8", "mnist"),
    ("cifar10", "CIFAR-10", "cifar10-10k"),
    ("roct", "ROCT", "oct-kermany-64"),
    ("adhd", "ADHD", "abide"),
    ("bp", "BP", "adhd-frontal"),
)
GROUPS: dict[str, tuple[str, ...]] = {
    "Vanilla": ("vanilla",),
    "R2ET, best variant": R2ET_VARIANTS,
    "others, best": OTHER_METHODS,
    "ours, best": ADDITIONS,
    "linear": (BASELINE,),
}
REGIMES = ("papers", "long")
KEYS = ("erattack", "strongattack", "proved", "cauc", "sets")
NOT_RUN = "not run"
COLUMNS: dict[str, ResultColumn] = {c.key: c for c in TABLE_SPECS["table1"].columns}
MEASURED = "ERAttack | Strong | proved | AUC | sets"
HEAD = f"| | papers | **in their regime**: {MEASURED} | **long**: {MEASURED} |\n|{12 * '---|'}"


OVERVIEW = ("Vanilla", "R2ET, best variant", "ours, best")
OVERVIEW_HEAD = (
    "| | papers | **in their regime** | Strong | AUC | **long** | Strong | AUC | proved |\n"
    f"|{9 * '---|'}"
)


@dataclass(frozen=True)
class ScreenRow:
    """One line of a dataset's table: a group of recipes, and its cells as text."""

    group: str
    cells: tuple[str, ...]


def best_claim(claims: Iterable[Claim], names: Sequence[str]) -> Claim | None:
    """Of some recipes the one that keeps most under ERAttack, of those that are compared.

    Where none is, one that was run, so that it can be said why there is no number.
    """
    own = sorted((c for c in claims if c.recipe in names), key=lambda c: names.index(c.recipe))
    racing = [claim for claim in own if claim.races("erattack")]
    if racing:
        return max(racing, key=lambda claim: claim.numbers["erattack"].mean or 0.0)
    return own[0] if own else None


def number(claim: Claim, key: str) -> str:
    """A claim's number as it is shown, or "-"."""
    values, column = claim.numbers.get(key), COLUMNS[key]
    if values is None or values.mean is None:
        return "-"
    return f"{column.scale * values.mean:.{column.digits}f}"


def regime_cells(claim: Claim | None, link: str) -> tuple[str, ...]:
    """The five cells of one regime; link: of the page that has the whole row."""
    if claim is None:
        return (NOT_RUN, *[""] * (len(KEYS) - 1))
    if claim.numbers["erattack"].mean is None:
        return (f"[no number]({link}), `{claim.recipe}`", *[""] * (len(KEYS) - 1))
    first = f"[{number(claim, 'erattack')}]({link}){_mark(claim)} `{claim.recipe}`"
    return (first, *(number(claim, key) for key in KEYS[1:]))


def papers_cell(paper: str, names: Sequence[str]) -> str:
    """The papers' best of some recipes under ERAttack."""
    rows = paper_tables()["table1"]
    printed = [(rows[n][paper][0], n) for n in names if n in rows and paper in rows[n]]
    values = [(value, name) for value, name in printed if value is not None]
    if not values:
        return ""
    value, name = max(values, key=lambda pair: pair[0])
    return f"{value:.1f} `{name}`"


def screen_rows(paper: str, data: str, claims: Mapping[str, Sequence[Claim]]) -> list[ScreenRow]:
    """A dataset's lines. claims: of Table 1, by regime."""
    lines = []
    for group, names in GROUPS.items():
        cells = [papers_cell(paper, names)]
        for regime in REGIMES:
            own = [claim for claim in claims[regime] if claim.data == data]
            place = f"results/table1.md#{in_regime('table1', regime)}-{data}"
            cells += regime_cells(best_claim(own, names), place)
        if any(cell not in ("", NOT_RUN) for cell in cells):
            lines.append(ScreenRow(group, tuple(cells)))
    return lines


def overview(claims: Mapping[str, Sequence[Claim]]) -> Iterator[str]:
    """All eight in one table, a line each: Vanilla, R2ET's best variant, ours."""
    yield OVERVIEW_HEAD
    for paper, title, data in EIGHT:
        printed = [papers_cell(paper, GROUPS[group]).split(" ")[0] for group in OVERVIEW[:2]]
        cells = [f"[{title}](#{data})", ", ".join(printed)]
        for regime in REGIMES:
            own = [claim for claim in claims[regime] if claim.data == data]
            best = [best_claim(own, GROUPS[group]) for group in OVERVIEW]
            shown = [claim and (number(claim, "erattack") + _mark(claim)) for claim in best]
            cells.append(_three(shown))
            keys = ("strongattack", "cauc", "proved")[: 3 if regime == "long" else 2]
            cells += [_three([claim and number(claim, key) for claim in best]) for key in keys]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _three(values: Sequence[str | None]) -> str:
    """Numbers side by side; nothing where none was measured."""
    return "" if set(values) <= {None, "-"} else ", ".join(value or "-" for value in values)


def _mark(claim: Claim) -> str:
    """Behind a number that is not compared."""
    return "" if claim.races("erattack") or number(claim, "erattack") == "-" else "°"


def dataset_tables(claims: Mapping[str, Sequence[Claim]]) -> Iterator[str]:
    """One table for each of the papers' eight datasets, or for what stands in for it."""
    for paper, title, data in EIGHT:
        stand_in = "" if dataset_title(data) == data else f", for which `{data}` stands in"
        seeds = {c.settings["seeds"] for r in REGIMES for c in claims[r] if c.data == data}
        counted = f" ({' or '.join(map(str, sorted(seeds)))} seeds)" if seeds else ""
        yield f'<a id="{data}"></a>\n'
        yield f"### {title}{stand_in}{counted.replace('(1 seeds', '(1 seed')}\n"
        yield HEAD
        for row in screen_rows(paper, data, claims):
            yield f"| {row.group} | {' | '.join(row.cells)} |"
        yield ""
