"""Write docs/results.md from docs/records: `python tools/results.py [--check] [--from OUT ...]`.

--from OUT first takes over what a run left (`r2et bench ... --out OUT`): its claims, replacing
older ones, its records, and pictures of its figures. --own NAME keeps that run apart, in
docs/records/NAME: its networks are not those of the other claims. --again makes the claims anew
from the records that are there, after a change of how numbers are put together.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from PIL import Image

from r2et.bench.archive import pack, replay, unpack
from r2et.bench.claim import load_claims, save_claims
from r2et.bench.draw import draw
from r2et.bench.figures import PICTURES
from r2et.bench.grid import Grid
from r2et.bench.panel import load_panels
from r2et.bench.results import place, results
from r2et.bench.tables import ALIASES, TABLE_NAMES, spec

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
PAGE = ROOT / "docs" / "results.md"
TEXTS = [ROOT / "tools" / name for name in ("summary.md", "why.md")]


def take(source: Path, folder: Path) -> None:
    """A run's claims and records, and its figures drawn anew."""
    shutil.copytree(source / "claims", folder, dirs_exist_ok=True)
    pack(source, folder / "runs")
    for name in PICTURES:
        if (source / "claims" / name).exists():
            picture(name, folder)


def picture(name: str, folder: Path) -> None:
    """One figure, drawn from its panels."""
    title = PICTURES[name].title
    (file,) = draw(name, title, load_panels(folder, name), folder, ends=["png"])
    with Image.open(file) as found:
        small = found.convert("RGB").quantize(64)
    small.save(file, optimize=True)


def again() -> None:
    """Every claim from its records, and every picture from its panels."""
    records = unpack(RECORDS / "runs")
    for table in ("leaderboard", *(n for n in TABLE_NAMES if n not in ALIASES)):
        for old in load_claims(RECORDS, table):
            grid = Grid.of(old.settings, old.data, old.recipe)
            new = replay(spec(table, old.data).plan(grid, old.data, old.recipe), records)
            save_claims([new], RECORDS)
    for name in PICTURES:
        if (place(RECORDS, name) / name).exists():
            picture(name, place(RECORDS, name))


def main() -> None:
    """Rewrite the page, or with --check say that it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--from", dest="sources", type=Path, action="append", default=[])
    parser.add_argument("--own", default="")
    told = parser.parse_args()
    for source in told.sources:
        take(source, RECORDS / told.own)
    if told.again:
        again()
    text = results(RECORDS, "records", *(path.read_text(encoding="utf-8") for path in TEXTS))
    if told.check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("results: docs/results.md must be made anew (python tools/results.py).")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
