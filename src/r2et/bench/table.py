"""A table of one data set made of claims: winners, runners-up, and what is significant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from r2et.bench.claim import Claim, Figures
from r2et.bench.spec import Part, Spec
from r2et.metrics import paired_test

FAMILY = ("r2et", "certified")
BASELINE = "linear"  # a constant ranking: printed, and not in the race


@dataclass(frozen=True)
class Number:
    """One number as it is shown. text: value and spread; reported: the papers' figure.

    mark: "best", "second" or "". dagger: significantly better than the best of the other kind.
    why: why there is no value. doubts: what speaks against it.
    """

    text: str = ""
    reported: str = ""
    mark: str = ""
    dagger: bool = False
    why: str = ""
    doubts: tuple[str, ...] = ()


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


def family(recipe: str) -> bool:
    """Whether a recipe is R2ET or one of its kin; a module:name of others is not."""
    return recipe.startswith(FAMILY) and ":" not in recipe


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


def _marks(part: Part, claims: list[Claim]) -> dict[str, tuple[str, bool]]:
    """Winner and runner-up of a column, and whether the winner's lead is significant."""
    if part.higher is None:
        return {}
    sign = 1.0 if part.higher else -1.0
    racing: list[tuple[float, Claim]] = []
    for claim in claims:
        some = claim.numbers[part.key]
        value, free = some.mean, not (claim.unreliable or some.below)
        if value is not None and free and claim.recipe != BASELINE:
            racing.append((sign * round(part.scale * value, part.digits), claim))
    racing.sort(key=lambda pair: -pair[0])
    found: dict[str, tuple[str, bool]] = {}
    # Nothing proved, nothing kept: no place to run up to.
    levels = sorted({value for value, _ in racing if value or not part.higher}, reverse=True)[:2]
    for value, claim in racing:
        if value in levels:
            found[claim.recipe] = (("best", "second")[levels.index(value)], False)
    first = {kin: [c for _, c in racing if family(c.recipe) is kin][:1] for kin in (True, False)}
    if first[True] and first[False]:
        ours, other = (first[kin][0] for kin in (True, False))
        a, b = (c.numbers[part.key].rows for c in (ours, other))
        if len(a) == len(b) > 1:
            test = paired_test(a, b)
            better = ours if sign * test.difference > 0 else other
            if test.significant:
                found[better.recipe] = (found.get(better.recipe, ("", False))[0], True)
    return found


def _number(part: Part, claim: Claim, marks: dict[str, tuple[str, bool]]) -> Number:
    some = claim.numbers[part.key]
    told = "" if some.reported is None else f"{some.reported:.{_paper_digits(part)}f}"
    if some.mean is None:
        return Number(reported=told, why=some.failed or "not measured")
    mark, dagger = marks.get(claim.recipe, ("", False))
    doubts = (*([some.below] if some.below else []), *some.unreliable)
    return Number(shown(part, some), told, mark, dagger, doubts=doubts)


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
    notes.append(f"{k}{seeds}{spread}; small: the papers' figure; {BASELINE} is no contestant.")
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
        kinds = {"r2et": "r2et ", "torch": "torch ", "python": "Python ", "machine": ""}
        same = {n: " or ".join(sorted({str(m[n]) for m in made})) for n in kinds}
        versions = ", ".join(f"{word}{same[n]}" for n, word in kinds.items())
        date = max(m["date"] for m in made)
        notes.append(f"{versions}, {date}; {hours:.2f} hours of one worker.")
    return tuple(notes)
