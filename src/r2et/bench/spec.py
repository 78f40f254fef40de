"""A table as data: which numbers it has, and the plan that measures them for one row."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from r2et.bench.case import Case
from r2et.bench.cases import case
from r2et.bench.claim import Claim, Figures, made_with
from r2et.bench.grid import ALWAYS_RETRAINED, Chosen, Grid, chosen
from r2et.bench.papers import figure
from r2et.bench.record import Record
from r2et.bench.task import Measure, Task

WAYS = {False: "scratch", True: "retrained"}
# Of a record that does not say how many points of the way were looked at.
COARSE = "taken at 10 points of the way, so an upper estimate: a swap after the last is not seen"


@dataclass(frozen=True)
class Part:
    """One number of a table. value: its name in what is measured. paper: table and place there.

    higher: whether more is better; None where it is no matter of better. scale: what it is
    multiplied by to be shown. rows: the numbers of each row, for the paired test.
    """

    title: str
    kind: str
    value: str
    paper: tuple[str, int] | None = None
    higher: bool | None = True
    scale: float = 1.0
    digits: int = 3
    options: tuple[tuple[str, Any], ...] = ()
    retrain: bool = False
    rows: str | None = None
    tables_only: bool = False

    @property
    def key(self) -> str:
        """Under which it is stored."""
        return self.title.lower().replace(" ", "_")


def share(title: str, kind: str, value: str, place: tuple[str, int] | None, **more: Any) -> Part:
    """A number in percent."""
    return Part(title, kind, value, place, scale=100, digits=1, **more)


def precision(title: str, kind: str, place: tuple[str, int] | None, **more: Any) -> Part:
    """P@k, with its rows."""
    return share(title, kind, "precision", place, rows="precision_rows", **more)


@dataclass(frozen=True)
class Spec:
    """A table: its title, its numbers, and the order of its rows (by default that of recipes)."""

    name: str
    title: str
    parts: tuple[Part, ...]
    order: tuple[str, ...] = field(default=())
    about: str = ""

    def plan(
        self, grid: Grid, data: str, recipe: str
    ) -> Generator[list[Task], list[Record], Claim]:
        """One row: choose the settings, train all seeds, measure, and put the numbers together."""
        own = case(data)
        ways: dict[bool, Chosen] = {}
        for again in sorted({part.retrain for part in self.parts}):
            ways[again] = yield from chosen(grid, data, recipe, retrain=again)
        wanted: list[Task] = []
        places: dict[str, slice] = {}
        refused: dict[str, str] = {}

        def want(name: str, tasks: Iterable[Task]) -> None:
            before = len(wanted)
            wanted.extend(tasks)
            places[name] = slice(before, len(wanted))

        for again, way in ways.items():
            want(f"trained {again}", way.compared)
        for part in self.parts:
            why = self._refused(part, own, recipe, ways[part.retrain])
            if why is not None:
                refused[part.key] = why
                continue
            options = grid.options_of(part.kind, **dict(part.options))
            trains = ways[part.retrain].trains
            want(part.key, [Measure(train, part.kind, options) for train in trains])
        records = yield wanted
        trained = {again: records[places[f"trained {again}"]] for again in ways}
        below = {again: way.below(trained[again]) for again, way in ways.items()}
        main = min(ways)  # the row is of the training from scratch, where there is one
        numbers = {}
        for part in self.parts:
            told = None
            if part.paper is not None:
                told = figure(part.paper[0], own.paper, recipe, part.paper[1])
            why = refused.get(part.key) or ways[part.retrain].unmoved(trained[part.retrain])
            if why:
                numbers[part.key] = Figures(reported=told, failed=why)
            else:
                found = gathered(part, records[places[part.key]], told)
                why = "; ".join(below[part.retrain]) if part.retrain is not main else ""
                numbers[part.key] = replace(found, below=why)
        measured = [r for key, place in places.items() if key in numbers for r in records[place]]
        for again, way in ways.items():  # Vanilla's own trainings count in Vanilla's row
            measured += [*trained[again][: len(way.trains)], *way.behind]
        whole = {record.name: record for record in measured}
        return Claim(
            table=self.name,
            data=data,
            recipe=recipe,
            chosen=_settings(ways),
            unreliable=below[main],
            numbers=numbers,
            settings={"k": own.k, **grid.told()},
            made=made_with(whole.values()),
            choices=tuple(way.choice for way in ways.values() if way.choice),
            candidates={WAYS[again]: list(way.tried) for again, way in ways.items() if way.tried},
            trained=tuple(dict.fromkeys(r.name for some in trained.values() for r in some)),
        )

    def _refused(self, part: Part, own: Case, recipe: str, way: Chosen) -> str | None:
        """Why a number is not measured, if it is not."""
        if way.failed is not None:
            return way.failed
        if recipe in ALWAYS_RETRAINED and any(p.retrain for p in self.parts) and not part.retrain:
            return f"{recipe} is for retraining"
        if part.tables_only and not own.table:
            return "proofs are measured on tables"
        if part.kind == "strong" and not own.strong_rows:
            return "too many features for StrongAttack on a small machine"
        return None


def _settings(ways: Mapping[bool, Chosen]) -> dict[str, Any]:
    """What was chosen, of the retraining under names of its own."""
    found = dict(ways[False].changes) if False in ways else {}
    again = dict(ways[True].changes) if True in ways else {}
    return {**found, **{f"retrained {name}": value for name, value in again.items()}}


def gathered(part: Part, records: list[Record], reported: float | None) -> Figures:
    """A part's numbers from the records of its seeds."""
    failed = [r.failed for r in records if r.failed is not None]
    if failed:
        return Figures(reported=reported, failed=failed[0])
    values = [r.measured[part.value] for r in records if r.measured.get(part.value) is not None]
    if len(values) < len(records):
        return Figures(reported=reported, failed="not defined on these rows")
    rows: tuple[float, ...] = ()
    if part.rows is not None and all(part.rows in r.measured for r in records):
        columns = zip(*(r.measured[part.rows] for r in records), strict=True)
        rows = tuple(round(sum(column) / len(records), 4) for column in columns)
    doubts = [why for r in records for why in r.unreliable]
    if part.value == "adversarial" and any("points" not in r.measured for r in records):
        doubts.append(COARSE)
    names = tuple(r.name for r in records)
    ties = [r.measured.get("tied_rows", 0) / r.measured.get("rows", 1) for r in records]
    tied = round(max(ties), 4) if part.rows is not None else 0.0
    told = tuple(dict.fromkeys(doubts))
    return Figures(tuple(values), reported, rows, names, unreliable=told, tied=tied)
