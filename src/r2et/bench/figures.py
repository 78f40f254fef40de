"""The papers' figures: what is measured for each, and how a panel of it is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

from r2et.bench.case import CONSTRAINED, changes
from r2et.bench.cases import case
from r2et.bench.claim import made_with
from r2et.bench.grid import Grid, chosen
from r2et.bench.panel import Panel, PanelPlan, first, panel
from r2et.bench.task import Measure, Task, Train


@dataclass(frozen=True)
class Picture(ABC):
    """A figure. datasets, recipes: those of the papers that can be had here, by default."""

    name: str
    title: str
    datasets: tuple[str, ...]
    recipes: tuple[str, ...]

    @abstractmethod
    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        """Measure what one panel shows."""


@final
@dataclass(frozen=True)
class Correlations(Picture):
    """Steps to the first flip against thickness and Hessian norm (Figures 2 and 4)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        train = yield from first(grid, self.name, data, recipe)
        if isinstance(train, Panel):
            return train
        options = grid.attack_options(hessian=case(data).table)
        names = ["adversarial_rows", "gaussian_rows", "gaussian_least_rows", "first_flip_rows"]
        names += ["hessian_rows"] if case(data).table else []
        return (yield from panel(self.name, train, "thickness", options, names))


@final
@dataclass(frozen=True)
class Maps(Picture):
    """Saliency maps before and after ERAttack (Figures 3 and 5)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        train = yield from first(grid, self.name, data, recipe)
        if isinstance(train, Panel):
            return train
        options = tuple(o for o in grid.attack_options() if o[0] != "rows")
        found = yield from panel(self.name, train, "saliency", options, ("shown", "shape"))
        return found


@final
@dataclass(frozen=True)
class Constrained(Picture):
    """P@k against the share of changed predictions, by constraint and step size (Figure 6)."""

    shares: tuple[float, ...] = (0.25, 0.5, 1.0)

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        train = yield from first(grid, self.name, data, recipe)
        if isinstance(train, Panel):
            return train
        asked: list[tuple[str, str, float]] = [
            (kind, constraint, share)
            for kind in ("er", "mse")
            for constraint in CONSTRAINED
            for share in self.shares
        ]
        wanted: list[Task] = [
            Measure(train, kind, grid.attack_options(constraint=constraint, share=share))
            for kind, constraint, share in asked
        ]
        records = yield wanted
        points = [
            {
                "attack": kind,
                "constraint": constraint,
                "share": share,
                "precision": record.measured["precision"],
                "sensitivity": record.measured["sensitivity"],
            }
            for (kind, constraint, share), record in zip(asked, records, strict=True)
            if record.failed is None
        ]
        failed = next((r.failed for r in records if r.failed is not None), None)
        told = tuple(r.name for r in records)
        why = None if points else failed
        return Panel(self.name, data, recipe, {"points": points}, told, why, made_with(records))


@final
@dataclass(frozen=True)
class TradeOff(Picture):
    """Accuracy against P@k, under ERAttack and StrongAttack, with the Pareto front (Figure 7)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        found = yield from chosen(grid, data, recipe)
        if found.failed is not None:
            return Panel(self.name, data, recipe, failed=found.failed)
        kinds = ("clean", "er", "strong") if case(data).strong_rows else ("clean", "er")
        wanted: list[Task] = []
        for kind in kinds:
            pick = grid.attack_options if kind == "er" else grid.options
            wanted += [Measure(train, kind, pick()) for train in found.trains]
        records = yield wanted
        failed = next((r.failed for r in records if r.failed is not None), None)
        if failed is not None:
            return Panel(self.name, data, recipe, failed=failed)
        count = len(found.trains)
        parts = {kind: records[i * count : (i + 1) * count] for i, kind in enumerate(kinds)}
        values: dict[str, Any] = {"auc": [r.measured["auc"] for r in parts["clean"]]}
        values["auc_attacked"] = [r.measured["auc_attacked"] for r in parts["er"]]
        for kind in kinds[1:]:
            values[kind] = [r.measured["precision"] for r in parts[kind]]
        told = tuple(r.name for r in records)
        return Panel(self.name, data, recipe, values, told, made=made_with(records))


