"""What each part of `r2et bench all` costs, by the seconds of the records that are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from r2et.bench.agenda import AgendaItem
from r2et.bench.grid import Grid
from r2et.bench.record import Record
from r2et.bench.run import plans_of
from r2et.bench.schedule import Plan
from r2et.bench.task import BenchTask
from r2et.errors import R2ETError
from result_pages.archive import Archive


def recorded_costs(items: Iterable[AgendaItem], runs: Mapping[str, Archive]) -> dict[str, float]:
    """Seconds of one worker for each item, by its title, beyond what items before it left.

    Only of items whose records are all there. runs: that of the tables first.
    """
    together, seen = _together(runs), set[str]()
    usual = _usual_seconds(together.records.values())
    costs = {}
    for item in items:
        records = _behind(item, together)
        if records is not None:
            new = [record for name, record in records.items() if name not in seen]
            seen |= records.keys()
            costs[item.title] = round(sum(_seconds(record, usual) for record in new), 1)
    return costs


def _together(runs: Mapping[str, Archive]) -> Archive:
    whole = Archive()
    for archive in reversed(list(runs.values())):  # the first has the last word
        whole.records |= archive.records
        whole.claims |= archive.claims
        whole.panels |= archive.panels
    return whole


def _behind(item: AgendaItem, archive: Archive) -> dict[str, Record] | None:
    """Every record that an item needs; None where one is missing.

    Where larger weights were not tried, those that were are what there is to go by.
    """
    for beyond in (True, False):
        names: dict[str, Record] = {}
        note = _Noting(archive, names)
        try:
            for plan in plans_of(item.name, item.grid(Grid(beyond=beyond))):
                _drive(plan, note)
        except (KeyError, R2ETError):  # not recorded, or of data that are not here
            continue
        return names
    return None


@dataclass(frozen=True)
class _Noting:
    """Finds the record of a task, and notes it with all that the task needs."""

    archive: Archive
    names: dict[str, Record]

    def __call__(self, task: BenchTask) -> Record:
        record = self.archive.find(task)
        self.names[record.name] = record
        for need in task.needs:
            self(need)
        return record


def _drive(plan: Plan, note: _Noting) -> None:
    try:
        wanted = next(plan)
        while True:
            wanted = plan.send([note(task) for task in wanted])
    except StopIteration:
        return


Kind = tuple[str, str]


def _kind(record: Record) -> Kind:
    of = record.config.get("of")
    inner = of if isinstance(of, dict) else record.config
    return str(record.config["name"]), str(inner.get("data"))


def _usual_seconds(records: Iterable[Record]) -> dict[Kind, float]:
    """The median of what the same measurement of the same data took."""
    every: dict[Kind, list[float]] = defaultdict(list)
    for record in records:
        every[_kind(record)].append(float(record.made.get("seconds", 0.0)))
    return {kind: sorted(values)[len(values) // 2] for kind, values in every.items()}


def _seconds(record: Record, usual: Mapping[Kind, float]) -> float:
    """Of the processor where that is known; else at most what is usual, as a machine is shared."""
    own = record.made.get("processor_seconds")
    if own is not None:
        return float(own)
    taken = float(record.made.get("seconds", 0.0))
    return taken if record.config["name"] == "train" else min(taken, usual[_kind(record)])
