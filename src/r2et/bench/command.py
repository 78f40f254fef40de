"""What `r2et bench` was asked for, read and carried out."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, replace
from typing import Any

from r2et.bench.figures import PICTURES
from r2et.bench.grid import Grid
from r2et.bench.run import Outcome, Runner, run_figure, run_table
from r2et.bench.schedule import Watch
from r2et.bench.tables import TABLE_NAMES, unknown
from r2et.engine import Engine, engine
from r2et.errors import InputError

NAMES = (*TABLE_NAMES, *PICTURES, "leaderboard", "all")
UNITS = {"s": 1, "m": 60, "h": 3600}
# What is worth most comes first: "all" stops where the budget does.
ORDER = (
    *("table1", "leaderboard", "figure2", "figure7", "figure8", "table5", "table9", "figure4"),
    *("table7", "figure9", "table8", "table2", "table6", "figure3", "figure6", "figure5"),
)


@dataclass(frozen=True)
class Asked:
    """One run: a table's or figure's name, the grid, and the seconds it may take."""

    name: str
    grid: Grid
    budget: float | None = None


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
    return Asked(name, Grid(**told), seconds)


def duration(text: str | None) -> float | None:
    """30m, 2h, 90s as seconds."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip().lower())
    if found is None or float(found[1]) == 0:
        raise InputError(f"bench: budget must be a time as 90s, 30m or 2h, got {text!r}.")
    return float(found[1]) * UNITS[found[2]]


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
) -> Outcome:
    """Make what was asked for; of "all", as much as fits into the budget."""
    end = None if told.budget is None else time.monotonic() + told.budget
    whole = Outcome()
    with engine(kind, workers, address) as running:
        for name in ORDER if told.name == "all" else (told.name,):
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                late = f"bench: {name} was not begun within the budget."
                whole = whole.with_(Outcome(notes=[late]))
                continue
            runner = Runner(out, running, budget=left, watch=watch)
            whole = whole.with_(_one(name, told, runner))
    return whole


def _one(name: str, told: Asked, runner: Runner) -> Outcome:
    if name not in PICTURES:
        return run_table(name, told.grid, runner)
    grid = told.grid
    if told.name == "all":  # each figure has its own data and recipes
        grid = replace(grid, datasets=PICTURES[name].datasets, recipes=PICTURES[name].recipes)
    return run_figure(name, grid, runner)
