"""Write docs/results.md and docs/results/ from docs/records.

`python tools/results.py [--check] [--from OUT ...]`

--from OUT first takes over what a run left (`r2et bench ... --out OUT`): its claims, replacing
older ones, its records, and pictures of its figures. --run NAME keeps that run apart, in
docs/records/NAME.jsonl.xz: its networks are not those of the other claims. --again makes the claims
anew from the records that are there, after a change of how numbers are put together. --show NAME
prints a claim, a panel or a record.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from PIL import Image

from r2et.bench.agenda import BRAIN_SETS, agenda
from r2et.bench.claim import in_regime
from r2et.bench.figure_layout import draw
from r2et.bench.figure_plans import FIGURES
from r2et.bench.grid import Grid
from r2et.bench.paper_tables import table_spec
from r2et.bench.record import readable
from result_pages.archive import END, Archive, archives
from result_pages.costs import recorded_costs
from result_pages.page import results

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
MAIN = "tables"  # the run that the tables are of
# What shows nothing but what Table 1 has measured; the papers' Table 6 is of brain networks.
OF_TABLE_1 = ("figure7-papers",)
DOCS = ROOT / "docs"
COSTS = ROOT / "src" / "r2et" / "bench" / "costs.json"
TEXTS = [ROOT / "tools" / name for name in ("summary.md", "why.md")]


def kept_runs() -> dict[str, Archive]:
    """Every archive, that of the tables first."""
    runs = archives(RECORDS)
    return {name: runs[name] for name in sorted(runs, key=lambda name: name != MAIN)}


def take(source: Path, run: str) -> None:
    """A run's claims, panels and records, and its figures drawn anew."""
    archive = Archive.read(RECORDS / f"{run}{END}")
    archive.add_run(source)
    add_parts_of_table_1(archive)
    archive.write(RECORDS / f"{run}{END}")
    for figure in FIGURES:
        if archive.panels_of(figure):
            draw_figure(figure, archive)


def add_parts_of_table_1(archive: Archive) -> None:
    """The panels of figures, and the rows of Table 6, that Table 1's records are enough for."""
    for claim in archive.claims_of(in_regime("table1", "papers")):
        if claim.data in BRAIN_SETS:
            grid = Grid.of_claim(claim.settings, claim.data, claim.recipe)
            row = archive.replay(
                table_spec("table6", claim.data).plan(grid, claim.data, claim.recipe)
            )
            archive.claims[row.name] = row
    for figure in OF_TABLE_1:
        plan = FIGURES[figure]
        for claim in archive.claims_of(in_regime("table1", plan.regime)):
            if claim.data in plan.datasets and claim.recipe in plan.recipes:
                grid = Grid.of_claim(claim.settings, claim.data, claim.recipe)
                panel = archive.replay(plan.plan(grid, claim.data, claim.recipe))
                archive.panels[panel.name] = panel


def draw_figure(figure: str, archive: Archive) -> None:
    """One figure, drawn from its panels."""
    panels, title = archive.panels_of(figure), FIGURES[figure].title
    (file,) = draw(figure, title, panels, RECORDS, ends=["png"])
    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(64)
    small.save(file, optimize=True)


def again() -> None:
    """Every claim from its records, and every picture from its panels."""
    for name, archive in kept_runs().items():
        for old in list(archive.claims.values()):
            grid = Grid.of_claim(old.settings, old.data, old.recipe)
            plan = table_spec(old.table, old.data).plan(grid, old.data, old.recipe)
            archive.claims[old.name] = archive.replay(plan)
        add_parts_of_table_1(archive)
        archive.write(RECORDS / f"{name}{END}")
        for figure in FIGURES:
            if archive.panels_of(figure):
                draw_figure(figure, archive)


def show(name: str) -> str:
    """A claim, a panel or a record as readable JSON."""
    for archive in kept_runs().values():
        kept = archive.claims | archive.panels | archive.records
        for key in (name, f"{name}.json"):
            if key in kept:
                return readable(kept[key].to_dict())
    sys.exit(f"results: --show must name what is kept, as table1/adult-r2et, got {name!r}.")


def main() -> None:
    """Rewrite the page, or with --check say that it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--from", dest="sources", type=Path, action="append", default=[])
    parser.add_argument("--run", default=MAIN)
    parser.add_argument("--show")
    options = parser.parse_args()
    if options.show:
        print(show(options.show), end="")
        return
    for source in options.sources:
        take(source, options.run)
    if options.again:
        again()
    texts = [path.read_text(encoding="utf-8") for path in TEXTS]
    pages = results(kept_runs(), *texts)
    if options.sources or options.again:
        costs = recorded_costs(agenda(), kept_runs())
        COSTS.write_text(json.dumps(costs, indent=1) + "\n", encoding="utf-8")
    stale = set((DOCS / "results").glob("*.md")) - {DOCS / name for name in pages}
    if options.check:
        old = [name for name, text in pages.items() if not _holds(DOCS / name, text)]
        old += [str(path.relative_to(DOCS)) for path in sorted(stale)]
        if old:
            sys.exit(f"results: docs/{old[0]} must be made anew (python tools/results.py).")
        return
    (DOCS / "results").mkdir(exist_ok=True)
    for name, text in pages.items():
        (DOCS / name).write_text(text, encoding="utf-8")
    for path in stale:
        path.unlink()


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    main()