@final
@dataclass(frozen=True)
class Magnitudes(Picture):
    """Gradient magnitudes in descending order (Figure 8)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        train = yield from first(grid, self.name, data, recipe)
        if isinstance(train, Panel):
            return train
        return (yield from panel(self.name, train, "sorted", grid.options(), ("sorted_rows",)))


@final
@dataclass(frozen=True)
class Pairs(Picture):
    """P@k against the number k' of pairs that a penalty looks at (Figure 9)."""

    weight: float = 0.03

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        kind = "closest" if "-mm" in recipe else "anchor"
        counts = list(range(1, case(data).k + 1))
        trains = [
            Train(
                data,
                recipe,
                changes(pairs=kind, count=count, weight=self.weight),
                seed,
                epochs=grid.epochs,
            )
            for count in counts
            for seed in range(grid.seeds)
        ]
        options = grid.attack_options()
        found = yield from panel(self.name, trains[0], "er", options, ("precision",), trains)
        if found.failed is not None:
            return found
        flat = found.values["precision"] if len(trains) > 1 else [found.values["precision"]]
        seeds = [flat[i : i + grid.seeds] for i in range(0, len(flat), grid.seeds)]
        values = {"counts": counts, "precision": seeds}
        return Panel(self.name, data, recipe, values, found.records, made=found.made)


@final
@dataclass(frozen=True)
class Lengths(Picture):
    """P@k under ERAttack, at its best and its last point, against epochs of training.

    The papers print neither their epochs nor which point they keep; this shows what hangs on both.
    """

    epochs: tuple[int, ...] = (1, 2, 5, 10, 20, 50)

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        trains = [
            Train(data, recipe, (), seed, epochs=count)
            for count in ((grid.epochs,) if grid.epochs else self.epochs)
            for seed in range(grid.seeds)
        ]
        wanted: list[Task] = [Measure(train, "clean", grid.options()) for train in trains]
        wanted += [Measure(train, "er", grid.attack_options()) for train in trains]
        wanted += [Measure(train, "er", grid.attack_options(keep="last")) for train in trains]
        records = yield wanted
        failed = next((r.failed for r in records if r.failed is not None), None)
        if failed is not None:
            return Panel(self.name, data, recipe, failed=failed)

        def seeds(start: int, value: str) -> list[list[float]]:
            flat = [r.measured[value] for r in records[start : start + len(trains)]]
            return [flat[i : i + grid.seeds] for i in range(0, len(flat), grid.seeds)]

        values = {
            "epochs": [train.epochs for train in trains[:: grid.seeds]],
            "auc": seeds(0, "auc"),
            "er": seeds(len(trains), "precision"),
            "er_last": seeds(2 * len(trains), "precision"),
        }
        told = tuple(r.name for r in records)
        return Panel(self.name, data, recipe, values, told, made=made_with(records))


SHOWN = ("vanilla", "wd", "r2et", "r2et-mm")
MANY = ("vanilla", "wd", "sp", "est-h", "at", "r2et-nh", "r2et-mm-nh", "r2et", "r2et-mm")
TABLES = ("adult", "bank", "compas")
PICTURES: dict[str, Picture] = {
    picture.name: picture
    for picture in (
        Correlations("figure2", "Figure 2: steps to the first flip", ("compas",), ("r2et",)),
        Maps("figure3", "Figure 3: saliency before and after the attack", ("mnist",), SHOWN),
        Correlations(
            "figure4",
            "Figure 4: steps to the first flip, against four measures",
            ("adult", "compas"),
            ("vanilla", "est-h", "r2et"),
        ),
        Maps("figure5", "Figure 5: saliency of all methods", ("mnist",), MANY),
        Constrained("figure6", "Figure 6: constrained attacks", ("adhd-frontal",), ("vanilla",)),
        TradeOff(
            "figure7",
            "Figure 7: accuracy and stability",
            TABLES,
            (*MANY, "r2et-ball", "certified", "linear"),
        ),
        Magnitudes("figure8", "Figure 8: sorted gradient magnitudes", TABLES, ("vanilla",)),
        Pairs(
            "figure9",
            "Figure 9: the number of selected pairs",
            ("bank",),
            ("r2et-nh", "r2et-mm-nh"),
        ),
        Lengths("lengths", "P@k and the length of training", TABLES, ("vanilla",)),
    )
}
