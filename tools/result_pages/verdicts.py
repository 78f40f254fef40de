"""What the papers' tables say, whether ours say the same, and by which numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from scipy.stats import spearmanr

from r2et.bench.claim import Claim
from r2et.bench.paper_tables import table_spec
from r2et.bench.papers import OTHER_METHODS, R2ET_VARIANTS, paper_tables, reported_value
from r2et.bench.registry import BENCHMARKS
from r2et.bench.table_plan import ResultColumn, TableSpec

EVEN = 0.5  # leads and gains below that, in points, are none
# What follows from the papers' answer and ours.
AGREEMENT = {
    ("yes", "yes"): "here, too",
    ("no", "no"): "nor here",
    ("even", "even"): "even in both",
    ("yes", "no"): "not here",
    ("yes", "even"): "even here",
    ("no", "yes"): "here, but not in the papers",
    ("no", "even"): "even here, not in the papers",
    ("even", "yes"): "here; even in the papers",
    ("even", "no"): "not here; even in the papers",
}
# A table's columns as the papers print them, or as we measured them: by part, by recipe.
Columns: TypeAlias = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Evidence:
    """What decides a proposition: a number, as it is shown, and whose numbers it is made of."""

    value: float
    shown: str
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Statement:
    """A proposition about a table.

    says: the sentence.
    keys: of the columns it needs.
    find: the evidence in those.
    answer: yes, no or even, from the evidence.
    sized: whether of two that say yes the sizes are compared.
    """

    says: str
    keys: tuple[str, ...]
    find: Callable[[Columns], Evidence | None]
    answer: Callable[[float], str]
    sized: bool = False


@dataclass(frozen=True)
class Verdict:
    """A statement about one dataset: the papers' numbers and answer, ours, and what follows."""

    table: str
    says: str
    data: str
    theirs: str
    ours: str
    papers: str
    here: str
    holds: str


def verdicts(claims: Iterable[Claim]) -> list[Verdict]:
    """All statements about datasets that the papers have, table by table."""
    every = list(claims)
    answered: list[Verdict] = []
    for table in dict.fromkeys(claim.table for claim in every):
        sets = [d for d, c in BENCHMARKS.items() if c.paper and any(x.data == d for x in every)]
        for data in sets:
            rows = {c.recipe: c for c in every if c.table == table and c.data == data}
            answered += _verdicts(table_spec(table, data), data, rows)
    return answered


def _verdicts(table: TableSpec, data: str, rows: Mapping[str, Claim]) -> list[Verdict]:
    theirs = {column.key: reported(column, data) for column in table.columns}
    own = {column.key: measured(column, rows) for column in table.columns}
    answered = []
    for each in statements(table):
        if any(claim.tied(key) for claim in rows.values() for key in each.keys):
            continue  # what rests on ties is no answer
        a, b = each.find(theirs), each.find(own)
        if a is None or b is None:
            continue
        answers = each.answer(a.value), each.answer(b.value)
        holds = AGREEMENT[answers]
        if each.sized and answers == ("yes", "yes"):
            holds += size(a.value, b.value)
        lacks = [lacking(name, rows, each.keys) for name in a.of]
        ours = "; ".join([b.shown, *filter(None, lacks)])
        answered.append(Verdict(table.name, each.says, data, a.shown, ours, *answers, holds))
    return answered


def lacking(name: str, rows: Mapping[str, Claim], keys: Iterable[str]) -> str:
    """Why a recipe that is the papers' best is not among ours; empty where it is."""
    if name not in rows:
        return f"`{name}` was not run"
    claim = rows[name]
    if claim.unreliable or any(claim.numbers[key].below for key in keys):
        return f"`{name}` is below the threshold"
    failed = any(claim.numbers[key].mean is None for key in keys)
    return f"`{name}` has no number" if failed else ""


def reported(column: ResultColumn, data: str) -> dict[str, float]:
    """The papers' column, of all of their recipes, whatever was run here."""
    if column.paper is None:
        return {}
    table, index = column.paper
    paper, recipes = BENCHMARKS[data].paper, paper_tables().get(table, {})
    values = {name: reported_value(table, paper, name, index) for name in recipes}
    return {name: value for name, value in values.items() if value is not None}


def measured(column: ResultColumn, rows: Mapping[str, Claim]) -> dict[str, float]:
    """Ours, of recipes that are in the race."""
    values = {}
    for name, claim in rows.items():
        value = claim.numbers[column.key].mean
        if value is not None and claim.races(column.key):
            values[name] = column.scale * value
    return values


