"""A grid of datasets, recipes and seeds, and the plan that selects what to measure in it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from r2et.bench.benchmark_config import BenchmarkConfig, Changes, changes
from r2et.bench.candidates import LARGER_WEIGHTS, ONLY_TABLES, TABLE_CANDIDATES
from r2et.bench.measure_task import MeasureTask, Options
from r2et.bench.method import Method, method
from r2et.bench.record import Record
from r2et.bench.registry import find_benchmark
from r2et.bench.select_task import SelectTask
from r2et.bench.task import BenchTask
from r2et.bench.train_task import TrainTask
from r2et.errors import require
from r2et.train import Recipe

ATTACKING = ("er", "mse", "thickness", "saliency")  # kinds that take a number of steps
ALWAYS_RETRAINED = ("cl",)


@dataclass(frozen=True)
class Grid:
    """What to run.

    datasets, recipes: their names.
    seeds: how many trainings of each.
    epochs, rows, steps: fewer than the papers', for a quick look.
    weights: in place of those that are usually tried, for recipes with a penalty.
    beyond: whether larger weights follow on those, until the validation AUC leaves the threshold.
    regime: "long", or "papers" for the papers' length of training, thresholds and weights.
    """

    datasets: tuple[str, ...] = ("adult", "bank", "compas")
    recipes: tuple[str, ...] = tuple(TABLE_CANDIDATES)
    seeds: int = 3
    epochs: int | None = None
    rows: int | None = None
    steps: int | None = None
    weights: tuple[float, ...] = ()
    beyond: bool = True
    regime: str = "long"

    def __post_init__(self) -> None:
        for name in self.datasets:
            find_benchmark(name, self.regime)
        for name in self.recipes:
            method(name)
        for name in ("datasets", "recipes"):
            require(bool(getattr(self, name)), "bench", name, "one or more names", "none")
        for name in ("seeds", "epochs", "rows", "steps"):
            value = getattr(self, name)
            valid = (value is None and name != "seeds") or (type(value) is int and value > 0)
            require(valid, "bench", name, "a positive whole number", value)

    def benchmark(self, data: str) -> BenchmarkConfig:
        """A dataset's config in the regime of this grid."""
        return find_benchmark(data, self.regime)

    def train(
        self, data: str, recipe: str, own: Changes = (), seed: int = 0, retrain: bool = False
    ) -> TrainTask:
        """A training of this grid."""
        again = retrain and recipe != "vanilla"
        return TrainTask(data, recipe, own, seed, again, self.epochs, self.regime)

    def candidates(
        self, benchmark: BenchmarkConfig, name: str, retrain: bool = False
    ) -> tuple[Changes, ...]:
        """What is tried of a recipe on a dataset."""
        own = method(name)
        if self.weights and isinstance(own, Recipe) and own.penalty is not None:
            return tuple(changes(weight=w) for w in self.weights)
        if retrain and name in benchmark.retrain_candidates:
            return benchmark.retrain_candidates[name]
        return benchmark.candidates.get(name, ((),))

    def further(self, benchmark: BenchmarkConfig, name: str) -> tuple[Changes, ...]:
        """Larger weights than all of the candidates', where the candidates are weights."""
        tried = self.candidates(benchmark, name)
        weights = [dict(each)["weight"] for each in tried if "weight" in dict(each)]
        asked = self.beyond and not self.weights and self.regime == "long"
        if not asked or not benchmark.is_table or len(weights) < len(tried):
            return ()
        return tuple(changes(weight=w) for w in LARGER_WEIGHTS if w > max(weights))

    def ladders(
        self, benchmark: BenchmarkConfig, name: str, retrain: bool = False
    ) -> list[tuple[Changes, ...]]:
        """The candidates in rows of growing weight, each to be tried while the AUC allows.

        In the papers' regime, whose range of weights is wide: candidates that differ in nothing
        else. All others are tried all at once.
        """
        tried = self.candidates(benchmark, name, retrain)
        climbs = self.regime == "papers" and not retrain and not self.weights
        rows: dict[Changes, list[Changes]] = {}
        for i, each in enumerate(tried):
            rest = tuple(item for item in each if item[0] != "weight")
            weighs = climbs and len(rest) < len(each)
            rows.setdefault(rest if weighs else (("place", i),), []).append(each)
        return [tuple(row) for row in rows.values()]

    def settings(self) -> dict[str, Any]:
        """What a claim says about the run that it is of."""
        small = {"epochs": self.epochs, "rows": self.rows, "steps": self.steps}
        more = {"weights": list(self.weights), "beyond": self.beyond}
        regime = {} if self.regime == "long" else {"regime": self.regime}
        return {"seeds": self.seeds, **small, **more, **regime}

    @classmethod
    def of_claim(cls, settings: Mapping[str, Any], data: str, recipe: str) -> Grid:
        """The grid of one claim, by its settings."""
        counts = {name: settings[name] for name in ("seeds", "epochs", "rows", "steps")}
        weights, beyond = tuple(settings["weights"]), settings["beyond"]
        regime = settings.get("regime", "long")
        return cls((data,), (recipe,), **counts, weights=weights, beyond=beyond, regime=regime)

    def options(self, **own: Any) -> Options:
        """Options of a measurement, with those of the whole grid."""
        if self.rows is not None:
            own["rows"] = self.rows
        return tuple(sorted(own.items()))

    def options_of(self, kind: str, **own: Any) -> Options:
        """Those that a measurement takes: a clean one takes every row it can."""
        if kind == "clean":
            return tuple(sorted(own.items()))
        return self.attack_options(**own) if kind in ATTACKING else self.options(**own)

    def attack_options(self, **own: Any) -> Options:
        """The same for one with the papers' attacks."""
        return self.options(**own, **({} if self.steps is None else {"steps": self.steps}))


