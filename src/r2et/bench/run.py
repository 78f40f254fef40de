"""Run tables: plans for every data set and recipe, then files in every format."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from r2et.bench.cases import case, standing
from r2et.bench.claim import Claim, save_claims
from r2et.bench.draw import draw
from r2et.bench.figures import PICTURES
from r2et.bench.grid import Grid
from r2et.bench.panel import Panel
from r2et.bench.reading import said
from r2et.bench.record import Records, prepared, refused
from r2et.bench.render import LEGEND, latex, markdown, page
from r2et.bench.schedule import PASSING, Plan, Watch, carry_out
from r2et.bench.table import Table, make_table
from r2et.bench.tables import spec
from r2et.data.inventory import get, state
from r2et.engine import Engine, engine
from r2et.errors import InputError
from r2et.files import write
from r2et.lock import reserved


@dataclass(frozen=True)
class Outcome:
    """What a run made: tables and panels, the files they are in, and what there is to say."""

    tables: list[Table] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)

    def with_(self, other: Outcome) -> Outcome:
        """This and another run's."""
        notes = list(dict.fromkeys([*self.notes, *other.notes]))
        files, panels = self.files + other.files, self.panels + other.panels
        return Outcome(self.tables + other.tables, files, notes, panels)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every claim and panel, the files, the notes."""
        claims = [asdict(row.claim) for table in self.tables for row in table.rows]
        panels = [asdict(panel) for panel in self.panels]
        files = [str(file) for file in self.files]
        return {"claims": claims, "panels": panels, "files": files, "notes": self.notes}


@dataclass(frozen=True)
class Runner:
    """Where things run and go. budget: seconds after which nothing more is begun.

    say: is told at once of files that are set aside.
    """

    out: str | os.PathLike[str]
    kind: str | Engine = "processes"
    workers: int | None = None
    address: str | None = None
    budget: float | None = None
    watch: Watch | None = None
    say: Callable[[str], None] | None = None

    def __call__(
        self, plans: Iterable[Plan], finish: Callable[[list[Any], Records], Outcome]
    ) -> Outcome:
        """Carry out plans in the folder, alone, and make something of what they return there."""
        until = None if self.budget is None else time.monotonic() + self.budget
        with (
            opened(self.out, self.say) as records,
            engine(self.kind, self.workers, self.address) as run,
        ):
            found = carry_out(plans, records, run, until=until, watch=self.watch)
            return finish(found, records)


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
    """The plans of a table or a figure, one for each data set and recipe."""
    both = [(data, recipe) for data in grid.datasets for recipe in grid.recipes]
    if name in PICTURES:
        return [PICTURES[name].plan(grid, *pair) for pair in both]
    return [spec(name, pair[0]).plan(grid, *pair) for pair in both]


def run_table(name: str, grid: Grid, runner: Runner) -> Outcome:
    """One of TABLE_NAMES or "leaderboard" over a grid: records, claims, and files of tables."""
    at_hand(grid.datasets)

    def finish(claims: list[Claim], records: Records) -> Outcome:
        place = records.folder / "claims"
        whole = [claim for claim in claims if not claim.lacks(*PASSING)]
        save_claims([claim for claim in whole if not _less(claim, place)], place)
        tables = tables_of(name, grid.datasets, claims)
        files = write_tables(spec(name, grid.datasets[0]).name, tables, records.folder)
        return Outcome(tables, files, [*records.notes, *_cut(name, len(claims), len(whole))])

    return runner(plans_of(name, grid), finish)


def _less(claim: Claim, place: Path) -> bool:
    """Whether there is a claim of the same that rests on more seeds."""
    path = place / claim.name
    if not path.exists():
        return False
    before = Claim.from_json(path.read_text(encoding="utf-8"), str(path))
    return bool(before.settings["seeds"] > claim.settings["seeds"])


def run_figure(name: str, grid: Grid, runner: Runner) -> Outcome:
    """One of PICTURES over a grid: records, panels, PNG and PDF."""
    at_hand(grid.datasets)

    def finish(panels: list[Panel], records: Records) -> Outcome:
        save_claims([p for p in panels if not p.failed], records.folder / "claims")
        files = draw(name, PICTURES[name].title, panels, records.folder)
        failed = [f"bench: {p.data}, {p.recipe}: {p.failed}." for p in panels if p.failed]
        return Outcome([], files, [*records.notes, *failed, *said(panels)], panels)

    return runner(plans_of(name, grid), finish)


def _cut(name: str, count: int, whole: int) -> list[str]:
    if whole == count:
        return []
    left = f"{count - whole} of {count} rows of {name} are not whole"
    why = "the time was up, or a worker died; the same command goes on with them"
    return [f"bench: {left}: {why}."]


def at_hand(datasets: Iterable[str]) -> None:
    """Bring all data here before anything is trained; what cannot be had is said at once."""
    for name in datasets:
        case(name)
        if state(name) not in ("here", "built in"):
            get(name, "bench")


def tables_of(name: str, datasets: Iterable[str], claims: Iterable[Claim]) -> list[Table]:
    """One table per data set."""
    some = list(claims)
    return [make_table(spec(name, data), data, standing(data), some) for data in datasets]


def write_tables(name: str, tables: list[Table], folder: Path) -> list[Path]:
    """name.md, name.tex and name.html."""
    title = tables[0].title
    head = f"# {title}\n\n"
    texts = {
        "md": head + "\n".join([*(f"## {t.data}\n\n{markdown(t)}" for t in tables), *LEGEND, ""]),
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
