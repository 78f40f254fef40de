"""The setting whose P@k comes nearest to a figure of the papers: can it come out at all?"""

from __future__ import annotations

from collections.abc import Generator

from r2et.bench.benchmark_config import Changes, changes
from r2et.bench.grid import Grid, SelectedTrainings, inapplicable, try_candidates
from r2et.bench.measure_task import MeasureTask
from r2et.bench.papers import reported_value
from r2et.bench.papers_regime import SEARCHED_LENGTHS
from r2et.bench.record import Record
from r2et.bench.select_task import NEAR, SelectTask, distance
from r2et.bench.task import BenchTask

FEW = 3  # settings whose other lengths are tried


def select_nearest(
    grid: Grid, data: str, name: str
) -> Generator[list[BenchTask], list[Record], SelectedTrainings]:
    """Of what was tried of a recipe, the nearest to its figure in the papers' Table 1.

    By validation rows of the first seed. Those above the threshold come first; where none of them
    is within five points, the nearest three are tried at other lengths of training; where that is
    not enough either, the threshold is left aside, and it is said.
    """
    benchmark = grid.benchmark(data)
    why = inapplicable(benchmark, name)
    figure = reported_value("table1", benchmark.paper, name, 0)
    if why is None and figure is None:
        why = f"the papers have no {name} on {data}"
    if why is not None or figure is None:
        return SelectedTrainings(failed=why)
    if name == "vanilla":
        return SelectedTrainings(tuple(grid.train(data, name, (), s) for s in range(grid.seeds)))
    aim, options = figure / 100, grid.attack_options()

    def measured(own: Changes) -> MeasureTask:
        return MeasureTask(grid.train(data, name, own), "validation", options)

    vanilla = MeasureTask(grid.train(data, "vanilla"), "validation", options)
    climbed, _ = yield from try_candidates(grid, data, name, False)
    tries = list(climbed)
    (first,) = yield [SelectTask(tuple(map(measured, tries)), vanilla, aim)]
    if first.failed is not None:
        return SelectedTrainings(failed=first.failed)
    tried = first.measured["candidates"]
    if distance(tried[first.measured["index"]], aim) > NEAR or not first.measured["met"]:
        nearest = sorted(range(len(tries)), key=lambda i: distance(tried[i], aim))[:FEW]
        others = [n for n in SEARCHED_LENGTHS.get(data, ()) if n != benchmark.epochs]
        tries += [changes(**dict(tries[i]), epochs=n) for i in nearest for n in others]
    tasks = tuple(map(measured, tries))
    (choice,) = yield [SelectTask(tasks, vanilla, aim)]
    if choice.failed is not None:
        return SelectedTrainings(failed=choice.failed)
    best = tries[choice.measured["index"]]
    behind = yield [*tasks, *(task.of for task in tasks)]
    return SelectedTrainings(
        tuple(grid.train(data, name, best, seed) for seed in range(grid.seeds)),
        best,
        choice.unreliable,
        slack=benchmark.slack,
        choice=choice.name,
        tried=tuple(choice.measured["candidates"]),
        behind=(choice, *behind),
    )