def statements(table: TableSpec) -> list[Statement]:
    """What there is to say of a table, from what its columns are."""
    columns = [column for column in table.columns if column.paper is not None]
    if table.name in ("table2", "table7"):  # of the usual explanation and k Table 1 speaks
        columns = [column for column in columns if column.options]
    every = []
    for column in columns:
        key, title = column.key, column.title
        if column.value == "precision" and table.name in ("table1", "table2", "table7"):
            text = f"{title}: a variant of R2ET leads the other methods"
            every.append(Statement(text, (key,), _lead(key), ahead))
            text = f"{title}: R2ET gains over Vanilla"
            every.append(Statement(text, (key,), _gain(key), ahead, sized=True))
        if column.kind == "faithfulness":
            text = f"{title}: R2ET's variants are within 0.02 of Vanilla or better (mean)"
            sign = 1 if column.higher else -1
            every.append(Statement(text, (key,), _beyond_vanilla(key), no_worse(sign)))
    if table.name == "table5":
        text = "P@k follows thickness: rank correlation over methods above 0.5"
        both = ("erattack", "thickness")
        every.append(Statement(text, both, _rank_correlation(*both), above(0.5)))
    if table.name == "table6":
        for attack in ("er", "mse"):
            text = f"{attack.upper()}: the attack costs no method more than 0.02 AUC"
            both = (f"cauc,_{attack}", f"aauc,_{attack}")
            every.append(Statement(text, both, _largest_drop(*both), at_most(0.02)))
    if table.name == "table8":
        text = "retraining R2ET's variants gains over training them from scratch (mean)"
        both = ("scratch", "retrained")
        every.append(Statement(text, both, _mean_gain(*both), ahead, sized=True))
    return every


def best(values: Mapping[str, float], names: Iterable[str]) -> tuple[float, str] | None:
    """The highest value among some recipes, and whose it is: of equal ones the first named."""
    known = [(values[name], name) for name in names if name in values]
    return max(known, key=lambda pair: pair[0], default=None)


def _lead(key: str) -> Callable[[Columns], Evidence | None]:
    def find(columns: Columns) -> Evidence | None:
        ours, other = (best(columns[key], names) for names in (R2ET_VARIANTS, OTHER_METHODS))
        if ours is None or other is None:
            return None
        shown = f"{ours[0]:.1f} `{ours[1]}`, {other[0]:.1f} `{other[1]}`"
        return Evidence(round(ours[0], 1) - round(other[0], 1), shown, (ours[1], other[1]))

    return find


def _gain(key: str) -> Callable[[Columns], Evidence | None]:
    def find(columns: Columns) -> Evidence | None:
        ours, plain = best(columns[key], R2ET_VARIANTS), columns[key].get("vanilla")
        if ours is None or plain is None:
            return None
        gain = round(ours[0], 1) - round(plain, 1)
        return Evidence(gain, f"{gain:+.1f} `{ours[1]}`", (ours[1],))

    return find


def _beyond_vanilla(key: str) -> Callable[[Columns], Evidence | None]:
    def find(columns: Columns) -> Evidence | None:
        column = columns[key]
        names = [n for n in R2ET_VARIANTS if {n, "vanilla"} <= column.keys()]
        return _mean({n: column[n] - column["vanilla"] for n in names}, 2)

    return find


def _mean_gain(before: str, after: str) -> Callable[[Columns], Evidence | None]:
    def find(columns: Columns) -> Evidence | None:
        a, b = columns[before], columns[after]
        return _mean({n: b[n] - a[n] for n in R2ET_VARIANTS if n in a and n in b}, 1)

    return find


def _rank_correlation(one: str, other: str) -> Callable[[Columns], Evidence | None]:
    def find(columns: Columns) -> Evidence | None:
        a, b = columns[one], columns[other]
        names = [n for n in (*R2ET_VARIANTS, *OTHER_METHODS, "vanilla") if n in a and n in b]
        if len(names) < 3:
            return None
        rho = float(spearmanr([a[n] for n in names], [b[n] for n in names]).statistic)
        return Evidence(rho, f"{rho:.2f}, {len(names)} methods")

    return find


def _largest_drop(before: str, after: str) -> Callable[[Columns], Evidence | None]:
    def find(columns: Columns) -> Evidence | None:
        a, b = columns[before], columns[after]
        drops = [(a[n] - b[n], n) for n in a if n in b]
        if not drops:
            return None
        worst, name = max(drops)
        return Evidence(worst, f"{worst:.3f} `{name}`", (name,))

    return find


def _mean(values: Mapping[str, float], digits: int) -> Evidence | None:
    if not values:
        return None
    mean = round(sum(values.values()) / len(values), digits)  # answered as it is shown
    return Evidence(mean, f"{mean:+.{digits}f} ({len(values)} variants)", tuple(values))


def ahead(value: float) -> str:
    """Of a lead or a gain in points."""
    return "even" if round(abs(value), 6) < EVEN else "yes" if value > 0 else "no"


def size(theirs: float, ours: float) -> str:
    """Of two gains: what is to be added to "here, too"."""
    ratio = ours / theirs
    much = "less than half" if ratio < 0.5 else "more than twice" if ratio > 2 else ""
    return f", {much} as much" if much else ""


def above(bar: float) -> Callable[[float], str]:
    """Whether the bar is passed."""
    return lambda value: "yes" if value > bar else "no"


def at_most(most: float) -> Callable[[float], str]:
    """Whether it is no more than that."""
    return lambda value: "yes" if value <= most else "no"


def no_worse(sign: int, slack: float = 0.02) -> Callable[[float], str]:
    """Whether a difference is none for the worse; sign: 1 where more is better."""
    return lambda value: "yes" if sign * value >= -slack else "no"
