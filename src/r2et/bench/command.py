"""What `r2et bench` was asked for, read and carried out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from r2et.bench.agenda import AgendaItem, agenda, cost
from r2et.bench.claim import in_regime, load_claims
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


@dataclass(frozen=True)
class BenchJob:
    """One run.

    name: of a table or figure, or "all".
    grid: what to run.
    budget: the seconds it may take.
    given: which of datasets, recipes and regime were named.
    """

    name: str
    grid: Grid
    budget: float | None = None
    given: frozenset[str] = frozenset()

    def items(self) -> list[tuple[AgendaItem, Grid]]:
        """Of "all": what is to be made, with its grid; less where data or a regime are named."""
        chosen = []
        for item in agenda(self.grid.seeds):
            if "regime" in self.given and item.regime != self.grid.regime:
                continue
            if "datasets" in self.given:
                some = tuple(d for d in item.datasets if d in self.grid.datasets)
                if not some:
                    continue
                item = replace(item, datasets=some)
            chosen.append((item, item.grid(self.grid, self.given)))
        return chosen


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
    regime: str | None = None,
) -> BenchJob:
    """The words of a command line as settings, each checked before anything runs."""
    if name not in NAMES:
        raise unknown_name(name, NAMES)
    seconds = duration(budget)
    if name == "all" and seconds is None:
        raise InputError("bench: budget must be given for all, as --budget 2h, got none.")
    known = regime is None or regime in REGIMES
    require(known, "bench", "regime", f"one of {', '.join(REGIMES)}", regime)
    settings: dict[str, Any] = {"seeds": seeds, "epochs": epochs, "rows": rows, "steps": steps}
    own = FIGURES[name].regime if name in FIGURES else OF_ONE_REGIME.get(name)
    if own is not None:
        require(regime in (None, own), "bench", "regime", f"{own} for {name}", regime)
    settings["regime"] = own or regime or "long"
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
        if not settings["weights"]:
            raise InputError(f"bench: weights must be numbers, as 0.01,0.1, got {weights!r}.")
    named = {"datasets": datasets, "recipes": recipes, "regime": regime}
    given = frozenset(n for n, value in named.items() if value is not None)
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
            count = workers or (1 if kind == "serial" else os.cpu_count() or 1)
            return AllOfIt(request, make, left, say, count, Path(out)).run()
        return make(request.name, request.grid)


@dataclass
class AllOfIt:
    """Every item of the agenda that the budget allows.

    An item whose known cost is more than what is left waits until the others are through, and so
    does what rests on it; then the time that is left goes into it, as nothing that is done is done
    again.
    """

    request: BenchJob
    make: Callable[[str, Grid], BenchOutcome]
    left: Callable[[], float | None]
    say: Callable[[str], None]
    workers: int
    out: Path
    outcome: BenchOutcome = field(default_factory=BenchOutcome)

    def run(self) -> BenchOutcome:
        """Make what can be made, and say what was not begun and what all of it costs."""
        items = self.request.items()
        self._note(self._whole_cost([item for item, _ in items]))
        waiting: list[tuple[AgendaItem, Grid]] = []
        for item, grid in items:
            needed = 0.0 if self._is_there(item, grid) else (cost(item) or 0.0) / self.workers
            # What a part costs is counted beyond the first table's networks.
            if _spent(self.left(), needed) or any(_rests_on(item, w) for w, _ in waiting):
                waiting.append((item, grid))
            else:
                self._make(item, grid)
        for item, grid in waiting:
            if _spent(self.left()):
                seconds = cost(item)
                about = "" if seconds is None else f", which takes {_time(seconds)} of one worker"
                self._note(f"bench: not begun: {item.title}{about}.")
            else:
                self._make(item, grid)
        return self.outcome

    def _make(self, item: AgendaItem, grid: Grid) -> None:
        try:
            bring_data(grid.datasets)
        except R2ETError as error:
            self._note(f"bench: {item.title} is left out: {error}")
            return
        self.outcome = self.outcome.with_(self.make(item.name, grid))

    def _is_there(self, item: AgendaItem, grid: Grid) -> bool:
        """Whether a folder holds all rows of a table already, with as many seeds."""
        place = self.out / "claims"
        if item.name in FIGURES or not (place / in_regime(item.name, item.regime)).is_dir():
            return False
        stored = load_claims(place, in_regime(item.name, item.regime))
        done = {(c.data, c.recipe) for c in stored if c.settings["seeds"] >= grid.seeds}
        return {(data, recipe) for data in grid.datasets for recipe in grid.recipes} <= done

    def _whole_cost(self, items: Sequence[AgendaItem]) -> str:
        known = [seconds for seconds in map(cost, items) if seconds is not None]
        unknown = len(items) - len(known)
        more = f", and {unknown} of {len(items)} parts whose cost is not known" if unknown else ""
        return f"bench: all of it takes about {_time(sum(known))} of one worker{more}."

    def _note(self, text: str) -> None:
        self.say(text)
        self.outcome = self.outcome.with_(BenchOutcome(notes=[text]))


def _rests_on(item: AgendaItem, first: AgendaItem) -> bool:
    """Whether an item uses the networks of another: the first seed of Table 1 of its data."""
    alike = item.regime == first.regime and set(item.datasets) & set(first.datasets)
    return first.name == "table1" and first.seeds == 1 and bool(alike)


def _spent(seconds: float | None, needed: float = 0.0) -> bool:
    return seconds is not None and seconds <= needed


def _time(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
