"""Does memory stay flat? `python perf/soak.py [--minutes 60]`

The same round again and again in one process: train, explain, attack, prove, audit, write the page,
read it back, pack it and open the pack, give reasons. Resident memory is noted after each round.
What a first rounds' caches take is no leak: the record compares the last quarter of the rounds with
the second.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from r2et import audit, reasons
from r2et.audit import open_pack
from r2et.data import Data, load
from r2et.data.dataset import Split
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.rank import thickness
from r2et.region import L2
from r2et.report import page, read_audit
from r2et.train import fit, load_trained
from recording import save

PAGE = 4096


def resident() -> float:
    """Megabytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def open_files() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def small(data: Data, rows: int = 120) -> Data:
    """The first rows of each part."""
    parts = {n: Split(*(v[:rows] for v in getattr(data, n))) for n in ("train", "val", "test")}
    return replace(data, **parts)


def one_round(data: Data, number: int, folder: Path) -> None:
    """Most of what the library does, once."""
    recipe = ("vanilla", "r2et", "certified")[number % 3]
    out = folder / "model"
    settings = {"out": out, "resume": False, "progress": False, "baselines": False}
    fit(MLP(28, (16,)), data, recipe, k=8, epochs=1, seed=number, **settings)
    trained = load_trained(out)
    x, y = data.test.x[:3], data.test.y[:3]
    result = audit(trained.model, x, y, k=4, region=L2(0.1), budget="fast", seed=number)
    result.to_json(folder / "audit.json")
    page([read_audit(folder / "audit.json")], folder / "page.html")
    if number % 10 == 0:  # a browser's start for the PDF takes seconds
        result.to_pack(folder / f"{number}.zip", trained.model)
        open_pack(folder / f"{number}.zip")
        (folder / f"{number}.zip").unlink()
    reasons(trained.model, x, k=2, baseline=0.0, region=L2(0.1)).to_json(folder / "reasons.json")
    thickness(trained.model, x, 4, explainer=Gradient(), region=L2(0.1), samples=8)


def main() -> None:
    """Soak, and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    minutes = parser.parse_args().minutes
    torch.set_num_threads(1)
    data, began = small(load("adult")), time.monotonic()
    memory: list[float] = []
    files: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - began < 60 * minutes:
            one_round(data, len(memory), Path(folder))
            gc.collect()
            memory.append(round(resident(), 1))
            files.append(open_files())
    quarter = max(1, len(memory) // 4)
    early, late = memory[quarter : 2 * quarter] or memory, memory[-quarter:]
    growth = statistics.median(late) - statistics.median(early)
    record: dict[str, Any] = {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "rounds": len(memory),
        "resident_mb": memory[:: max(1, len(memory) // 100)],
        "growth_mb": round(growth, 1),
        "growth_share": round(growth / statistics.median(early), 4),
        "most_open_files": max(files[quarter:] or files),
        "open_files_first_and_last": [files[0], files[-1]],
    }
    save("soak", record)
    print(record)


if __name__ == "__main__":
    main()
