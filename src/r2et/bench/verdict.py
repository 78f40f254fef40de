"""What the papers' tables say, whether ours say the same, and by which numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from scipy.stats import spearmanr

from r2et.bench.cases import CASES
from r2et.bench.claim import Claim
from r2et.bench.spec import Part, Spec
from r2et.bench.tables import spec

FAMILY = ("r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh")
WORDS = ("yes", "more", "less", "even", "no")
EVEN = 0.5  # leads below that, in points, are none
OTHERS = ("wd", "sp", "est-h", "exact-h", "ssr", "at", "cl")
# A table's columns as the papers print them, or as we measured them: by part, by recipe.
Columns: TypeAlias = Mapping[str, Mapping[str, float]]
# What a statement is about as a number, and as it is shown; None where the columns have it not.
Found: TypeAlias = tuple[float, str] | None


@dataclass(frozen=True)
class Statement:
    """Something that a table says. agree: of the papers' number and ours, a word of WORDS."""

    says: str
    find: Callable[[Columns], Found]
    agree: Callable[[float, float], str]


@dataclass(frozen=True)
class Verdict:
    """A statement about one data set: the papers' numbers, ours, and whether they agree."""

    table: str
    says: str
    data: str
    theirs: str
    ours: str
    holds: str


def verdicts(claims: Iterable[Claim]) -> list[Verdict]:
    """All statements about data sets that the papers have, table by table."""
    some = list(claims)
    found = []
    for table in dict.fromkeys(claim.table for claim in some):
        sets = [d for d, c in CASES.items() if c.paper and any(x.data == d for x in some)]
        for data in sets:
            rows = {c.recipe: c for c in some if c.table == table and c.data == data}
            found += _verdicts(spec(table, data), data, rows)
    return found


def _verdicts(table: Spec, data: str, rows: Mapping[str, Claim]) -> list[Verdict]:
    theirs, ours = {}, {}
    for part in table.parts:  # of recipes that both have
        told, own = reported(part, rows), measured(part, rows)
        theirs[part.key] = {name: value for name, value in told.items() if name in own}
        ours[part.key] = {name: value for name, value in own.items() if name in told}
    found = []
    for each in statements(table):
        a, b = each.find(theirs), each.find(ours)
        if a is not None and b is not None:
            holds = each.agree(a[0], b[0])
            found.append(Verdict(table.name, each.says, data, a[1], b[1], holds))
    return found


def reported(part: Part, rows: Mapping[str, Claim]) -> dict[str, float]:
    """The papers' column."""
    told = {name: claim.numbers[part.key].reported for name, claim in rows.items()}
    return {name: value for name, value in told.items() if value is not None}


def measured(part: Part, rows: Mapping[str, Claim]) -> dict[str, float]:
    """Ours, of recipes that reach the accuracy threshold."""
    found = {}
    for name, claim in rows.items():
        some = claim.numbers[part.key]
        if some.mean is not None and not (claim.unreliable or some.below):
            found[name] = part.scale * some.mean
    return found


def statements(table: Spec) -> list[Statement]:
    """What there is to say of a table, from what its columns are."""
    told = [part for part in table.parts if part.paper is not None]
    if table.name in ("table2", "table7"):  # of the usual explanation and k Table 1 speaks
        told = [part for part in told if part.options]
    found = []
    for part in told:
        if part.value == "precision" and table.name in ("table1", "table2", "table7"):
            found.append(
                Statement(
                    f"{part.title}: the best variant of R2ET and the best other method",
                    _lead(part.key),
                    same_sign,
                )
            )
            found.append(
                Statement(f"{part.title}: its gain over Vanilla", _gain(part.key), as_large)
            )
        if part.kind == "faithfulness":
            said = f"{part.title}: R2ET's variants are no worse than Vanilla by 0.02; difference"
            sign = 1 if part.higher else -1
            found.append(Statement(said, _beyond_vanilla(part.key), no_worse(sign)))
    if table.name == "table5":
        said = "P@k follows thickness: rank correlation over methods"
        found.append(Statement(said, _rank_correlation("erattack", "thickness"), both_above(0.5)))
    if table.name == "table6":
        for attack in ("er", "mse"):
            said = f"{attack.upper()}: the most AUC that the attack costs a method"
            lost = _largest_drop(f"cauc,_{attack}", f"aauc,_{attack}")
            found.append(Statement(said, lost, at_most(0.02)))
    if table.name == "table8":
        said = "retraining instead of training from scratch: gain, mean over R2ET's variants"
        found.append(Statement(said, _mean_gain("scratch", "retrained"), as_large))
    return found


