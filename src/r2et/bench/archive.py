"""Records to be kept with a page of results: all of one data set and recipe in one file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from r2et.bench.method import title_of
from r2et.bench.record import Record, digest, parse
from r2et.bench.schedule import Plan
from r2et.bench.task import Task
from r2et.files import write

# Settings that older records do not tell: of thickness, which took 10 points; of the choice among
# retrainings, which did not ask whether an epoch was kept.
NEWER = ("points", "moved")


def pack(source: Path, folder: Path) -> None:
    """Add the records of a run to DATA-RECIPE.jsonl, a line each; one of the same name is replaced.

    Networks stay behind, and so does the name of the machine.
    """
    groups: dict[str, dict[str, Record]] = defaultdict(dict)
    for path in sorted((source / "records").glob("*.json")):
        record = parse(path)
        groups[_group(record)][record.name] = record
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in groups.items():
        place = folder / f"{name}.jsonl"
        kept = {**{r.name: r for r in _lines(place)}, **found}
        text = "".join(_line(kept[key]) for key in sorted(kept))
        write(place, text.encode())


def unpack(folder: Path) -> dict[str, Record]:
    """Every record of an archive by its name."""
    files = sorted(folder.glob("*.jsonl"))
    return {record.name: record for place in files for record in _lines(place)}


def replay(plan: Plan, archive: Mapping[str, Record]) -> Any:
    """What a plan makes of records that are there; KeyError names one that is not."""
    try:
        wanted = next(plan)
        while True:
            wanted = plan.send([kept_as(task, archive) for task in wanted])
    except StopIteration as end:
        return end.value


def kept_as(task: Task, archive: Mapping[str, Record]) -> Record:
    """A task's record, or that of the same task before the settings in NEWER were told."""
    if task.name not in archive:
        older = {n: value for n, value in task.settings().items() if n not in NEWER}
        return archive[f"{task.title}-{digest(older)}"]
    return archive[task.name]


def _group(record: Record) -> str:
    """DATA-RECIPE; a choice names neither but in the measurements that it is of."""
    task = record.task
    if task["kind"] == "choice":
        return record.name.rpartition("-choice-")[0]
    of = task.get("of", task)
    return f"{of['data']}-{title_of(of['recipe'])}"


def _line(record: Record) -> str:
    told = record.told()
    told["made"] = {key: value for key, value in record.made.items() if key != "host"}
    return json.dumps({"name": record.name, **told}, allow_nan=False, ensure_ascii=False) + "\n"


def _lines(place: Path) -> Iterable[Record]:
    if not place.exists():
        return []
    lines = place.read_text(encoding="utf-8").split("\n")  # a text may hold other line ends
    return [Record.of(told, told["name"]) for told in map(json.loads, filter(None, lines))]
