"""Write docs/results.md from docs/records: `python tools/results.py [--check] [--from OUT]`.

--from OUT first takes over the claims of a run (`r2et bench ... --out OUT`), replacing older ones.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from r2et.bench.results import results

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
PAGE = ROOT / "docs" / "results.md"


def main() -> None:
    """Rewrite the page, or with --check say that it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--from", dest="source", type=Path)
    told = parser.parse_args()
    if told.source is not None:
        shutil.copytree(told.source / "claims", RECORDS, dirs_exist_ok=True)
    text = results(RECORDS, "records")
    if told.check:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("results: docs/results.md must be made anew (python tools/results.py).")
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
