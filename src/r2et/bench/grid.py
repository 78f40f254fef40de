"""A grid of data, recipes and seeds, and the plan that finds what to measure in it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from r2et.bench.case import Case, Changes, changes
from r2et.bench.cases import LADDER, ONLY_TABLES, TABLES, case
from r2et.bench.choice import Choice
from r2et.bench.method import Method, method
from r2et.bench.record import Record
from r2et.bench.task import Measure, Options, Task, Train
from r2et.errors import require
from r2et.train import Recipe

ATTACKING = ("er", "mse", "thickness", "saliency")  # kinds that take a number of steps
ALWAYS_RETRAINED = ("cl",)


@dataclass(frozen=True)
class Grid:
    """What to run. rows, steps, epochs: smaller than the papers' for a quick look.

    weights: in place of those that are usually tried, for recipes with a penalty. beyond: whether
    larger weights follow on those, until the validation AUC leaves the threshold.
    """

    datasets: tuple[str, ...] = ("adult", "bank", "compas")
    recipes: tuple[str, ...] = tuple(TABLES)
    seeds: int = 3
    epochs: int | None = None
    rows: int | None = None
    steps: int | None = None
    weights: tuple[float, ...] = ()
    beyond: bool = True

    def __post_init__(self) -> None:
        for name in self.datasets:
            case(name)
        for name in self.recipes:
            method(name)
        for name in ("datasets", "recipes"):
            require(bool(getattr(self, name)), "bench", name, "one or more names", "none")
        for name in ("seeds", "epochs", "rows", "steps"):
            value = getattr(self, name)
            good = (value is None and name != "seeds") or (type(value) is int and value > 0)
            require(good, "bench", name, "a positive whole number", value)

    def candidates(self, own: Case, name: str) -> tuple[Changes, ...]:
        """What is tried of a recipe on a data set."""
        found = method(name)
        if self.weights and isinstance(found, Recipe) and found.penalty is not None:
            return tuple(changes(weight=w) for w in self.weights)
        return own.candidates.get(name, ((),))

    def further(self, own: Case, name: str) -> tuple[Changes, ...]:
        """Larger weights than all of the candidates', where the candidates are weights."""
        tried = self.candidates(own, name)
        weights = [dict(told)["weight"] for told in tried if "weight" in dict(told)]
        if not self.beyond or self.weights or not own.table or len(weights) < len(tried):
            return ()
        return tuple(changes(weight=w) for w in LADDER if w > max(weights))

    def told(self) -> dict[str, Any]:
        """What a claim says about the run that it is of."""
        small = {"epochs": self.epochs, "rows": self.rows, "steps": self.steps}
        more = {"weights": list(self.weights), "beyond": self.beyond}
        return {"seeds": self.seeds, **small, **more}

    @classmethod
    def of(cls, told: Mapping[str, Any], data: str, recipe: str) -> Grid:
        """The grid of one claim; one that does not say so tried no weights beyond."""
        names = ("seeds", "epochs", "rows", "steps")
        some: dict[str, Any] = {name: told.get(name) for name in names}
        weights, beyond = tuple(told.get("weights") or ()), told.get("beyond", False)
        return cls((data,), (recipe,), **some, weights=weights, beyond=beyond)

    def options(self, **told: Any) -> Options:
        """Options of a measurement, with those of the whole grid."""
        if self.rows is not None:
            told["rows"] = self.rows
        return tuple(sorted(told.items()))

    def options_of(self, kind: str, **told: Any) -> Options:
        """Of a kind of measurement, those that it takes: a clean one takes every row it can."""
        if kind == "clean":
            return tuple(sorted(told.items()))
        return self.attack_options(**told) if kind in ATTACKING else self.options(**told)

    def attack_options(self, **told: Any) -> Options:
        """The same for one with the papers' attacks."""
        return self.options(**told, **({} if self.steps is None else {"steps": self.steps}))


