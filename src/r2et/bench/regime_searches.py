"""What the papers do not print, found by their Vanilla: how long to train, how far to attack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from r2et.bench.figure_plan import FigurePlan, by_seeds
from r2et.bench.grid import Grid
from r2et.bench.measure_task import MeasureTask
from r2et.bench.panel import Panel, PanelPlan, panel
from r2et.bench.papers import reported_value
from r2et.bench.papers_regime import EDGE_DEVIATIONS, ROUNDING, STAND_INS
from r2et.bench.task import BenchTask

POINT = 0.01  # of P@k


@final
@dataclass(frozen=True)
class LengthSearch(FigurePlan):
    """For how many epochs Vanilla is as stable as the papers' Vanilla: what LENGTHS holds.

    Of lengths after which Vanilla is as accurate as theirs, the one whose P@k under ERAttack's last
    point, mean over seeds, is nearest to theirs. The networks are those of the papers' regime.
    """

    epochs: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        benchmark = grid.benchmark(data)
        target = reported_value("table1", benchmark.paper, recipe, 0)
        if target is None or benchmark.published is None:
            lacks = f"the papers have no {recipe} on {data} to come near to"
            return Panel(self.name, data, recipe, failed=lacks)
        counts = [grid.epochs] if grid.epochs else list(self.epochs.get(data, (5, 10, 20)))
        trains = [
            replace(grid.train(data, recipe, (), seed), epochs=count)
            for count in counts
            for seed in range(grid.seeds)
        ]
        wanted: list[BenchTask] = [
            MeasureTask(train, "clean", grid.options_of("clean")) for train in trains
        ]
        wanted += [MeasureTask(train, "er", grid.attack_options()) for train in trains]
        records = yield wanted

        def values() -> dict[str, Any]:
            clean, last = records[: len(trains)], records[len(trains) :]
            assert benchmark.published is not None
            found = {
                "epochs": counts,
                "auc": by_seeds(clean, "auc", grid.seeds),
                "er_last": by_seeds(last, "precision", grid.seeds),
                "papers": target / 100,
                "papers_auc": benchmark.published[0],
            }
            return {**found, "nearest": nearest_length(found)}

        return panel(self.name, data, recipe, records, values)


def nearest_length(values: Mapping[str, Any]) -> int:
    """The epochs at which P@k is nearest to the papers', of those accurate enough, if any is.

    Seeds lie further apart than a point: of lengths within a point of the nearest, the shortest.
    """
    every = zip(values["epochs"], values["auc"], values["er_last"], strict=True)
    means = [(count, sum(auc) / len(auc), sum(kept) / len(kept)) for count, auc, kept in every]
    accurate = [each for each in means if each[1] >= values["papers_auc"] - ROUNDING] or means
    apart = {count: abs(kept - values["papers"]) for count, _, kept in accurate}
    return int(min(count for count in apart if apart[count] <= min(apart.values()) + POINT))


MOST_LOST = 0.1  # of the predictions, by an attack that is to be the papers'


@final
@dataclass(frozen=True)
class BudgetSearch(FigurePlan):
    """How far an edge may move for Vanilla to be as stable as the papers' Vanilla: BUDGETS.

    In standard deviations of the data's edges. Beside Vanilla's AUC that of a logistic regression
    on the edges of the same pairs.
    """

    budgets: tuple[float, ...] = ()

    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        deviation, paper = EDGE_DEVIATIONS.get(data), STAND_INS.get(data)
        target = reported_value("table1", paper, recipe, 0)
        if deviation is None or target is None:
            lacks = f"the papers have no {recipe} on brain networks that {data} stands in for"
            return Panel(self.name, data, recipe, failed=lacks)
        trains = [grid.train(data, recipe, (), seed) for seed in range(grid.seeds)]
        wanted: list[BenchTask] = [
            MeasureTask(train, "clean", grid.options_of("clean")) for train in trains
        ]
        wanted.append(MeasureTask(trains[0], "edges"))
        for budget in self.budgets:
            options = grid.attack_options(radius=round(budget * deviation, 4))
            wanted += [MeasureTask(train, "er", options) for train in trains]
        records = yield wanted

        def values() -> dict[str, Any]:
            count = len(trains)
            attacked = records[count + 1 :]
            found = {
                "budgets": list(self.budgets),
                "er_last": by_seeds(attacked, "precision", grid.seeds),
                "sensitivity": by_seeds(attacked, "sensitivity", grid.seeds),
                "auc": [record.measured["auc"] for record in records[:count]],
                "auc_edges": records[count].measured["auc"],
                "papers": target / 100,
            }
            return {**found, "nearest_budget": nearest_budget(found)}

        return panel(self.name, data, recipe, records, values)


def nearest_budget(values: Mapping[str, Any]) -> float:
    """The budget at which P@k, mean over seeds, is nearest to the papers'.

    Of those at which the attack leaves nearly all predictions, if there are any: rows that lose
    theirs count as unmoved, so that P@k rises again where the budget is far too large.
    """
    kept = [sum(seeds) / len(seeds) for seeds in values["er_last"]]
    lost = [sum(seeds) / len(seeds) for seeds in values["sensitivity"]]
    every = list(zip(values["budgets"], kept, lost, strict=True))
    honest = [each for each in every if each[2] <= MOST_LOST] or every
    apart = {budget: abs(value - values["papers"]) for budget, value, _ in honest}
    return float(min(apart, key=apart.__getitem__))
