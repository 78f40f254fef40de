"""A table as data: which numbers it has, and the plan that measures them for one row."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.bench.claim import Claim, SeedValues, made_with
from r2et.bench.figure_measurements import POINTS
from r2et.bench.grid import ALWAYS_RETRAINED, Grid, SelectedTrainings, select_trainings
from r2et.bench.measure_task import MeasureTask
from r2et.bench.nearest import select_nearest
from r2et.bench.papers import reported_value
from r2et.bench.record import Record
from r2et.bench.task import BenchTask

WAYS = {False: "scratch", True: "retrained"}
LOST = "{:.0%} of the rows lost their prediction to the attack and count as unmoved"
FEW_LOST = 0.02  # of the rows: as many move a mean by less than it is read to
COARSE = "taken at {} points of the way, so an upper estimate: a swap after the last is not seen"


@dataclass(frozen=True)
class ResultColumn:
    """One number of a table.

    title: as it is printed.
    kind: which of MEASUREMENTS.
    value: its name in what is measured.
    paper: table and place in the papers.
    higher: whether more is better; None where it is no matter of better.
    scale: what it is multiplied by to be shown.
    digits: as many are shown.
    options: of the measurement.
    retrain: whether it is of the training that starts from Vanilla.
    rows: name of the numbers of each row, for the paired test.
    tables_only: whether it is measured on tables alone.
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


def share(
    title: str, kind: str, value: str, place: tuple[str, int] | None, **more: Any
) -> ResultColumn:
    """A number in percent."""
    return ResultColumn(title, kind, value, place, scale=100, digits=1, **more)


def precision(title: str, kind: str, place: tuple[str, int] | None, **more: Any) -> ResultColumn:
    """P@k, with its rows."""
    return share(title, kind, "precision", place, rows="precision_rows", **more)


@dataclass(frozen=True)
class TableSpec:
    """A table.

    name, title: what it is called.
    columns: its numbers.
    order: keys of columns by which its rows are ordered; by default as the recipes are.
    about: what stands below it.
    nearest: whether settings are selected by how near they come to the papers' figures.
    regime: the only one that it is of; None: of any.
    open_to_all: whether its rows are anybody's networks, whose names say nothing of what they are.
    """

    name: str
    title: str
    columns: tuple[ResultColumn, ...]
    order: tuple[str, ...] = field(default=())
    about: str = ""
    nearest: bool = False
    regime: str | None = None
    open_to_all: bool = False

    def plan(
        self, grid: Grid, data: str, recipe: str
    ) -> Generator[list[BenchTask], list[Record], Claim]:
        """One row: select the settings, train all seeds, measure, and put the numbers together."""
        benchmark = grid.benchmark(data)
        ways: dict[bool, SelectedTrainings] = {}
        for again in sorted({column.retrain for column in self.columns}):
            if self.nearest:
                ways[again] = yield from select_nearest(grid, data, recipe)
            else:
                ways[again] = yield from select_trainings(grid, data, recipe, retrain=again)
        wanted: list[BenchTask] = []
        places: dict[str, slice] = {}
        refused: dict[str, str] = {}

        def want(name: str, tasks: Iterable[BenchTask]) -> None:
            before = len(wanted)
            wanted.extend(tasks)
            places[name] = slice(before, len(wanted))

        for again, way in ways.items():
            want(f"trained {again}", way.compared)
        for column in self.columns:
            why = self._refused(column, benchmark, recipe, ways[column.retrain])
            if why is not None:
                refused[column.key] = why
                continue
            options = grid.options_of(column.kind, **dict(column.options))
            trains = ways[column.retrain].trains
            want(column.key, [MeasureTask(train, column.kind, options) for train in trains])
        records = yield wanted
        trained = {again: records[places[f"trained {again}"]] for again in ways}
        below = {again: way.below(trained[again]) for again, way in ways.items()}
        main = min(ways)  # the row is of the training from scratch, where there is one
        numbers = {}
        for column in self.columns:
            reported, again = None, column.retrain
            if column.paper is not None:
                table, index = column.paper
                reported = reported_value(table, benchmark.paper, recipe, index)
            why = refused.get(column.key) or ways[again].unmoved(trained[again])
            if why:
                numbers[column.key] = SeedValues(reported=reported, failed=why)
            else:
                values = gathered(column, records[places[column.key]], reported)
                why = "; ".join(below[again]) if again is not main else ""
                numbers[column.key] = replace(values, below=why)
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
            settings={"k": benchmark.k, **grid.settings()},
            made=made_with(whole.values()),
            choices=tuple(way.choice for way in ways.values() if way.choice),
            candidates={WAYS[again]: list(way.tried) for again, way in ways.items() if way.tried},
            trained=tuple(dict.fromkeys(r.name for some in trained.values() for r in some)),
        )

    def _refused(
        self, column: ResultColumn, benchmark: BenchmarkConfig, recipe: str, way: SelectedTrainings
    ) -> str | None:
        """Why a number is not measured, if it is not."""
        if way.failed is not None:
            return way.failed
        both = any(each.retrain for each in self.columns)
        if recipe in ALWAYS_RETRAINED and both and not column.retrain:
            return f"{recipe} is for retraining"
        if column.tables_only and not benchmark.is_table:
            return "proofs are measured on tables"
        if column.kind == "strong" and not benchmark.strong_rows:
            return "too many features for StrongAttack on a small machine"
        return None


def _settings(ways: Mapping[bool, SelectedTrainings]) -> dict[str, Any]:
    """What was selected, of the retraining under names of its own."""
    scratch = dict(ways[False].changes) if False in ways else {}
    again = dict(ways[True].changes) if True in ways else {}
    return {**scratch, **{f"retrained {name}": value for name, value in again.items()}}


def gathered(column: ResultColumn, records: list[Record], reported: float | None) -> SeedValues:
    """A column's numbers from the records of its seeds."""
    failed = [r.failed for r in records if r.failed is not None]
    if failed:
        return SeedValues(reported=reported, failed=failed[0])
    name = column.value
    values = [r.measured[name] for r in records if r.measured.get(name) is not None]
    if len(values) < len(records):
        return SeedValues(reported=reported, failed="not defined on these rows")
    rows: tuple[float, ...] = ()
    if column.rows is not None and all(column.rows in r.measured for r in records):
        by_row = zip(*(r.measured[column.rows] for r in records), strict=True)
        rows = tuple(round(sum(seeds) / len(records), 4) for seeds in by_row)
    doubts = [why for r in records for why in r.unreliable]
    if column.value == "adversarial":
        fewest = min(r.measured["points"] for r in records)
        doubts += [COARSE.format(fewest)] if fewest < POINTS else []
    lost = max(r.measured.get("sensitivity", 0.0) for r in records)
    if column.rows is not None and lost > FEW_LOST:
        doubts.append(LOST.format(lost))
    names = tuple(r.name for r in records)
    ties = [r.measured.get("tied_rows", 0) / r.measured.get("rows", 1) for r in records]
    tied = round(max(ties), 4) if column.rows is not None else 0.0
    unreliable = tuple(dict.fromkeys(doubts))
    return SeedValues(tuple(values), reported, rows, names, unreliable=unreliable, tied=tied)
