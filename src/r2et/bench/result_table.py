"""A table of one dataset made of claims: winners, runners-up, and what is significant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.bench.claim import Claim, SeedValues
from r2et.bench.papers import ADDITIONS, BASELINE, R2ET_VARIANTS
from r2et.bench.registry import find_benchmark
from r2et.bench.table_plan import ResultColumn, TableSpec
from r2et.errors import printable, require
from r2et.metrics import paired_test

REGIME_TITLES = {"papers": ", in the papers' regime"}


@dataclass(frozen=True)
class ResultCell:
    """One number as it is shown.

    text: value and spread.
    reported: the papers' figure.
    mark: "best", "second" or "".
    dagger: "†" where the papers' R2ET and the other methods differ, on the better one; "‡" on an
        addition of ours that is better than all of them.
    why: why there is no value.
    doubts: what speaks against it.
    tied: whether it rests on ties, and is not in the race.
    """

    text: str = ""
    reported: str = ""
    mark: str = ""
    dagger: str = ""
    why: str = ""
    doubts: tuple[str, ...] = ()
    tied: bool = False


@dataclass(frozen=True)
class ResultRow:
    """A recipe's numbers.

    below: its validation AUC does not reach the threshold.
    linear: whether it is a linear model, which is not in the race.
    """

    recipe: str
    numbers: tuple[ResultCell, ...]
    below: str
    claim: Claim
    linear: bool = False


@dataclass(frozen=True)
class ResultTable:
    """One dataset's table; open_to_all: of anybody's networks, not of recipes."""

    name: str
    title: str
    data: str
    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...]
    open_to_all: bool = False


def make_table(spec: TableSpec, data: str, title: str, claims: Iterable[Claim]) -> ResultTable:
    """A table of one dataset from its claims."""
    own = [claim for claim in claims if claim.data == data]
    for claim in own:
        _check_whole(claim, spec)
    if spec.order:
        own.sort(key=lambda c: _rank(c, spec))
    marks = {column.key: _marks(column, own, spec) for column in spec.columns}
    rows = tuple(
        ResultRow(
            claim.recipe,
            tuple(_cell(column, claim, marks[column.key]) for column in spec.columns),
            printable("; ".join(claim.unreliable)),
            claim,
            _is_linear(claim, spec),
        )
        for claim in own
    )
    columns = tuple(column.title for column in spec.columns)
    of = REGIME_TITLES.get(own[0].regime, "") if own else ""
    notes = tuple(map(printable, _notes(spec, own)))
    return ResultTable(
        spec.name, spec.title + of, title, columns, rows, notes, open_to_all=spec.open_to_all
    )


def _check_whole(claim: Claim, spec: TableSpec) -> None:
    """A claim from anywhere may lack what its table shows."""
    place = f"claim of {claim.recipe}, {claim.data},"
    keys = {column.key for column in spec.columns}
    lacking = sorted(keys - set(claim.numbers)) + sorted({"k", "seeds"} - set(claim.settings))
    expected = f"whole for {spec.name}"
    require(not lacking, "bench", place, expected, f"one without {', '.join(lacking)}")


def _is_linear(claim: Claim, spec: TableSpec) -> bool:
    """Whether its explanation is a constant: of recipes by name, of anybody's by what it is."""
    return bool(claim.settings.get("linear")) if spec.open_to_all else claim.recipe == BASELINE


def _rank(claim: Claim, spec: TableSpec) -> tuple[float, ...]:
    """Where a row stands in a table with an order: what was not measured after what was."""
    values = (claim.numbers[key].mean for key in spec.order)
    return (float(bool(claim.unreliable)), *(math.inf if v is None else -v for v in values))


Marks = dict[str, tuple[str, str]]


def _marks(column: ResultColumn, claims: list[Claim], spec: TableSpec) -> Marks:
    """Winner and runner-up of a column, and whose lead is significant."""
    if column.higher is None:
        return {}
    sign = 1.0 if column.higher else -1.0
    racing: list[tuple[float, Claim]] = []
    for claim in claims:
        value = claim.numbers[column.key].mean
        still = column.retrain and claim.recipe == "vanilla"  # retrained from itself
        if value is None or still or not claim.races(column.key) or _is_linear(claim, spec):
            continue
        racing.append((sign * round(column.scale * value, column.digits), claim))
    racing.sort(key=lambda pair: -pair[0])
    marks: Marks = {}
    # Nothing proved, nothing kept: no place to run up to.
    levels = sorted({value for value, _ in racing if value or not column.higher}, reverse=True)[:2]
    for value, claim in racing:
        if value in levels:
            marks[claim.recipe] = (("best", "second")[levels.index(value)], "")
    if spec.open_to_all:
        return marks
    for recipe, dagger in _daggers(column.key, sign, [claim for _, claim in racing]).items():
        marks[recipe] = (marks.get(recipe, ("", ""))[0], dagger)
    return marks