@dataclass(frozen=True)
class Chosen:
    """One training per seed, by the chosen settings; or why there is none.

    slack: how far each training's validation AUC may lie below that of Vanilla of the same seed.
    choice: the name of its record. tried: what it has on each candidate. behind: their records.
    """

    trains: tuple[Train, ...] = ()
    changes: Changes = ()
    unreliable: tuple[str, ...] = ()
    failed: str | None = None
    slack: float | None = None
    choice: str = ""
    tried: tuple[Mapping[str, Any], ...] = ()
    behind: tuple[Record, ...] = field(default=(), repr=False)

    @property
    def compared(self) -> list[Task]:
        """All trainings, and those of Vanilla that they are compared with."""
        if self.slack is None:
            return list(self.trains)
        plain = [Train(t.data, "vanilla", seed=t.seed, epochs=t.epochs) for t in self.trains]
        return [*self.trains, *plain]

    def unmoved(self, records: Sequence[Record]) -> str:
        """Why a retraining is none: with some seed no epoch was kept, and it is Vanilla still."""
        own = list(zip(self.trains, records, strict=False))
        still = [t.seed for t, r in own if t.retrain and r.measured.get("epoch_kept") == -1]
        if not still:
            return ""
        seeds = ("seed " if len(still) == 1 else "seeds ") + ", ".join(map(str, still))
        return f"no epoch kept Vanilla's ranking or AUC ({seeds}), so it is Vanilla still"

    def below(self, records: Sequence[Record]) -> tuple[str, ...]:
        """What speaks against the choice or one of its trainings, by records of `compared`."""
        if self.unreliable or self.slack is None:
            return self.unreliable
        count = len(self.trains)
        both = zip(records[:count], records[count:], strict=True)
        for train, pair in zip(self.trains, both, strict=True):
            reached, plain = (record.measured.get("auc_validation") for record in pair)
            if reached is None or plain is None:  # not trained, or of one class
                continue
            if reached < plain - self.slack:
                told = f"validation AUC {reached:.4f} with seed {train.seed}"
                return (f"{told}, below the threshold {plain - self.slack:.4f}",)
        return ()


def inapplicable(own: Case, name: str, retrain: bool = False) -> str | None:
    """Why a recipe is not for this data, or for retraining, if it is not."""
    if not own.table and name in ONLY_TABLES:
        return f"{name} is for tables"
    if not retrain:
        return None
    found = method(name)
    if isinstance(found, Method):
        return "a method of its own trains from scratch"
    if found.linear:
        return "a linear model has no network of Vanilla's to start from"
    return None if found.rho is None else "softplus changes the network, so nothing is retrained"


def chosen(
    grid: Grid, data: str, name: str, *, retrain: bool = False
) -> Generator[list[Task], list[Record], Chosen]:
    """Try a recipe's settings with the first seed, choose, and name the trainings of all seeds.

    After the largest weight comes a larger one, unless its AUC is too low already: where the choice
    is the last of the grid, the next would not count. A retraining is held by its own stop rule.
    """
    own = case(data)
    why = inapplicable(own, name, retrain)
    if why is not None:
        return Chosen(failed=why)
    again = retrain or name in ALWAYS_RETRAINED
    tries = grid.candidates(own, name)

    def train(told: Changes, seed: int) -> Train:
        vanilla = name == "vanilla"
        return Train(data, name, told, seed, again and not vanilla, grid.epochs)

    if name == "vanilla":
        return Chosen(tuple(train((), seed) for seed in range(grid.seeds)))
    options = grid.attack_options()
    tried = tuple(Measure(train(told, 0), "validation", options) for told in tries)
    vanilla = Measure(Train(data, "vanilla", epochs=grid.epochs), "validation", options)
    further = () if again else grid.further(own, name)
    if further:  # those that are tried anyway, all at once
        yield [*tried, vanilla]
    for told in further:
        last, plain = yield [tried[-1], vanilla]
        reached, usual = (r.measured.get("auc_validation") for r in (last, plain))
        if reached is None or usual is None or reached < usual - own.slack:
            break
        tries = (*tries, told)
        tried = (*tried, Measure(train(told, 0), "validation", options))
    (found,) = yield [Choice(tried, vanilla)]
    if found.failed is not None:
        return Chosen(failed=found.failed)
    best = tries[found.measured["index"]]
    trains = tuple(train(best, seed) for seed in range(grid.seeds))
    behind = yield [*tried, *(measure.of for measure in tried)]
    more: dict[str, Any] = {"choice": found.name, "behind": (found, *behind)}
    more["tried"] = tuple(found.measured.get("candidates", ()))
    return Chosen(trains, best, found.unreliable, slack=own.slack, **more)
