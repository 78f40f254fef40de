"""Write docs/results.md from docs/records: `python tools/results.py [--check] [--from OUT ...]`.

--from OUT first takes over what a run left (`r2et bench ... --out OUT`): its claims, replacing
older ones, its records, and pictures of its figures.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from PIL import Image

from r2et.bench.archive import pack
from r2et.bench.draw import draw
from r2et.bench.figures import PICTURES
from r2et.bench.panel import load_panels
from r2et.bench.results import results

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
PAGE = ROOT / "docs" / "results.md"
WHY = ROOT / "tools" / "why.md"


def take(source: Path) -> None:
    """A run's claims and records, and its figures drawn anew."""
    shutil.copytree(source / "claims", RECORDS, dirs_exist_ok=True)
    pack(source, RECORDS / "runs")
    for name, picture in PICTURES.items():
        if (source / "claims" / name).exists():
            (file,) = draw(name, picture.title, load_panels(RECORDS, name), RECORDS, ends=["png"])
            with Image.open(file) as found:
                small = found.convert("RGB").quantize(64)
            small.save(file, optimize=True)


def main() -> None:
    """Rewrite the page, or with --check say that it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--from", dest="sources", type=Path, action="append", default=[])
    told = parser.parse_args()
    for source in told.sources:
        take(source)
    text = results(RECORDS, "records", WHY.read_text(encoding="utf-8"))
    if told.check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("results: docs/results.md must be made anew (python tools/results.py).")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
