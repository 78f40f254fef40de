"""What `r2et bench` was asked for, read and carried out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from r2et.bench.figure_plans import FIGURES
from r2et.bench.grid import Grid
from r2et.bench.paper_tables import TABLE_NAMES, TABLE_SPECS, unknown_name
from r2et.bench.registry import REGIMES
from r2et.bench.run import BenchOutcome, Runner, bring_data, run_figure, run_table
from r2et.bench.schedule import Watch
from r2et.engine import Engine, engine
from r2et.errors import InputError, R2ETError, require

NAMES = (*TABLE_NAMES, *FIGURES, "nearest", "leaderboard", "all")
OF_ONE_REGIME = {spec.name: spec.regime for spec in TABLE_SPECS.values() if spec.regime}
UNITS = {"h": 3600, "m": 60, "s": 1}
# What is worth most comes first: "all" stops where the budget does.
ORDER = (
    *("table1", "leaderboard", "figure2", "figure7", "figure8", "table5", "table9", "figure4"),
    *("table6", "lengths", "figure9", "table7", "table8", "table2"),
    *("figure3", "figure6", "figure5"),
)


@dataclass(frozen=True)
class BenchJob:
    """One run.

    name: of a table or figure, or "all".
    grid: what to run.
    budget: the seconds it may take.
    given: which of datasets and recipes were named.
    """

    name: str
    grid: Grid
    budget: float | None = None
    given: frozenset[str] = frozenset()

    def grid_of(self, name: str) -> Grid:
        """Of a table or figure among all: a figure has its own data and recipes, unless given."""
        if self.name != "all" or name not in FIGURES:
            return self.grid
        own = {n: getattr(FIGURES[name], n) for n in ("datasets", "recipes") if n not in self.given}
        return replace(self.grid, **own, regime=FIGURES[name].regime)


def parse_request(
    name: str,
    datasets: str | None = None,
    recipes: str | None = None,
    seeds: int = 3,
    epochs: int | None = None,
    rows: int | None = None,
    steps: int | None = None,
    weights: str | None = None,
    budget: str | None = None,
    regime: str = "long",
) -> BenchJob:
    """The words of a command line as settings, each checked before anything runs."""
    if name not in NAMES:
        raise unknown_name(name, NAMES)
    seconds = duration(budget)
    if name == "all" and seconds is None:
        raise InputError("bench: budget must be given for all, as --budget 2h, got none.")
    require(regime in REGIMES, "bench", "regime", f"one of {', '.join(REGIMES)}", regime)
    settings: dict[str, Any] = {"seeds": seeds, "epochs": epochs, "rows": rows, "steps": steps}
    own = FIGURES[name].regime if name in FIGURES else OF_ONE_REGIME.get(name)
    if own is not None:
        require(regime in ("long", own), "bench", "regime", f"{own} for {name}", regime)
        regime = own
    settings["regime"] = regime
    if datasets is not None:
        settings["datasets"] = _names(datasets)
    elif name in FIGURES:
        settings["datasets"] = FIGURES[name].datasets
    if recipes is not None:
        settings["recipes"] = _names(recipes)
    elif name in FIGURES:
        settings["recipes"] = FIGURES[name].recipes
    if weights is not None:
        settings["weights"] = tuple(_number(word) for word in _names(weights))
    lists = {"datasets": datasets, "recipes": recipes}
    given = frozenset(n for n, value in lists.items() if value is not None)
    return BenchJob(name, Grid(**settings), seconds, given)


def duration(text: str | None) -> float | None:
    """90s, 30m, 2h, 2h30m as seconds."""
    if text is None:
        return None
    number = r"(?:(\d+(?:\.\d+)?)\s*{})?\s*"
    match = re.fullmatch("".join(map(number.format, UNITS)), text.strip().lower())
    parts = zip(match.groups(), UNITS.values(), strict=True) if match else ()
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
    request: BenchJob,
    out: str | os.PathLike[str],
    *,
    kind: str | Engine = "processes",
    workers: int | None = None,
    address: str | None = None,
    watch: Watch | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> BenchOutcome:
    """Make what was asked for; of "all", what the budget allows, as `say` hears."""
    end = None if request.budget is None else time.monotonic() + request.budget

    def left() -> float | None:
        return None if end is None else end - time.monotonic()

    with engine(kind, workers, address) as running:

        def make(name: str, grid: Grid) -> BenchOutcome:
            runner = Runner(out, running, budget=left(), watch=watch, say=say)
            return (run_figure if name in FIGURES else run_table)(name, grid, runner)

        if request.name == "all":
            return _make_all(request, make, left, say)
        return make(request.name, request.grid)


def _make_all(
    request: BenchJob,
    make: Callable[[str, Grid], BenchOutcome],
    left: Callable[[], float | None],
    say: Callable[[str], None],
) -> BenchOutcome:
    """Every table and figure with one seed, then with all if that one took little enough."""
    whole = BenchOutcome()

    def note(text: str) -> None:
        nonlocal whole
        say(text)
        whole = whole.with_(BenchOutcome(notes=[text]))

    for name in ORDER:
        grid = request.grid_of(name)
        if _spent(left()):
            note(f"bench: {name} is left out: the budget is spent.")
            continue
        try:
            bring_data(grid.datasets)
        except R2ETError as error:
            note(f"bench: {name} is left out: {error}")
            continue
        began = time.monotonic()
        made = make(name, replace(grid, seeds=1))
        # The first seed is the one that settings are tried with: no other takes longer.
        needed = (grid.seeds - 1) * (time.monotonic() - began)
        if grid.seeds > 1 and not _spent(left(), needed):
            made = make(name, grid)
        elif grid.seeds > 1:
            note(f"bench: {name} has one seed: more would take up to {_time(needed)}.")
        whole = whole.with_(made)
    return whole


def _spent(seconds: float | None, needed: float = 0.0) -> bool:
    return seconds is not None and seconds <= needed


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