@dataclass(frozen=True)
class SelectedTrainings:
    """One training per seed, by the selected settings; or why there is none.

    trains: the tasks.
    changes: the settings that were selected.
    unreliable: why the selection does not count.
    failed: why there is none.
    slack: how far each training's validation AUC may lie below that of Vanilla of the same seed.
    choice: the name of the selection's record.
    tried: what that has on each candidate.
    behind: the records of the selection and the candidates.
    """

    trains: tuple[TrainTask, ...] = ()
    changes: Changes = ()
    unreliable: tuple[str, ...] = ()
    failed: str | None = None
    slack: float | None = None
    choice: str = ""
    tried: tuple[Mapping[str, Any], ...] = ()
    behind: tuple[Record, ...] = field(default=(), repr=False)

    @property
    def compared(self) -> list[BenchTask]:
        """All trainings, and those of Vanilla that they are compared with."""
        if self.slack is None:
            return list(self.trains)
        return [*self.trains, *(train.vanilla for train in self.trains)]

    def unmoved(self, records: Sequence[Record]) -> str:
        """Why a retraining is none: with some seed no epoch was kept, and it is Vanilla still."""
        own = list(zip(self.trains, records, strict=False))
        still = [t.seed for t, r in own if t.retrain and r.measured.get("epoch_kept") == -1]
        if not still:
            return ""
        seeds = ("seed " if len(still) == 1 else "seeds ") + ", ".join(map(str, still))
        return f"no epoch kept Vanilla's ranking or AUC ({seeds}), so it is Vanilla still"

    def below(self, records: Sequence[Record]) -> tuple[str, ...]:
        """What speaks against the selection or one of its trainings, by records of `compared`."""
        if self.unreliable or self.slack is None:
            return self.unreliable
        count = len(self.trains)
        both = zip(records[:count], records[count:], strict=True)
        for train, pair in zip(self.trains, both, strict=True):
            reached, plain = (record.measured.get("auc_validation") for record in pair)
            if reached is None or plain is None:  # not trained, or of one class
                continue
            if reached < plain - self.slack:
                low = f"validation AUC {reached:.4f} with seed {train.seed}"
                return (f"{low}, below the threshold {plain - self.slack:.4f}",)
        return ()


