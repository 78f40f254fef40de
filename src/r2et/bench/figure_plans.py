"""The papers' figures: what is measured for each, and how a panel of it is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from r2et.bench.benchmark_config import CONSTRAINED, changes
from r2et.bench.figure_plan import FigurePlan, by_seeds
from r2et.bench.grid import Grid, inapplicable, select_trainings
from r2et.bench.measure_task import MeasureTask
from r2et.bench.method import Method, method
from r2et.bench.panel import Panel, PanelPlan, measured, panel
from r2et.bench.papers_regime import SEARCHED_BUDGETS, SEARCHED_LENGTHS
from r2et.bench.record import Record
from r2et.bench.regime_searches import BudgetSearch, LengthSearch
from r2et.bench.task import BenchTask
from r2et.penalty import R2ET
from r2et.train import Recipe

# Of each test row: what Figures 2 and 4 are made of.
ROWS = (
    *("adversarial_rows", "hessian_rows", "gaussian_rows", "gaussian_least_rows"),
    *("adversarial_last_rows", "adversarial_gap_rows", "first_flip_rows", "precision_rows"),
)


@final
@dataclass(frozen=True)
class FlipCorrelations(FigurePlan):
    """Steps to the first flip against thickness and Hessian norm, of every seed (Figures 2, 4)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        selected = yield from select_trainings(grid, data, recipe)
        if selected.failed is not None:
            return Panel(self.name, data, recipe, failed=selected.failed)
        options = grid.attack_options(hessian=grid.benchmark(data).is_table)
        trained = yield selected.compared
        records = yield [MeasureTask(train, "thickness", options) for train in selected.trains]

        def values() -> dict[str, Any]:
            names = [n for n in ROWS if grid.benchmark(data).is_table or n != "hessian_rows"]
            seeds = [{name: r.measured[name] for name in names} for r in records]
            return {"way_points": records[0].measured["points"], "seeds": seeds}

        return panel(self.name, data, recipe, records, values, selected.below(trained))


@final
@dataclass(frozen=True)
class SaliencyPanels(FigurePlan):
    """Saliency maps before and after ERAttack (Figures 3 and 5)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        options = tuple(o for o in grid.attack_options() if o[0] != "rows")
        names = ("shown", "shape")
        return (yield from measured(grid, self.name, data, recipe, "saliency", options, *names))


@final
@dataclass(frozen=True)
class ConstrainedAttacks(FigurePlan):
    """P@k against the share of changed predictions, by constraint and step size (Figure 6)."""

    shares: tuple[float, ...] = (0.25, 0.5, 1.0)

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        selected = yield from select_trainings(grid, data, recipe)
        if selected.failed is not None:
            return Panel(self.name, data, recipe, failed=selected.failed)
        asked = [
            {"attack": kind, "constraint": constraint, "share": share}
            for kind in ("er", "mse")
            for constraint in CONSTRAINED
            for share in self.shares
        ]
        wanted: list[BenchTask] = []
        for each in asked:
            options = grid.attack_options(constraint=each["constraint"], share=each["share"])
            wanted.append(MeasureTask(selected.trains[0], str(each["attack"]), options))
        records = yield wanted

        def values() -> dict[str, Any]:
            names = ("precision", "sensitivity")
            points = [
                {**each, **{name: record.measured[name] for name in names}}
                for each, record in zip(asked, records, strict=True)
            ]
            return {"points": [point for point in points if point["precision"] is not None]}

        return panel(self.name, data, recipe, records, values, selected.unreliable)


@final
@dataclass(frozen=True)
class TradeOff(FigurePlan):
    """Accuracy against P@k, under ERAttack and StrongAttack, with the Pareto front (Figure 7)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        selected = yield from select_trainings(grid, data, recipe)
        if selected.failed is not None:
            return Panel(self.name, data, recipe, failed=selected.failed)
        trains = selected.trains
        wanted: list[BenchTask] = [
            MeasureTask(train, "clean", grid.options_of("clean")) for train in trains
        ]
        wanted += [MeasureTask(train, "er", grid.attack_options()) for train in trains]
        if grid.benchmark(data).strong_rows:
            wanted += [MeasureTask(train, "strong", grid.options()) for train in trains]
        trained = yield selected.compared
        records = yield wanted

        def values() -> dict[str, Any]:
            clean, er, strong = _in_three(records, len(trains))
            drawn = {"auc": [r.measured["auc"] for r in clean]}
            drawn["auc_attacked"] = [r.measured["auc_attacked"] for r in er]
            drawn["er"] = [r.measured["precision"] for r in er]
            return drawn | ({"strong": [r.measured["precision"] for r in strong]} if strong else {})

        return panel(self.name, data, recipe, records, values, selected.below(trained))


@final
@dataclass(frozen=True)
class MagnitudeCurves(FigurePlan):
    """Gradient magnitudes in descending order (Figure 8)."""

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        options = grid.options()
        return (
            yield from measured(grid, self.name, data, recipe, "sorted", options, "sorted_rows")
        )


