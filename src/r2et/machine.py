"""The machine that numbers were computed on."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import torch


def machine() -> dict[str, str]:
    """What the numbers depend on beside the versions.

    Sums are taken in another order by other instructions, and a training carries that on: networks
    repeat to the same bits on the same kind of CPU only.
    """
    kind = torch.backends.cpu.get_cpu_capability()
    size = f"{platform.machine()}, {os.cpu_count()} cores"
    return {"machine": size, "cpu": f"{cpu_model()}, {kind}"}


@cache
def cpu_model() -> str:
    """The name that the processor gives itself, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "unknown"
