"""What `r2et bench all` makes, in order of worth, and what each part costs.

First every cell of the first screen of docs/results.md, with one seed; then the other seeds; then
the tables and figures behind it. An item is one table of one dataset, or one figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources

from r2et.bench.claim import in_regime
from r2et.bench.figure_plans import FIGURES
from r2et.bench.grid import Grid
from r2et.bench.registry import REGIMES

TABLE_SETS = ("adult", "bank", "compas")
BRAIN_SETS = ("adhd-frontal", "abide")
# Of the first screen: Vanilla, R2ET, the papers' other methods, ours, and the linear model.
MAIN = (
    *("vanilla", "r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh", "sp", "wd", "est-h", "at"),
    *("r2et-ball", "certified", "linear"),
)
# Of pictures fewer, whose trainings take long: what is not among these comes at the end.
PICTURE_SETS = ("cifar10-10k", "oct-kermany-64")
MAIN_PICTURES = ("vanilla", "r2et", "r2et-mm", "est-h", "sp", "r2et-ball")
# Of long trainings of what is no table, the groups of the first screen; of pictures the least.
MAIN_LONG = ("vanilla", "r2et", "r2et-mm", "est-h", "r2et-ball")
MAIN_LONG_PICTURES = ("vanilla", "r2et", "r2et-ball")
LATER = ("leaderboard", "table5", "table9", "table6", "table7", "table8", "table2")
PICTURES = (
    *("figure2", "figure7", "figure8", "figure4", "lengths", "figure9"),
    *("figure3", "figure6", "figure5", "figure7-papers", "figure3-papers"),
)


@dataclass(frozen=True)
class AgendaItem:
    """A part of "all".

    name: of a table or a figure.
    regime: of its trainings.
    datasets: of a table one, of a figure its own.
    recipes: of a table; empty: all that its config has candidates of.
    seeds: trainings of each.
    """

    name: str
    regime: str
    datasets: tuple[str, ...]
    recipes: tuple[str, ...] = ()
    seeds: int = 1

    @property
    def title(self) -> str:
        """As it is said, and under which its cost is kept."""
        seeds = "1 seed" if self.seeds == 1 else f"{self.seeds} seeds"
        in_parts = (*TABLE_SETS, *PICTURE_SETS)
        rest = self.name == "table1" and not self.recipes and self.datasets[0] in in_parts
        of = f"{', '.join(self.datasets)}, {seeds}{', all recipes' if rest else ''}"
        return f"{in_regime(self.name, self.regime)} of {of}"

    def grid(self, asked: Grid, given: Iterable[str] = ()) -> Grid:
        """What to run: the settings asked for, with this item's data, recipes, regime and seeds."""
        recipes = self.recipes
        if "recipes" in given:
            recipes = asked.recipes
        elif not recipes:
            recipes = tuple(REGIMES[self.regime][self.datasets[0]].candidates)
        own = replace(asked, datasets=self.datasets, regime=self.regime)
        return replace(own, recipes=recipes, seeds=self.seeds)


def agenda(seeds: int = 3) -> tuple[AgendaItem, ...]:
    """Everything, what is worth most first; seeds: as many as there are to be in the end."""
    return tuple(dict.fromkeys(_items(seeds)))


def _items(seeds: int) -> Iterator[AgendaItem]:
    regimes, others = ("papers", "long"), [d for d in REGIMES["papers"] if d not in TABLE_SETS]
    for regime in regimes:
        for data in TABLE_SETS:
            yield AgendaItem("table1", regime, (data,), MAIN)
    for data in others:
        main = MAIN_PICTURES if data in PICTURE_SETS else ()
        yield AgendaItem("table1", "papers", (data,), main)
    for regime in regimes:
        for data in TABLE_SETS:
            yield AgendaItem("table1", regime, (data,), MAIN, seeds)
    for data in sorted(others, key=PICTURE_SETS.__contains__):
        few = MAIN_LONG_PICTURES if data in PICTURE_SETS else MAIN_LONG
        yield AgendaItem("table1", "long", (data,), few)
    for data in TABLE_SETS:
        yield AgendaItem("nearest", "papers", (data,), (*MAIN[:9], "exact-h", "ssr"), seeds)
    yield AgendaItem("table1", "papers", ("mnist",), (), seeds)
    for count in dict.fromkeys((1, seeds)):
        for name in ("table1", *LATER):
            for data in TABLE_SETS:
                yield AgendaItem(name, "long", (data,), (), count)
        for name in PICTURES:
            figure = FIGURES[name]
            yield AgendaItem(name, figure.regime, figure.datasets, figure.recipes, count)
        for data in TABLE_SETS:
            yield AgendaItem("table8", "papers", (data,), (), count)
    for data in BRAIN_SETS:  # of which the papers' Table 6 is
        yield AgendaItem("table6", "papers", (data,))
    for data in PICTURE_SETS:
        yield AgendaItem("table1", "papers", (data,))
    yield AgendaItem("length-search", "papers", TABLE_SETS, ("vanilla",), seeds)
    yield AgendaItem("budget-search", "papers", ("adhd-frontal",), ("vanilla",))


@lru_cache(maxsize=1)
def recorded_costs() -> dict[str, float]:
    """Seconds of one worker for each item, by its title, beyond what items before it left.

    Of those in the committed records; `python tools/results.py` writes the file.
    """
    text = resources.files("r2et.bench").joinpath("costs.json").read_text(encoding="utf-8")
    stored: dict[str, float] = json.loads(text)
    return stored


# Not recorded yet. By the processor's seconds for a few batches and a few attacked rows, times the
# trainings, epochs and rows of the config: docs/bench.md says which.
TIMED: dict[str, float] = {
    **{f"table1-papers of {data}, 1 seed": 500.0 for data in TABLE_SETS},
    **{f"table1-papers of {data}, 3 seeds": 400.0 for data in TABLE_SETS},
    **{f"nearest-papers of {data}, 3 seeds": 600.0 for data in TABLE_SETS},
    **{f"table8-papers of {data}, 1 seed": 900.0 for data in TABLE_SETS},
    "table1-papers of mnist, 1 seed": 2000.0,
    "table1-papers of mnist, 3 seeds": 1900.0,
    "table1-papers of adhd-frontal, 1 seed": 1500.0,
    "table1-papers of abide, 1 seed": 1500.0,
    "table1-papers of cifar10-10k, 1 seed": 6000.0,
    "table1-papers of cifar10-10k, 1 seed, all recipes": 3500.0,
    "table1-papers of oct-kermany-64, 1 seed": 8000.0,
    "table1-papers of oct-kermany-64, 1 seed, all recipes": 5000.0,
    "table1 of mnist, 1 seed": 900.0,
    "table1 of adhd-frontal, 1 seed": 500.0,
    "table1 of abide, 1 seed": 700.0,
    "table1 of cifar10-10k, 1 seed": 3000.0,
    "table1 of oct-kermany-64, 1 seed": 2800.0,
    "budget-search-papers of adhd-frontal, 1 seed": 150.0,
    "figure3 of mnist, 1 seed": 300.0,
    "figure5 of mnist, 1 seed": 600.0,
}


def cost(item: AgendaItem) -> float | None:
    """About how many seconds of one worker an item takes; None where nobody has measured it."""
    return recorded_costs().get(item.title, TIMED.get(item.title))
