"""An audit that outlives its processes: writes perf/records/large_audit.json.

`python perf/large_audit.py [ROWS CHUNK]` audits a table of random numbers on the Ray engine with
two worker processes at the fast budget, one chunk of the table after the other: its proofs, P@k
under noise and its AUC for every row. (Attacks look at many points of each row, and a few hundred
rows tell what they find.) On the way a worker is ended by SIGKILL, later the driver, which is
started again and goes on from its file. Memory of driver and workers is looked at throughout. A
sample is audited by one process, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import torch

from recording import save

FEATURES, HIDDEN, K, RADIUS = 12, 16, 3, 0.1
ROWS, CHUNK, SAMPLE, WORKERS = 1_000_000, 5000, 15_000, 2
MEASURED = ("clean", "certified", "noise")


def drive(rows: int, chunk: int, engine: str, partial: str, out: str) -> None:
    """The audit itself, in a process of its own; a digest of all that it says of each row."""
    from r2et import audit
    from r2et.audit.measures import MEASURES
    from r2et.models import MLP
    from r2et.region import L2

    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name in set(MEASURES) - set(MEASURED):
        del MEASURES[name]
    model = MLP(FEATURES, (HIDDEN,), activation="softplus").eval()
    x = torch.rand(rows, FEATURES)
    y = (x[:, 0] + 0.2 * torch.randn(rows) > 0.5).long()
    began = time.perf_counter()
    result = audit(
        *(model, x, y),
        k=K,
        region=L2(RADIUS),
        budget="fast",
        chunk=chunk,
        engine=engine,  # type: ignore[arg-type]
        workers=None if engine == "serial" else WORKERS,
        partial=partial,
    )
    summary = result.summary()
    text = json.dumps(result.result["rows"], sort_keys=True)
    names = ("certified_share", "precision_noise", "auc_clean", "rows")
    told = {
        "seconds": time.perf_counter() - began,
        "processor_seconds": sum(result.result["durations"].values()),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        **{name: summary[name] for name in names},
    }
    Path(out).write_text(json.dumps(told))


class Watched:
    """A driver and its Ray workers, started here and looked at from outside."""

    def __init__(self, size: tuple[int, int], engine: str, folder: Path, name: str) -> None:
        self.partial, self.out = folder / f"{name}.partial", folder / f"{name}.json"
        command = [sys.executable, __file__, "--drive", *map(str, size), engine]
        self.process = subprocess.Popen([*command, str(self.partial), str(self.out)])
        self.memory: list[dict[str, float]] = []

    def chunks(self) -> int:
        """How many are on disk."""
        return self.partial.read_bytes().count(b"\n") - 1 if self.partial.exists() else 0

    def family(self) -> list[psutil.Process]:
        """All processes that the driver has started."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def workers(self) -> list[psutil.Process]:
        """Those that measure."""
        return [p for p in self.family() if any("ray::_attempt" in c for c in command_of(p))]

    def look(self) -> None:
        """Note what driver and workers hold."""
        try:
            driver = psutil.Process(self.process.pid).memory_info().rss
            workers = [p.memory_info().rss for p in self.workers()]
        except psutil.NoSuchProcess:
            return
        entry = {"chunks": self.chunks(), "driver": driver / 2**20}
        self.memory.append(entry | {"worker": max(workers, default=0) / 2**20})

    def until(self, chunks: int) -> None:
        """Wait for so many chunks on disk, or for the end."""
        while self.process.poll() is None and self.chunks() < chunks:
            time.sleep(1.0)
            self.look()

    def kill_worker(self) -> int:
        """End one worker at once; how many there were."""
        some = self.workers()
        if some:
            some[0].send_signal(signal.SIGKILL)
        return len(some)

    def kill_driver(self) -> None:
        """End the driver at once, and what it leaves behind."""
        left = self.family()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for process in left:
            if process.is_running():
                process.kill()

    def result(self) -> dict[str, Any]:
        """What the driver wrote."""
        told: dict[str, Any] = json.loads(self.out.read_text())
        return told


def command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def killed_and_resumed(rows: int, chunk: int, folder: Path) -> dict[str, Any]:
    """The whole table: a worker killed at a quarter, the driver at half."""
    total = -(-rows // chunk)
    began = time.perf_counter()
    first = Watched((rows, chunk), "ray", folder, "whole")
    first.until(total // 4)
    workers = first.kill_worker()
    first.until(total // 2)
    at_kill = first.chunks()
    first.kill_driver()
    second = Watched((rows, chunk), "ray", folder, "whole")
    second.until(total + 1)
    second.process.wait()
    return {
        **second.result(),
        "wall_seconds": time.perf_counter() - began,
        "chunks": total,
        "chunks_when_the_driver_was_killed": at_kill,
        "workers_seen": workers,
        "memory_before": first.memory,
        "memory_after": second.memory,
    }


def sample(rows: int, chunk: int, folder: Path) -> dict[str, Any]:
    """A few rows on Ray and in one process."""
    told, rows = {}, min(rows, SAMPLE)
    for engine in ("ray", "serial"):
        run = Watched((rows, chunk), engine, folder, engine)
        run.process.wait()
        told[engine] = run.result()
    if told["ray"]["digest"] != told["serial"]["digest"]:
        raise SystemExit("large_audit: Ray and one process give other rows.")
    return {"rows": rows, "same": True, "processor_seconds": told["serial"]["processor_seconds"]}


def main() -> None:
    """Audit, kill, resume, compare, record."""
    if sys.argv[1:2] == ["--drive"]:
        given_rows, given_chunk, engine, partial, out = sys.argv[2:]
        drive(int(given_rows), int(given_chunk), engine, partial, out)
        return
    rows, chunk = (int(text) for text in sys.argv[1:3]) if sys.argv[2:] else (ROWS, CHUNK)
    with tempfile.TemporaryDirectory() as folder:
        whole = killed_and_resumed(rows, chunk, Path(folder))
        alike = sample(rows, chunk, Path(folder))
    settings = {"features": FEATURES, "hidden": HIDDEN, "k": K, "radius": RADIUS, "chunk": chunk}
    made = {**settings, "measures": MEASURED, "budget": "fast", "workers": WORKERS, "rows": rows}
    save("large_audit", {**made, "whole": whole, "sample": alike})
    print({name: value for name, value in whole.items() if not name.startswith("memory")}, alike)


if __name__ == "__main__":
    main()
