"""How long plans will take, judged by what like tasks took."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Any

from r2et.bench.cases import CASES
from r2et.bench.grid import ATTACKING
from r2et.bench.measures import MEASURES
from r2et.bench.record import Record, Records
from r2et.bench.schedule import Plan
from r2et.bench.task import Task

STEPPING = (*ATTACKING, "validation")
Key = tuple[str, ...]


def remaining(plans: Iterable[Plan], records: Records) -> list[Task]:
    """The tasks that plans would still have to do, as far as can be known before they are done.

    Which candidate a choice takes is not known: the first stands for it.
    """
    todo: dict[Task, None] = {}

    def want(task: Task) -> Record:
        if task not in todo:
            found = records.find(task.name, task.settings(), [n.name for n in task.needs])
            if found is not None and found.failed is None:
                return found
            for need in task.needs:
                want(need)
            todo[task] = None
        settings = task.settings()
        if settings["kind"] == "choice":
            return Record(settings, {"index": 0})
        return Record(settings, failed="not measured yet")

    for plan in plans:
        _follow(plan, want)
    return list(todo)


def _follow(plan: Plan, want: Callable[[Task], Record]) -> None:
    """Take a plan to its end with what there is in place of results."""
    with suppress(StopIteration):
        wanted = next(plan)
        while True:
            wanted = plan.send([want(task) for task in wanted])


class Estimate:
    """Seconds of a task, by what the nearest kind of task took.

    In this folder, or else where the package was made, times how much slower this machine is.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        seen: dict[Key, list[float]] = defaultdict(list)
        for record in records:
            if record.failed is None and _known(record):
                rate = record.made["seconds"] / units(record.task)
                for key in _keys(record.task):
                    seen[key].append(rate)
                epochs = record.measured.get("epochs_done")
                if epochs:
                    for key in _keys({**record.task, "epochs": epochs}):
                        seen[key].append(record.made["seconds"] / epochs)
        own = {key: median(rates) for key, rates in seen.items()}
        usual = typical()
        slower = [rate / usual[key] for key, rate in own.items() if usual.get(key)]
        scale = median(slower) if slower else 1.0
        self._rates = {**{key: scale * rate for key, rate in usual.items()}, **own}

    def seconds(self, task: Task) -> float:
        """What the nearest kind of task took, for as much work; a minute where none is known."""
        settings = task.settings()
        if settings["kind"] == "choice":
            return 0.0
        for key in _keys(settings):
            if key in self._rates:
                return self._rates[key] * units(settings)
        return 60.0

    @property
    def rates(self) -> dict[str, float]:
        """Seconds for a unit of work, by data / recipe / kind and by data / kind."""
        return {"/".join(key): float(f"{rate:.3g}") for key, rate in sorted(self._rates.items())}


def _known(record: Record) -> bool:
    """Whether this is a task of ours that took a time; a folder may hold others."""
    task = record.task
    of = task.get("of", task)
    good = isinstance(of, Mapping) and of.get("data") in CASES and "recipe" in of
    return good and task.get("kind") in (*MEASURES, "train") and "seconds" in record.made


def _keys(settings: Mapping[str, Any]) -> list[Key]:
    """What a task is like, the nearest first."""
    of, options = settings.get("of", settings), settings.get("options", {})
    words = [settings["kind"], options.get("explainer"), options.get("constraint")]
    if settings["kind"] == "train":
        words += ["again" if settings["retrain"] else None, "epoch" if settings["epochs"] else None]
    kind = "-".join(word for word in words if word)
    return [(of["data"], of["recipe"], kind), (of["data"], kind), (kind,)]


def units(settings: Mapping[str, Any]) -> float:
    """How much work a task is: epochs (or a training), rows, or rows times steps of an attack."""
    if settings["kind"] == "train":
        return float(settings["epochs"] or 1)
    rows = settings.get("rows") or 1
    if settings["kind"] == "clean":  # all test rows, whatever is asked
        return 1.0
    if settings["kind"] not in STEPPING:
        return float(rows)
    own = CASES[settings["of"]["data"]]
    return float(rows * (settings["options"].get("steps") or own.steps))


@cache
def typical() -> dict[Key, float]:
    """Rates of a full run on one core, which the package brings along."""
    text = files("r2et.bench").joinpath("typical.json").read_text(encoding="utf-8")
    return {tuple(name.split("/")): rate for name, rate in json.loads(text)["rates"].items()}