def is_recipe(name: str) -> bool:
    """Whether this is a recipe, which can start from given weights, and no method of others."""
    return isinstance(method(name), Recipe)


def inapplicable(benchmark: BenchmarkConfig, name: str, retrain: bool = False) -> str | None:
    """Why a recipe is not for this data, or for retraining, if it is not."""
    if not benchmark.is_table and name in ONLY_TABLES:
        return f"{name} is for tables"
    if not retrain:
        return None
    own = method(name)
    if isinstance(own, Method):
        return None if benchmark.retrained else "a method of its own trains from scratch"
    if own.linear:
        return "a linear model has no network of Vanilla's to start from"
    if benchmark.retrained or own.rho is None:
        return None
    return "softplus changes the network, so nothing is retrained"


def allows_more(last: Record, vanilla: Record, slack: float) -> bool:
    """Whether a setting is accurate enough for a larger weight to be worth a try."""
    reached, usual = (r.measured.get("auc_validation") for r in (last, vanilla))
    return reached is not None and usual is not None and reached >= usual - slack


def try_candidates(
    grid: Grid, data: str, name: str, again: bool
) -> Generator[list[BenchTask], list[Record], tuple[tuple[Changes, ...], tuple[MeasureTask, ...]]]:
    """The settings to select from, measured on validation rows with the first seed.

    Of weights that grow, up to the first whose AUC is too low: a larger one would not count either.
    """
    options, slack = grid.attack_options(), grid.benchmark(data).slack
    vanilla = MeasureTask(grid.train(data, "vanilla"), "validation", options)
    tries: list[Changes] = []
    for row in grid.ladders(grid.benchmark(data), name, again):
        for place, own in enumerate(row):
            tries.append(own)
            if place + 1 < len(row):
                task = MeasureTask(grid.train(data, name, own, 0, again), "validation", options)
                last, plain = yield [task, vanilla]
                if not allows_more(last, plain, slack):
                    break
    tasks = [MeasureTask(grid.train(data, name, t, 0, again), "validation", options) for t in tries]
    return tuple(tries), tuple(tasks)


def select_trainings(
    grid: Grid, data: str, name: str, *, retrain: bool = False
) -> Generator[list[BenchTask], list[Record], SelectedTrainings]:
    """Try a recipe's settings with the first seed, select, and name the trainings of all seeds.

    After the largest weight comes a larger one, unless its AUC is too low already: where the
    selected is the last of the grid, the next would not count. A retraining is held by its own stop
    rule.
    """
    benchmark = grid.benchmark(data)
    why = inapplicable(benchmark, name, retrain)
    if why is not None:
        return SelectedTrainings(failed=why)
    again = retrain or name in ALWAYS_RETRAINED or (benchmark.retrained and is_recipe(name))

    def train(own: Changes, seed: int) -> TrainTask:
        return grid.train(data, name, own, seed, again)

    if name == "vanilla":
        return SelectedTrainings(tuple(train((), seed) for seed in range(grid.seeds)))
    options = grid.attack_options()
    vanilla = MeasureTask(grid.train(data, "vanilla"), "validation", options)
    tries, tried = yield from try_candidates(grid, data, name, again)
    further = () if again else grid.further(benchmark, name)
    if further:  # those that are tried anyway, all at once
        yield [*tried, vanilla]
    for own in further:
        last, plain = yield [tried[-1], vanilla]
        if not allows_more(last, plain, benchmark.slack):
            break
        tries = (*tries, own)
        tried = (*tried, MeasureTask(train(own, 0), "validation", options))
    (choice,) = yield [SelectTask(tried, vanilla)]
    if choice.failed is not None:
        return SelectedTrainings(failed=choice.failed)
    best = tries[choice.measured["index"]]
    trains = tuple(train(best, seed) for seed in range(grid.seeds))
    behind = yield [*tried, *(measure.of for measure in tried)]
    return SelectedTrainings(
        trains,
        best,
        choice.unreliable,
        slack=benchmark.slack,
        choice=choice.name,
        tried=tuple(choice.measured.get("candidates", ())),
        behind=(choice, *behind),
    )
