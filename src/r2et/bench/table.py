"""A table of one data set made of claims: winners, runners-up, and what is significant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from r2et.bench.claim import Claim, Figures
from r2et.bench.groups import ADDITIONS, BASELINE, R2ET_VARIANTS
from r2et.bench.spec import Part, Spec
from r2et.metrics import paired_test


@dataclass(frozen=True)
class Number:
    """One number as it is shown. text: value and spread; reported: the papers' figure.

    mark: "best", "second" or "". dagger: "†" where the papers' R2ET and the other methods differ,
    on the better one; "‡" on an addition of ours that is better than all of them. why: why there
    is no value. doubts: what speaks against it. tied: it rests on ties, and is not in the race.
    """

    text: str = ""
    reported: str = ""
    mark: str = ""
    dagger: str = ""
    why: str = ""
    doubts: tuple[str, ...] = ()
    tied: bool = False


@dataclass(frozen=True)
class Row:
    """A recipe's numbers; below: its validation AUC does not reach the threshold."""

    recipe: str
    numbers: tuple[Number, ...]
    below: str
    claim: Claim


@dataclass(frozen=True)
class Table:
    """One data set's table."""

    name: str
    title: str
    data: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def make_table(spec: Spec, data: str, title: str, claims: Iterable[Claim]) -> Table:
    """A table of one data set from its claims."""
    some = [claim for claim in claims if claim.data == data]
    if spec.order:
        some.sort(key=lambda c: _rank(c, spec))
    marks = {part.key: _marks(part, some) for part in spec.parts}
    rows = tuple(
        Row(
            claim.recipe,
            tuple(_number(part, claim, marks[part.key]) for part in spec.parts),
            "; ".join(claim.unreliable),
            claim,
        )
        for claim in some
    )
    columns = tuple(part.title for part in spec.parts)
    return Table(spec.name, spec.title, title, columns, rows, _notes(spec, some))


def _rank(claim: Claim, spec: Spec) -> tuple[float, ...]:
    """Where a row stands in a table with an order: what was not measured after what was."""
    values = (claim.numbers[key].mean for key in spec.order)
    return (float(bool(claim.unreliable)), *(math.inf if v is None else -v for v in values))


Marks = dict[str, tuple[str, str]]


def _marks(part: Part, claims: list[Claim]) -> Marks:
    """Winner and runner-up of a column, and whose lead is significant."""
    if part.higher is None:
        return {}
    sign = 1.0 if part.higher else -1.0
    racing: list[tuple[float, Claim]] = []
    for claim in claims:
        value = claim.numbers[part.key].mean
        still = part.retrain and claim.recipe == "vanilla"  # retrained from itself
        if value is not None and claim.races(part.key) and not still and claim.recipe != BASELINE:
            racing.append((sign * round(part.scale * value, part.digits), claim))
    racing.sort(key=lambda pair: -pair[0])
    found: Marks = {}
    # Nothing proved, nothing kept: no place to run up to.
    levels = sorted({value for value, _ in racing if value or not part.higher}, reverse=True)[:2]
    for value, claim in racing:
        if value in levels:
            found[claim.recipe] = (("best", "second")[levels.index(value)], "")
    for recipe, dagger in _daggers(part.key, sign, [claim for _, claim in racing]).items():
        found[recipe] = (found.get(recipe, ("", ""))[0], dagger)
    return found


def _daggers(key: str, sign: float, racing: list[Claim]) -> dict[str, str]:
    """Whose lead is more than chance. racing: the best first."""
    groups: dict[str, list[Claim]] = {"variants": [], "additions": [], "others": []}
    for claim in racing:
        variant, added = claim.recipe in R2ET_VARIANTS, claim.recipe in ADDITIONS
        groups["variants" if variant else "additions" if added else "others"].append(claim)
    found = {}
    variants, others, additions = (groups[n][:1] for n in ("variants", "others", "additions"))
    if variants and others:
        first, second = sorted([variants[0], others[0]], key=racing.index)
        if leads(key, sign, first, second):
            found[first.recipe] = "†"
    rest = [claim for claim in racing if claim.recipe not in ADDITIONS]
    if additions and rest and leads(key, sign, additions[0], rest[0]):
        found[additions[0].recipe] = "‡"
    return found


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


def _number(part: Part, claim: Claim, marks: Marks) -> Number:
    some = claim.numbers[part.key]
    told = "" if some.reported is None else f"{some.reported:.{_paper_digits(part)}f}"
    if some.mean is None:
        return Number(reported=told, why=some.failed or "not measured")
    mark, dagger = marks.get(claim.recipe, ("", ""))
    doubts = (*([some.below] if some.below else []), *some.unreliable)
    tied = claim.tied(part.key)
    return Number(shown(part, some), told, mark, dagger, doubts=doubts, tied=tied)


def _paper_digits(part: Part) -> int:
    return 2 if part.kind == "faithfulness" else part.digits if part.digits else 1


def shown(part: Part, some: Figures) -> str:
    """Mean and spread over seeds."""
    assert some.mean is not None
    text = f"{part.scale * some.mean:.{part.digits}f}"
    if len(some.seeds) > 1:
        text += f" ± {part.scale * some.spread:.{part.digits}f}"
    return text


def _notes(spec: Spec, claims: list[Claim]) -> tuple[str, ...]:
    notes = [spec.about] if spec.about else []
    if not claims:
        return tuple(notes)
    settings = [claim.settings for claim in claims]
    counts = sorted({told["seeds"] for told in settings})
    seeds = " or ".join(map(str, counts)) + (" seed" if counts == [1] else " seeds")
    spread = "" if counts == [1] else ", mean ± half the range"
    k = "" if spec.name == "table7" else f"k = {settings[0]['k']}, "
    notes.append(f"{k}{seeds}{spread}.")
    for name in ("epochs", "rows", "steps", "weights"):
        asked = {str(told[name]): told[name] for told in settings if told.get(name)}
        if asked:
            said = f"Not as usual: {name} {', '.join(asked)}"
            few = [c.recipe for c in claims if c.settings.get(name)]
            of = "" if len(few) == len(claims) else f" of {', '.join(few)}"
            notes.append(f"{said}{of}.")
    made = [claim.made for claim in claims if claim.made]
    if made:
        hours = sum(m["seconds"] for m in made) / 3600
        kinds = {"r2et": "r2et ", "torch": "torch ", "python": "Python ", "machine": "", "cpu": ""}
        same = {n: " or ".join(sorted({str(m.get(n, "")) for m in made})) for n in kinds}
        same["cpu"] = same["cpu"] or "CPU not recorded"
        versions = ", ".join(f"{word}{same[n]}" for n, word in kinds.items())
        date = max(m["date"] for m in made)
        took = f"{hours:.2f} hours of one worker, trainings and choices included"
        notes.append(f"{versions}, {date}; {took}.")
    return tuple(notes)
