"""What `r2et bench` was asked for, read and carried out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from r2et.bench.estimate import Estimate, remaining
from r2et.bench.figures import PICTURES
from r2et.bench.grid import Grid
from r2et.bench.run import Outcome, Runner, at_hand, opened, plans_of, run_figure, run_table
from r2et.bench.schedule import Watch
from r2et.bench.tables import TABLE_NAMES, unknown
from r2et.engine import Engine, engine
from r2et.errors import InputError, R2ETError

NAMES = (*TABLE_NAMES, *PICTURES, "leaderboard", "all")
UNITS = {"h": 3600, "m": 60, "s": 1}
STARTING = 10.0  # seconds until workers have begun
# What is worth most comes first: "all" stops where the budget does.
ORDER = (
    *("table1", "leaderboard", "figure2", "figure7", "figure8", "table5", "table9", "figure4"),
    *("table6", "lengths", "figure9", "table7", "table8", "table2"),
    *("figure3", "figure6", "figure5"),
)


@dataclass(frozen=True)
class Asked:
    """One run: a table's or figure's name, the grid, and the seconds it may take.

    given: which of datasets and recipes were named.
    """

    name: str
    grid: Grid
    budget: float | None = None
    given: frozenset[str] = frozenset()

    def grid_of(self, name: str) -> Grid:
        """Of a table or figure among all: a figure has its own data and recipes, unless given."""
        if self.name != "all" or name not in PICTURES:
            return self.grid
        own = {
            n: getattr(PICTURES[name], n) for n in ("datasets", "recipes") if n not in self.given
        }
        return replace(self.grid, **own)


def asked(
    name: str,
    datasets: str | None = None,
    recipes: str | None = None,
    seeds: int = 3,
    epochs: int | None = None,
    rows: int | None = None,
    steps: int | None = None,
    weights: str | None = None,
    budget: str | None = None,
) -> Asked:
    """The words of a command line as settings, each checked before anything runs."""
    if name not in NAMES:
        raise unknown(name, NAMES)
    seconds = duration(budget)
    if name == "all" and seconds is None:
        raise InputError("bench: budget must be given for all, as --budget 2h, got none.")
    told: dict[str, Any] = {"seeds": seeds, "epochs": epochs, "rows": rows, "steps": steps}
    if datasets is not None:
        told["datasets"] = _names(datasets)
    elif name in PICTURES:
        told["datasets"] = PICTURES[name].datasets
    if recipes is not None:
        told["recipes"] = _names(recipes)
    elif name in PICTURES:
        told["recipes"] = PICTURES[name].recipes
    if weights is not None:
        told["weights"] = tuple(_number(word) for word in _names(weights))
    lists = {"datasets": datasets, "recipes": recipes}
    given = frozenset(n for n, value in lists.items() if value is not None)
    return Asked(name, Grid(**told), seconds, given)


def duration(text: str | None) -> float | None:
    """90s, 30m, 2h, 2h30m as seconds."""
    if text is None:
        return None
    number = r"(?:(\d+(?:\.\d+)?)\s*{})?\s*"
    found = re.fullmatch("".join(map(number.format, UNITS)), text.strip().lower())
    parts = zip(found.groups(), UNITS.values(), strict=True) if found else ()
    seconds = sum(float(count) * unit for count, unit in parts if count is not None)
    if seconds == 0:
        raise InputError(f"bench: budget must be a time as 90s, 30m or 2h30m, got {text!r}.")
    return seconds


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(f"bench: weights must be numbers, as 0.01,0.1, got {word!r}.") from None


def run(
    told: Asked,
    out: str | os.PathLike[str],
    *,
    kind: str | Engine = "processes",
    workers: int | None = None,
    address: str | None = None,
    watch: Watch | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Make what was asked for; of "all", what fits into the budget, as `say` is told."""
    end = None if told.budget is None else time.monotonic() + told.budget
    whole = Outcome()
    with engine(kind, workers, address) as running:
        for name in ORDER if told.name == "all" else (told.name,):
            left = None if end is None else end - time.monotonic()
            runner = Runner(out, running, budget=left, watch=watch, say=say)
            grid = told.grid_of(name)
            if told.name == "all":
                assert left is not None
                picked = pick(name, grid, out, running.count(), left, say)
                say(picked.said)
                if picked.grid is None:
                    whole = whole.with_(Outcome(notes=[picked.said]))
                    continue
                grid = picked.grid
            make = run_figure if name in PICTURES else run_table
            whole = whole.with_(make(name, grid, runner))
    return whole


@dataclass(frozen=True)
class Picked:
    """What is made of a table or figure within a time, and a sentence about it."""

    grid: Grid | None
    said: str


def pick(
    name: str,
    grid: Grid,
    out: str | os.PathLike[str],
    workers: int,
    left: float,
    say: Callable[[str], None] | None = None,
) -> Picked:
    """The table whole, or with one seed, or not at all: what is likely to be done in `left`."""
    if left <= 0:
        return Picked(None, f"bench: {name} is left out: the budget is spent.")
    try:
        at_hand(grid.datasets)
    except R2ETError as error:
        return Picked(None, f"bench: {name} is left out: {error}")
    needed = 0.0
    with opened(out, say) as records:
        estimate = Estimate(records.all())
        for seeds in sorted({grid.seeds, 1}, reverse=True):
            smaller = replace(grid, seeds=seeds)
            todo = remaining(plans_of(name, smaller), records)
            needed = sum(map(estimate.seconds, todo)) / workers + (STARTING if todo else 0)
            if needed <= left:
                some = "1 seed" if seeds == 1 else f"{seeds} seeds"
                return Picked(smaller, f"bench: {name} with {some}: about {_time(needed)}.")
    about = f"it takes about {_time(needed)}, and {_time(left)} are left"
    return Picked(None, f"bench: {name} is left out: {about}.")


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
