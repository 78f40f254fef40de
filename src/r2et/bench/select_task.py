"""The papers' selection among trainings (B.1.2), as a task that only reads records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from r2et.bench.measure_task import MeasureTask
from r2et.bench.task import BenchTask, TaskInput, TaskResult, task_config
from r2et.train.protocol import best_candidate, reaches

NEAR = 0.05  # of P@k, within which a figure counts as reproduced


@final
@dataclass(frozen=True)
class SelectTask(BenchTask):
    """Of candidates whose validation AUC reaches Vanilla's minus the slack, the highest P@k.

    Where none does, the one with the highest AUC, and what follows from it is unreliable. Of
    retrainings, one that kept no epoch is Vanilla, and is taken only where all are; version 1 did
    not ask for that.

    aim: a P@k to come near to instead. Of candidates that reach the threshold the nearest, if it is
    within five points or no other is nearer than that; or else the nearest of all.
    """

    tried: tuple[MeasureTask, ...]
    vanilla: MeasureTask
    aim: float | None = None
    here = True

    @property
    def needs(self) -> tuple[BenchTask, ...]:
        return (*self.tried, self.vanilla, *(measure.of for measure in self.tried))

    @property
    def title(self) -> str:
        return self.tried[0].title.replace("-validation", "-choice")

    @property
    def slack(self) -> float:
        return self.tried[0].of.benchmark.slack

    def config(self) -> dict[str, Any]:
        names = [measure.name for measure in self.tried]
        of = {"of": names, "vanilla": self.vanilla.name, "slack": self.slack}
        return task_config("choice", 2, **of, aim=self.aim)

    def do(self, inputs: tuple[TaskInput, ...]) -> TaskResult:
        every, count = [entry.record.measured for entry in inputs], len(self.tried)
        tried, vanilla, trained = every[:count], every[count], every[count + 1 :]
        plain = vanilla["auc_validation"]
        threshold = None if plain is None else plain - self.slack
        candidates, entries = [], []
        for task, measured in zip(self.tried, tried, strict=True):
            reached = measured["auc_validation"]
            met = reaches(reached, threshold)
            candidates.append({"changes": dict(task.of.changes), **measured, "met": met})
            entries.append({"auc": reached, "precision": measured["precision"], "met": met})
        moved = [entry.get("epoch_kept") != -1 for entry in trained]
        index, met = best_candidate(entries, moved)
        if self.aim is not None:
            index, met = nearest_candidate(entries, self.aim)
        choice = {"index": index, "met": met, "threshold": threshold, "candidates": candidates}
        if met:
            return TaskResult(choice)
        best = candidates[index]["auc_validation"]
        low = f"validation AUC {best:.4f}, below the threshold {threshold:.4f}"
        return TaskResult(choice, (low,))


def distance(entry: Mapping[str, Any], aim: float) -> float:
    """How far an entry's precision lies from a figure."""
    return abs(float(entry["precision"]) - aim)


def nearest_candidate(entries: Sequence[Mapping[str, Any]], aim: float) -> tuple[int, bool]:
    """Place of the entry nearest to a P@k, and whether it reaches the threshold."""
    order = sorted(range(len(entries)), key=lambda i: distance(entries[i], aim))
    above = [i for i in order if entries[i]["met"]]
    if above and (distance(entries[above[0]], aim) <= NEAR or above[0] == order[0]):
        return above[0], True
    return order[0], bool(entries[order[0]]["met"])