def _daggers(key: str, sign: float, racing: list[Claim]) -> dict[str, str]:
    """Whose lead is more than chance. racing: the best first."""
    groups: dict[str, list[Claim]] = {"variants": [], "additions": [], "others": []}
    for claim in racing:
        variant, added = claim.recipe in R2ET_VARIANTS, claim.recipe in ADDITIONS
        groups["variants" if variant else "additions" if added else "others"].append(claim)
    daggers = {}
    variants, others, additions = (groups[n][:1] for n in ("variants", "others", "additions"))
    if variants and others:
        first, second = sorted([variants[0], others[0]], key=racing.index)
        if leads(key, sign, first, second):
            daggers[first.recipe] = "†"
    rest = [claim for claim in racing if claim.recipe not in ADDITIONS]
    if additions and rest and leads(key, sign, additions[0], rest[0]):
        daggers[additions[0].recipe] = "‡"
    return daggers


def leads(key: str, sign: float, one: Claim, other: Claim) -> bool:
    """Whether one is better: by the paired test over rows, and with every seed, of two or more.

    Rows of a few networks say little about the next network: seeds that disagree are the answer.
    """
    a, b = (claim.numbers[key] for claim in (one, other))
    alike = len(a.seeds) == len(b.seeds) and len(a.rows) == len(b.rows)
    if not alike or min(len(a.seeds), len(a.rows)) < 2:
        return False
    every = all(sign * (x - y) > 0 for x, y in zip(a.seeds, b.seeds, strict=True))
    test = paired_test(a.rows, b.rows)
    return every and bool(test.significant) and sign * test.difference > 0


def _cell(column: ResultColumn, claim: Claim, marks: Marks) -> ResultCell:
    values = claim.numbers[column.key]
    reported = "" if values.reported is None else f"{values.reported:.{_paper_digits(column)}f}"
    if values.mean is None:
        return ResultCell(reported=reported, why=printable(values.failed or "not measured"))
    mark, dagger = marks.get(claim.recipe, ("", ""))
    doubts = tuple(map(printable, (*([values.below] if values.below else []), *values.unreliable)))
    tied = claim.tied(column.key)
    return ResultCell(shown(column, values), reported, mark, dagger, doubts=doubts, tied=tied)


def _paper_digits(column: ResultColumn) -> int:
    return 2 if column.kind == "faithfulness" else column.digits if column.digits else 1


def shown(column: ResultColumn, values: SeedValues) -> str:
    """Mean and spread over seeds."""
    assert values.mean is not None
    text = f"{column.scale * values.mean:.{column.digits}f}"
    if len(values.seeds) > 1:
        text += f" ± {column.scale * values.spread:.{column.digits}f}"
    return text


def regime_sentence(benchmark: BenchmarkConfig) -> str:
    """How long, by which threshold and with which point of the attack, in the papers' regime."""
    epochs = "one epoch" if benchmark.epochs == 1 else f"{benchmark.epochs} epochs"
    vanilla, threshold = benchmark.published or (0.0, 0.0)
    point = "last point"
    if benchmark.attack_keep == "last_kept":
        point += " at which the prediction is unchanged"
    theirs = f"their {threshold:.2f} is absolute, beside a Vanilla of {vanilla:.2f}"
    return (
        f"The papers' regime: {epochs}, the last above the threshold, which is Vanilla's AUC - "
        f"{benchmark.slack:g} ({theirs}); the papers' weights; attacks keep their {point}."
    )


def _notes(spec: TableSpec, claims: list[Claim]) -> tuple[str, ...]:
    notes = [spec.about] if spec.about else []
    if not claims:
        return tuple(notes)
    settings = [claim.settings for claim in claims]
    counts = sorted({each["seeds"] for each in settings})
    seeds = " or ".join(map(str, counts)) + (" seed" if counts == [1] else " seeds")
    spread = "" if counts == [1] else ", mean ± half the range"
    k = "" if spec.name == "table7" else f"k = {settings[0]['k']}, "
    notes.append(f"{k}{seeds}{spread}.")
    if settings[0].get("regime") == "papers":
        notes.append(regime_sentence(find_benchmark(claims[0].data, "papers")))
    for name in ("epochs", "rows", "steps", "weights"):
        asked = {str(each[name]): each[name] for each in settings if each.get(name)}
        if asked:
            note = f"Not as usual: {name} {', '.join(asked)}"
            few = [c.recipe for c in claims if c.settings.get(name)]
            of = "" if len(few) == len(claims) else f" of {', '.join(few)}"
            notes.append(f"{note}{of}.")
    made = [claim.made for claim in claims if claim.made]
    if made:
        hours = sum(m["seconds"] for m in made) / 3600
        kinds = {"r2et": "r2et ", "torch": "torch ", "python": "Python ", "machine": "", "cpu": ""}
        same = {n: " or ".join(sorted({str(m.get(n, "")) for m in made})) for n in kinds}
        same["cpu"] = same["cpu"] or "CPU not recorded"
        versions = ", ".join(f"{word}{same[n]}" for n, word in kinds.items())
        date = max(m["date"] for m in made)
        trained = any(claim.trained for claim in claims)
        took = f"{hours:.2f} hours of one worker"
        took += ", trainings and choices included" if trained else " without the training"
        notes.append(f"{versions}, {date}; {took}.")
    return tuple(notes)
