"""The papers' selection among trainings (B.1.2), as a task that only reads records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from r2et.bench.measure_task import MeasureTask
from r2et.bench.task import BenchTask, TaskInput, TaskResult, task_config
from r2et.train.protocol import best_candidate, reaches


@final
@dataclass(frozen=True)
class SelectTask(BenchTask):
    """Of candidates whose validation AUC reaches Vanilla's minus the slack, the highest P@k.

    Where none does, the one with the highest AUC, and what follows from it is unreliable. Of
    retrainings, one that kept no epoch is Vanilla, and is taken only where all are; version 1 did
    not ask for that.
    """

    tried: tuple[MeasureTask, ...]
    vanilla: MeasureTask
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
        return task_config("choice", 2, of=names, vanilla=self.vanilla.name, slack=self.slack)

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
        choice = {"index": index, "met": met, "threshold": threshold, "candidates": candidates}
        if met:
            return TaskResult(choice)
        best = entries[index]["auc"]
        low = f"validation AUC {best:.4f}, below the threshold {threshold:.4f}"
        return TaskResult(choice, (low,))
