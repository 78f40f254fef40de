"""Write what tasks take into the package: `python tools/typical.py OUT`, OUT of `r2et bench`.

One core's seconds for a unit of work, which `r2et bench all` plans with; kinds of task that OUT has
no record of keep what they had, times how much slower OUT's machine was at the others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from r2et.bench.estimate import Estimate
from r2et.bench.record import parse

PLACE = Path(__file__).parents[1] / "src" / "r2et" / "bench" / "typical.json"


def main() -> None:
    """Rewrite typical.json."""
    found = sorted((Path(sys.argv[1]) / "records").glob("*.json"))
    rates = Estimate(map(parse, found)).rates
    PLACE.write_text(json.dumps({"rates": rates}, indent=1) + "\n")


if __name__ == "__main__":
    main()
