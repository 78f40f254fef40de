"""A table of one data set made of claims: winners, runners-up, and what is significant."""

from __future__ import annotations

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
    """Whether a recipe is R2ET or one of its kin."""
    return recipe.startswith(FAMILY)


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
    """Where a row stands in a table with an order: below the threshold last."""
    values = (claim.numbers[key].mean for key in spec.order)
    return (float(bool(claim.unreliable)), *(-1.0 if v is None else -v for v in values))


def _marks(part: Part, claims: list[Claim]) -> dict[str, tuple[str, bool]]:
    """Winner and runner-up of a column, and whether the winner's lead is significant."""
    if part.higher is None:
        return {}
    sign = 1.0 if part.higher else -1.0
    racing: list[tuple[float, Claim]] = []
    for claim in claims:
        value = claim.numbers[part.key].mean
        if value is not None and not claim.unreliable and claim.recipe != BASELINE:
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
    return Number(shown(part, some), told, mark, dagger, doubts=some.unreliable)


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
    settings = claims[0].settings
    seeds = (
        f"{settings['seeds']} seeds, mean ± half the range" if settings["seeds"] > 1 else "1 seed"
    )
    k = "" if spec.name == "table7" else f"k = {settings['k']}, "
    notes.append(f"{k}{seeds}; small: the papers' figure; {BASELINE} is no contestant.")
    small = {n: settings[n] for n in ("epochs", "rows") if settings[n] is not None}
    if small:
        told = ", ".join(f"{n} {v}" for n, v in small.items())
        notes.append(f"A quick look, not the papers' size: {told}.")
    made = [claim.made for claim in claims if claim.made]
    if made:
        one = made[0]
        hours = sum(m["seconds"] for m in made) / 3600
        notes.append(
            f"r2et {one['r2et']}, torch {one['torch']}, Python {one['python']}, {one['machine']}, "
            f"{max(m['date'] for m in made)}; {hours:.2f} processor hours of measuring."
        )
    return tuple(notes)
