"""How measurements are kept: one JSON file each, with what they were made on."""

from __future__ import annotations

import json
import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from r2et.version import __version__

RECORDS = Path(__file__).parent / "records"


def load_record(name: str) -> dict[str, Any]:
    """What an earlier run wrote."""
    found: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text())
    return found


def save(name: str, measured: dict[str, Any]) -> None:
    """Write records/name.json: versions, machine, date, and what was measured."""
    made_with = {
        "r2et": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }
    RECORDS.mkdir(exist_ok=True)
    text = json.dumps({**made_with, **measured}, indent=1)
    (RECORDS / f"{name}.json").write_text(text + "\n")