@final
@dataclass(frozen=True)
class PairCounts(FigurePlan):
    """P@k against the number k' of pairs that a penalty looks at (Figure 9)."""

    weight: float = 0.03

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        own = method(recipe)
        if not (isinstance(own, Recipe) and isinstance(own.penalty, R2ET)):
            lacks = f"{recipe} has no pairs of features to select"
            return Panel(self.name, data, recipe, failed=lacks)
        kind = "closest" if "-mm" in recipe else "anchor"
        weight = grid.weights[0] if grid.weights else self.weight
        counts = list(range(1, grid.benchmark(data).k + 1))
        settings = [changes(pairs=kind, count=count, weight=weight) for count in counts]
        trains = [
            grid.train(data, recipe, each, seed) for each in settings for seed in range(grid.seeds)
        ]
        records = yield [MeasureTask(train, "er", grid.attack_options()) for train in trains]

        def values() -> dict[str, Any]:
            return {
                "counts": counts,
                "weight": weight,
                "precision": by_seeds(records, "precision", grid.seeds),
            }

        return panel(self.name, data, recipe, records, values)


@final
@dataclass(frozen=True)
class TrainingLengths(FigurePlan):
    """P@k under ERAttack, at its best and its last point, against epochs of training.

    The papers print neither their epochs nor which point they keep; this shows what hangs on both.
    """

    epochs: tuple[int, ...] = (1, 2, 5, 10, 20, 50)

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        if isinstance(method(recipe), Method):
            return Panel(self.name, data, recipe, failed="a method of its own has its own epochs")
        why = inapplicable(grid.benchmark(data), recipe)
        if why is not None:
            return Panel(self.name, data, recipe, failed=why)
        counts = [grid.epochs] if grid.epochs else list(self.epochs)
        trains = [
            replace(grid.train(data, recipe, (), seed), epochs=count)
            for count in counts
            for seed in range(grid.seeds)
        ]
        wanted: list[BenchTask] = [
            MeasureTask(train, "clean", grid.options_of("clean")) for train in trains
        ]
        wanted += [MeasureTask(train, "er", grid.attack_options()) for train in trains]
        wanted += [MeasureTask(train, "er", grid.attack_options(keep="last")) for train in trains]
        records = yield wanted

        def values() -> dict[str, Any]:
            clean, best, last = _in_three(records, len(trains))
            return {
                "epochs": counts,
                "auc": by_seeds(clean, "auc", grid.seeds),
                "er": by_seeds(best, "precision", grid.seeds),
                "er_last": by_seeds(last, "precision", grid.seeds),
            }

        return panel(self.name, data, recipe, records, values)


def _in_three(records: list[Record], size: int) -> tuple[list[Record], ...]:
    return records[:size], records[size : 2 * size], records[2 * size :]


SHOWN = ("vanilla", "wd", "r2et", "r2et-mm")
MANY = ("vanilla", "wd", "sp", "est-h", "at", "r2et-nh", "r2et-mm-nh", "r2et", "r2et-mm")
TABLE_SETS = ("adult", "bank", "compas")
FIGURES: dict[str, FigurePlan] = {
    picture.name: picture
    for picture in (
        FlipCorrelations("figure2", "Figure 2: steps to the first flip", ("compas",), ("r2et",)),
        SaliencyPanels(
            "figure3", "Figure 3: saliency before and after the attack", ("mnist",), SHOWN
        ),
        SaliencyPanels(
            "figure3-papers",
            "Figure 3, in the papers' regime",
            ("cifar10-10k",),
            ("vanilla", "r2et", "r2et-ball"),
            regime="papers",
        ),
        FlipCorrelations(
            "figure4",
            "Figure 4: steps to the first flip, against four measures",
            ("adult", "compas"),
            ("vanilla", "est-h", "r2et"),
        ),
        SaliencyPanels("figure5", "Figure 5: saliency of all methods", ("mnist",), MANY),
        ConstrainedAttacks(
            "figure6", "Figure 6: constrained attacks", ("adhd-frontal",), ("vanilla",)
        ),
        TradeOff(
            "figure7",
            "Figure 7: accuracy and stability",
            TABLE_SETS,
            (*MANY, "r2et-ball", "certified", "linear"),
        ),
        TradeOff(
            "figure7-papers",
            "Figure 7, in the papers' regime and with their kinds of data",
            ("mnist", "adhd-frontal", "abide"),
            (*MANY, "r2et-ball"),
            regime="papers",
        ),
        MagnitudeCurves(
            "figure8", "Figure 8: sorted gradient magnitudes", TABLE_SETS, ("vanilla",)
        ),
        PairCounts(
            "figure9",
            "Figure 9: the number of selected pairs",
            ("bank",),
            ("r2et-nh", "r2et-mm-nh"),
        ),
        LengthSearch(
            "length-search",
            "The length of training in the papers' regime",
            TABLE_SETS,
            ("vanilla",),
            SEARCHED_LENGTHS,
            regime="papers",
        ),
        BudgetSearch(
            "budget-search",
            "The attack's budget on brain networks",
            ("adhd-frontal",),
            ("vanilla",),
            SEARCHED_BUDGETS,
            regime="papers",
        ),
        TrainingLengths("lengths", "P@k and the length of training", TABLE_SETS, ("vanilla",)),
    )
}
