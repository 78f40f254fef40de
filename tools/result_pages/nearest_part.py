"""How near we come to each figure of the papers' Table 1, and with which setting and length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from r2et.bench.claim import Claim
from r2et.bench.registry import find_benchmark
from r2et.bench.select_task import NEAR

INTRO = """## How near we come to the papers' Table 1

Of each of their figures under ERAttack: ours, theirs, and the epochs of training, of the setting
that comes nearest in [their regime]({page}), whose table has its weights and its AUC. {summary}

| data | within 5 points | within 5 points, below the accuracy threshold | not within 5 points |
|---|---|---|---|"""


def epochs_of(claim: Claim) -> int:
    """How long the chosen setting was trained."""
    usual = find_benchmark(claim.data, "papers").epochs or 0
    return int(claim.chosen.get("epochs", usual))


def difference(claim: Claim) -> float | None:
    """Ours less theirs, in points; None where one of them is missing."""
    values = claim.numbers["erattack"]
    if values.mean is None or values.reported is None:
        return None
    return round(100 * values.mean, 1) - values.reported


def column_of(claim: Claim) -> int | None:
    """0: reproduced; 1: only with too low an accuracy; 2: not."""
    apart = difference(claim)
    if apart is None:
        return None
    if abs(apart) > 100 * NEAR:
        return 2
    return 1 if claim.unreliable else 0


def entry(claim: Claim) -> str:
    """`r2et` 94.0 (92.1), 1 epoch"""
    values, epochs = claim.numbers["erattack"], epochs_of(claim)
    assert values.mean is not None
    length = "1 epoch" if epochs == 1 else f"{epochs} epochs"
    mark = "°" if claim.unreliable else ""
    return f"`{claim.recipe}`{mark} {100 * values.mean:.1f} ({values.reported}), {length}"


def nearest_part(claims: Sequence[Claim], page: str) -> Iterator[str]:
    """A line for each dataset. claims: of the table "nearest"."""
    datasets = list(dict.fromkeys(claim.data for claim in claims))
    places = [column_of(claim) for claim in claims]
    count = sum(place is not None for place in places)
    if not count:
        return
    summary = (
        f"{places.count(0)} of {count} come out within 5 points, {places.count(1)} more only where "
        f"the AUC is too low, and {places.count(2)} do not."
    )
    yield INTRO.format(page=page, summary=summary)
    for data in datasets:
        cells: list[list[str]] = [[], [], []]
        for claim in claims:
            place = column_of(claim)
            if claim.data == data and place is not None:
                cells[place].append(entry(claim))
        yield f"| [{data}]({page}#nearest-papers-{data}) | {' | '.join(map('; '.join, cells))} |"
    yield ""
