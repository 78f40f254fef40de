"""The papers' choice among trainings (B.1.2), as a task that only reads records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from r2et.bench.task import Done, Given, Measure, Task


@final
@dataclass(frozen=True)
class Choice(Task):
    """Of candidates whose validation AUC reaches Vanilla's minus the slack, the highest P@k.

    Where none does, the one with the highest AUC, and what follows from it is unreliable. Of
    retrainings, one that kept no epoch is Vanilla, and is taken only where all are.
    """

    tried: tuple[Measure, ...]
    vanilla: Measure
    here = True

    @property
    def needs(self) -> tuple[Task, ...]:
        return (*self.tried, self.vanilla, *(measure.of for measure in self.tried))

    @property
    def title(self) -> str:
        return self.tried[0].title.replace("-validation", "-choice")

    def settings(self) -> dict[str, Any]:
        slack = self.tried[0].of.case.slack
        names = [measure.name for measure in self.tried]
        told = {"kind": "choice", "of": names, "vanilla": self.vanilla.name, "slack": slack}
        return {**told, **({"moved": True} if self.tried[0].of.retrain else {})}

    def do(self, given: tuple[Given, ...]) -> Done:
        every, count = [g.record.measured for g in given], len(self.tried)
        tried, vanilla, trained = every[:count], every[count], every[count + 1 :]
        plain = vanilla["auc_validation"]
        threshold = None if plain is None else plain - self.tried[0].of.case.slack
        found = []
        for measure, told in zip(self.tried, tried, strict=True):
            reached = told["auc_validation"]
            met = threshold is None or reached is None or reached >= threshold
            found.append({"changes": dict(measure.of.changes), **told, "met": met})
        moved = [told.get("epoch_kept") != -1 for told in trained]
        good = [i for i, entry in enumerate(found) if entry["met"]]
        good = [i for i in good if moved[i]] or good
        if good:
            index = max(good, key=lambda i: found[i]["precision"])
        else:
            index = max(range(len(found)), key=lambda i: found[i]["auc_validation"])
        measured = {"index": index, "met": bool(good), "threshold": threshold, "candidates": found}
        best = found[index]["auc_validation"]
        low = () if good else (f"validation AUC {best:.4f}, below the threshold {threshold:.4f}",)
        return Done(measured, low)
