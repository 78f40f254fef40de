"""A table as data: which numbers it has, and the plan that measures them for one row."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from r2et.bench.cases import case
from r2et.bench.claim import Claim, Figures, made_with
from r2et.bench.grid import Grid, chosen
from r2et.bench.papers import figure
from r2et.bench.record import Record
from r2et.bench.task import Measure, Task

ATTACKING = ("er", "mse", "thickness", "saliency")  # kinds that take a number of steps


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
        ways = {}
        for again in {part.retrain for part in self.parts}:
            ways[again] = yield from chosen(grid, data, recipe, retrain=again)
        wanted: list[Task] = []
        places: dict[str, list[int]] = {}
        refused: dict[str, str] = {}
        for part in self.parts:
            way = ways[part.retrain]
            rows = own.strong_rows if part.kind == "strong" else 1
            if way.failed is not None:
                refused[part.key] = way.failed
            elif part.retrain and recipe == "sp":
                refused[part.key] = "softplus changes the network, so nothing is retrained"
            elif part.tables_only and not own.table:
                refused[part.key] = "proofs are measured on tables"
            elif not rows:
                refused[part.key] = "too many features for StrongAttack on a small machine"
            else:
                pick = grid.attack_options if part.kind in ATTACKING else grid.options
                options = pick(**dict(part.options))
                tasks = [Measure(train, part.kind, options) for train in way.trains]
                places[part.key] = list(range(len(wanted), len(wanted) + len(tasks)))
                wanted += tasks
        records = yield wanted
        numbers = {}
        for part in self.parts:
            told = None
            if part.paper is not None:
                told = figure(part.paper[0], own.paper, recipe, part.paper[1])
            if part.key in refused:
                numbers[part.key] = Figures(reported=told, failed=refused[part.key])
            else:
                some = [records[i] for i in places[part.key]]
                numbers[part.key] = gathered(part, some, told)
        way = ways.get(False) or ways[True]
        return Claim(
            table=self.name,
            data=data,
            recipe=recipe,
            chosen=dict(way.changes),
            unreliable=way.unreliable,
            numbers=numbers,
            settings={"k": own.k, "seeds": grid.seeds, "epochs": grid.epochs, "rows": grid.rows},
            made=made_with(records),
        )


def gathered(part: Part, records: list[Record], reported: float | None) -> Figures:
    """A part's numbers from the records of its seeds."""
    failed = [r.failed for r in records if r.failed is not None]
    if failed:
        return Figures(reported=reported, failed=failed[0])
    values = [r.measured[part.value] for r in records]
    if any(v is None for v in values):
        return Figures(reported=reported, failed="not defined on these rows")
    rows: tuple[float, ...] = ()
    if part.rows is not None:
        columns = zip(*(r.measured[part.rows] for r in records), strict=True)
        rows = tuple(round(sum(column) / len(records), 4) for column in columns)
    doubts = tuple(dict.fromkeys(why for r in records for why in r.unreliable))
    names = tuple(r.name for r in records)
    return Figures(tuple(values), reported, rows, names, unreliable=doubts)
