"""An audit of many rows, in time and memory: writes perf/records/audit.json.

`python perf/audit.py` trains a plain network on Adult and audits 2500, 5000 and 10 000 rows at the
standard budget, in one process per core; ten minutes on two cores. Memory is the most that any one
process held at a time, above what it held after its imports.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import torch

from r2et import audit
from r2et.data import load
from r2et.engine.base import usable_cores
from r2et.region import L2
from r2et.train import fit
from recording import save

ROWS = (2500, 5000, 10_000)
RADIUS = 1.0


def megabytes(who: int) -> float:
    """The most that this process, or the largest of its children, has held so far."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(who).ru_maxrss / unit


def main() -> None:
    """Audit, print, record."""
    torch.set_num_threads(1)
    data = load("adult")
    model = fit(None, data, "vanilla", k=data.k, epochs=10, progress=False).model
    audit(model, *data.test, k=data.k, region=L2(RADIUS), rows=8, engine="processes", budget="fast")
    imported = megabytes(resource.RUSAGE_SELF), megabytes(resource.RUSAGE_CHILDREN)
    x, y = data.train
    found: list[dict[str, Any]] = []
    for rows in ROWS:
        began = time.perf_counter()
        result = audit(
            *(model, x[:rows], y[:rows]), k=data.k, region=L2(RADIUS), engine="processes"
        )
        seconds = time.perf_counter() - began
        told = result.summary()
        names = ("precision_strong", "certified_precision", "radius_attacked_median")
        found.append(
            {
                "rows": rows,
                "seconds": seconds,
                "processor_seconds": result.result["durations"],
                "megabytes_above_import": megabytes(resource.RUSAGE_SELF) - imported[0],
                "megabytes_of_a_worker_above_import": megabytes(resource.RUSAGE_CHILDREN)
                - imported[1],
                **{name: told[name] for name in names},
            }
        )
        print(found[-1], flush=True)
        settings = {"data": "adult", "k": data.k, "radius": RADIUS, "budget": "standard"}
        save("audit", {**settings, "workers": usable_cores(), "results": found})


if __name__ == "__main__":
    main()