def best(values: Mapping[str, float], names: Iterable[str]) -> tuple[float, str] | None:
    """The highest value among some recipes, and whose it is."""
    return max(((values[name], name) for name in names if name in values), default=None)


def _lead(key: str) -> Callable[[Columns], Found]:
    def find(columns: Columns) -> Found:
        ours, other = (best(columns[key], names) for names in (FAMILY, OTHERS))
        if ours is None or other is None:
            return None
        shown = f"{ours[0]:.1f} `{ours[1]}`, {other[0]:.1f} `{other[1]}`"
        return round(ours[0], 1) - round(other[0], 1), shown

    return find


def _gain(key: str) -> Callable[[Columns], Found]:
    def find(columns: Columns) -> Found:
        ours, plain = best(columns[key], FAMILY), columns[key].get("vanilla")
        if ours is None or plain is None:
            return None
        return ours[0] - plain, f"{ours[0] - plain:+.1f}"

    return find


def _beyond_vanilla(key: str) -> Callable[[Columns], Found]:
    def find(columns: Columns) -> Found:
        column = columns[key]
        some = [column[n] - column["vanilla"] for n in FAMILY if {n, "vanilla"} <= column.keys()]
        return _mean(some, 2)

    return find


def _mean_gain(before: str, after: str) -> Callable[[Columns], Found]:
    def find(columns: Columns) -> Found:
        a, b = columns[before], columns[after]
        return _mean([b[n] - a[n] for n in FAMILY if n in a and n in b], 1)

    return find


def _rank_correlation(one: str, other: str) -> Callable[[Columns], Found]:
    def find(columns: Columns) -> Found:
        a, b = columns[one], columns[other]
        names = [n for n in (*FAMILY, *OTHERS, "vanilla") if n in a and n in b]
        if len(names) < 3:
            return None
        rho = float(spearmanr([a[n] for n in names], [b[n] for n in names]).statistic)
        return rho, f"{rho:.2f}"

    return find


def _largest_drop(before: str, after: str) -> Callable[[Columns], Found]:
    def find(columns: Columns) -> Found:
        a, b = columns[before], columns[after]
        drops = [(a[n] - b[n], n) for n in a if n in b]
        if not drops:
            return None
        worst, name = max(drops)
        return worst, f"{worst:.3f} `{name}`"

    return find


def _mean(values: list[float], digits: int) -> Found:
    if not values:
        return None
    found = sum(values) / len(values)
    return found, f"{found:+.{digits}f}"


def same_sign(theirs: float, ours: float) -> str:
    """The same one is ahead, or the other, or it is even on one side."""
    if min(abs(theirs), abs(ours)) < EVEN:
        return "even"
    return "yes" if (theirs > 0) is (ours > 0) else "no"


def as_large(theirs: float, ours: float) -> str:
    """The same way and about as far; more than twice, less than half; or the other way."""
    if theirs * ours <= 0:
        return "no"
    ratio = ours / theirs
    return "less" if ratio < 0.5 else "more" if ratio > 2 else "yes"


def both_above(bar: float) -> Callable[[float, float], str]:
    """Both reach the bar, or neither."""
    return lambda theirs, ours: "yes" if (theirs > bar) is (ours > bar) else "no"


def at_most(more: float) -> Callable[[float, float], str]:
    """Ours is larger by that much, or by less."""
    return lambda theirs, ours: "yes" if ours <= theirs + more else "no"


def no_worse(sign: int, slack: float = 0.02) -> Callable[[float, float], str]:
    """Both are no worse than nothing, or both are; sign: 1 where more is better."""
    return lambda theirs, ours: (
        "yes" if (sign * theirs > -slack) is (sign * ours > -slack) else "no"
    )
