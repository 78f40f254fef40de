"""How near we come to each figure of the papers' Table 1, and with which setting and length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from r2et.bench.claim import Claim
from r2et.bench.papers import reported_value
from r2et.bench.record import Record
from r2et.bench.registry import find_benchmark
from r2et.bench.select_task import NEAR, nearest_candidate

INTRO = """## How near we come to the papers' Table 1

Of each of their figures under ERAttack: ours, theirs, and the epochs of training, of the setting
that comes nearest in [their regime]({page}), whose table has its weights and its AUC. {summary}
° below the accuracy threshold.

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


def nearest_tried(records: Iterable[Record], data: str) -> list[tuple[int, str]]:
    """Of each recipe what came nearest on validation rows: the column, and the entry.

    For datasets whose nearest settings were not measured on test rows.
    """
    own = find_benchmark(data, "papers")
    by_recipe: dict[str, list[Record]] = {}
    for record in records:
        of = record.config.get("of")
        if record.config["name"] == "validation" and isinstance(of, dict) and of["data"] == data:
            by_recipe.setdefault(of["recipe"], []).append(record)
    usual = [r for r in by_recipe.get("vanilla", ()) if r.config["of"]["epochs"] == own.epochs]
    if not usual:
        return []
    threshold = usual[0].measured["auc_validation"] - own.slack
    entries = []
    for recipe, tried in by_recipe.items():
        figure = reported_value("table1", own.paper, recipe, 0)
        if figure is None:
            continue
        some = [{**r.measured, "met": r.measured["auc_validation"] >= threshold} for r in tried]
        place, met = nearest_candidate(some, figure / 100)
        kept, config = 100 * some[place]["precision"], tried[place].config["of"]
        length = "1 epoch" if config["epochs"] == 1 else f"{config['epochs']} epochs"
        text = f"`{recipe}`{'' if met else '°'} {kept:.1f} ({figure}), {length}"
        far = abs(round(kept, 1) - figure) > 100 * NEAR
        entries.append((2 if far else 0 if met else 1, text))
    return sorted(entries, key=lambda each: each[1])


def nearest_part(
    claims: Sequence[Claim], page: str, records: Iterable[Record] = (), also: Sequence[str] = ()
) -> Iterator[str]:
    """A line for each dataset. claims: of the table "nearest".

    also: datasets of which records are all there is, on validation rows.
    """
    datasets = list(dict.fromkeys(claim.data for claim in claims))
    places = [column_of(claim) for claim in claims]
    count = sum(place is not None for place in places)
    if not count:
        return
    summary = (
        f"On test rows {places.count(0)} of {count} come out within 5 points, {places.count(1)} "
        f"more only where the AUC is too low, and {places.count(2)} do not."
    )
    yield INTRO.format(page=page, summary=summary)
    for data in datasets:
        cells: list[list[str]] = [[], [], []]
        for claim in claims:
            place = column_of(claim)
            if claim.data == data and place is not None:
                cells[place].append(entry(claim))
        yield f"| [{data}]({page}#nearest-papers-{data}) | {' | '.join(map('; '.join, cells))} |"
    kept = list(records)
    for data in (name for name in also if name not in datasets):
        cells = [[], [], []]
        for place, text in nearest_tried(kept, data):
            cells[place].append(text)
        if any(cells):
            yield f"| {data}, validation rows, one seed | {' | '.join(map('; '.join, cells))} |"
    yield ""
