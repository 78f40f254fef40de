"""Run tables: plans for every dataset and recipe, then files in every format."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from r2et.bench.claim import Claim, in_regime, load_claims, save_claims, stored_text
from r2et.bench.figure_layout import draw
from r2et.bench.figure_plans import FIGURES
from r2et.bench.figure_statistics import correlation_sentences
from r2et.bench.grid import Grid
from r2et.bench.panel import Panel
from r2et.bench.paper_tables import table_spec
from r2et.bench.record import Records, prepared, refused
from r2et.bench.registry import BENCHMARKS, dataset_title, find_benchmark
from r2et.bench.result_table import ResultTable, make_table
from r2et.bench.schedule import PASSING, Plan, Watch, carry_out
from r2et.bench.table_formats import latex, legend, markdown, page
from r2et.data.inventory import get, state
from r2et.engine import Engine, engine
from r2et.errors import InputError
from r2et.files import write
from r2et.lock import reserved


@dataclass(frozen=True)
class BenchOutcome:
    """What a run made: tables and panels, the files they are in, and what there is to say."""

    tables: list[ResultTable] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)

    def with_(self, other: BenchOutcome) -> BenchOutcome:
        """This and another run's."""
        notes = list(dict.fromkeys([*self.notes, *other.notes]))
        files, panels = self.files + other.files, self.panels + other.panels
        return BenchOutcome(self.tables + other.tables, files, notes, panels)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every claim and panel, the files, the notes."""
        claims = [asdict(row.claim) for table in self.tables for row in table.rows]
        panels = [asdict(panel) for panel in self.panels]
        files = [str(file) for file in self.files]
        return {"claims": claims, "panels": panels, "files": files, "notes": self.notes}


@dataclass(frozen=True)
class Runner:
    """Where things run and go.

    out: the folder.
    kind, workers, address: of the engine.
    budget: seconds after which nothing more is begun.
    watch: hears of each finished task.
    say: hears at once of files that are set aside.
    """

    out: str | os.PathLike[str]
    kind: str | Engine = "processes"
    workers: int | None = None
    address: str | None = None
    budget: float | None = None
    watch: Watch | None = None
    say: Callable[[str], None] | None = None

    def __call__(
        self, plans: Iterable[Plan], finish: Callable[[list[Any], Records], BenchOutcome]
    ) -> BenchOutcome:
        """Carry out plans in the folder, alone, and make something of what they return there."""
        until = None if self.budget is None else time.monotonic() + self.budget
        with (
            opened(self.out, self.say) as records,
            engine(self.kind, self.workers, self.address) as run,
        ):
            results = carry_out(plans, records, run, until=until, watch=self.watch)
            return finish(results, records)


@contextmanager
def opened(
    out: str | os.PathLike[str], say: Callable[[str], None] | None = None
) -> Iterator[Records]:
    """The records of a folder, made if missing, while no other run is in it."""
    folder = prepared(out)
    with ExitStack() as stack:
        try:
            free = stack.enter_context(reserved(folder / ".running"))
        except OSError as error:
            raise refused(folder, error) from error
        if not free:
            taken = f"{out}, where another run is writing"
            raise InputError(f"bench: out must be a folder of its own, got {taken}.")
        yield Records(folder, say)


def plans_of(name: str, grid: Grid) -> list[Plan]:
    """The plans of a table or a figure, one for each dataset and recipe."""
    both = [(data, recipe) for data in grid.datasets for recipe in grid.recipes]
    if name in FIGURES:
        return [FIGURES[name].plan(grid, *pair) for pair in both]
    return [table_spec(name, pair[0]).plan(grid, *pair) for pair in both]


def run_table(name: str, grid: Grid, runner: Runner) -> BenchOutcome:
    """One of TABLE_NAMES or "leaderboard" over a grid: records, claims, and files of tables.

    A row that is not whole is shown as an earlier run left it, if one did.
    """
    bring_data(grid.datasets)

    def finish(claims: list[Claim], records: Records) -> BenchOutcome:
        kept = records.folder / "claims"
        shown, whole = [], []
        for claim in claims:
            before = _stored(Claim, claim.name, kept)
            is_whole = not claim.lacks(*PASSING)
            if is_whole:
                whole.append(claim)
            shown.append(claim if is_whole or before is None else before)
            if is_whole and (before is None or not _has_more_seeds(before, claim)):
                save_claims([claim], kept)
        tables = tables_of(name, grid.datasets, shown)
        place = in_regime(table_spec(name, grid.datasets[0]).name, grid.regime)
        # Files hold what earlier runs left of this table, too.
        every = {each.name: each for each in (*shown, *load_claims(kept, place))}
        every |= {each.name: each for each in shown}
        known = [data for data in BENCHMARKS if any(c.data == data for c in every.values())]
        files = write_tables(place, tables_of(name, known, every.values()), records.folder)
        return BenchOutcome(tables, files, [*records.notes, *_cut(name, len(claims), len(whole))])

    return runner(plans_of(name, grid), finish)


Stored = TypeVar("Stored", Claim, Panel)


def _stored(kind: type[Stored], name: str, place: Path) -> Stored | None:
    """What an earlier run left of a claim or a panel."""
    path = place / name
    if not path.exists():
        return None
    return kind.from_json(stored_text(kind.__name__.lower(), path), str(path))


def _has_more_seeds(one: Claim, other: Claim) -> bool:
    return bool(one.settings["seeds"] > other.settings["seeds"])


def run_figure(name: str, grid: Grid, runner: Runner) -> BenchOutcome:
    """One of FIGURES over a grid: records, panels, PNG and PDF."""
    bring_data(grid.datasets)

    def finish(panels: list[Panel], records: Records) -> BenchOutcome:
        place = records.folder / "claims"
        save_claims([panel for panel in panels if not panel.failed], place)
        shown = []
        for panel in panels:
            is_cut = any(reason in (panel.failed or "") for reason in PASSING)
            before = _stored(Panel, panel.name, place) if is_cut else None
            shown.append(panel if before is None else before)
        files = draw(name, FIGURES[name].title, shown, records.folder)
        failed = [f"bench: {p.data}, {p.recipe}: {p.failed}." for p in panels if p.failed]
        notes = [*records.notes, *failed, *correlation_sentences(shown)]
        return BenchOutcome([], files, notes, panels)

    return runner(plans_of(name, grid), finish)


def _cut(name: str, count: int, whole: int) -> list[str]:
    if whole == count:
        return []
    left = f"{count - whole} of {count} rows of {name} are not whole"
    why = "the time was up, or a worker died; the same command goes on with them"
    return [f"bench: {left}: {why}."]


def bring_data(datasets: Iterable[str]) -> None:
    """Bring all data here before anything is trained; what cannot be had is said at once."""
    for name in datasets:
        find_benchmark(name)
        if state(name) not in ("here", "built in"):
            get(name, "bench")


def tables_of(name: str, datasets: Iterable[str], claims: Iterable[Claim]) -> list[ResultTable]:
    """One table per dataset."""
    every = list(claims)
    return [
        make_table(table_spec(name, data), data, dataset_title(data), every) for data in datasets
    ]


def write_tables(name: str, tables: list[ResultTable], folder: Path) -> list[Path]:
    """name.md, name.tex and name.html."""
    title = tables[0].title
    head = f"# {title}\n\n"
    parts = [f"## {t.data}\n\n{markdown(t)}" for t in tables]
    texts = {
        "md": head + "\n".join([*parts, *legend(tables), ""]),
        "tex": "\n".join(latex(t) for t in tables),
        "html": page(title, tables),
    }
    files = []
    try:
        for end, text in texts.items():
            files.append(folder / f"{name}.{end}")
            write(files[-1], text.encode())
    except OSError as error:
        raise refused(folder, error) from error
    return files
