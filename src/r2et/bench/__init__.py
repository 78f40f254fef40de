"""The benchmark: grids of data, recipe and seed -> records -> the papers' tables and figures."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r2et.bench.claim import Claim, load_claims
    from r2et.bench.grid import Grid
    from r2et.bench.method import Method
    from r2et.bench.record import Record, Records
    from r2et.bench.run import BenchOutcome, Runner, run_figure, run_table

# Imported when they are asked for: a worker needs no pictures.
EXPORTS = {
    "Claim": "claim",
    "Grid": "grid",
    "Method": "method",
    "BenchOutcome": "run",
    "Record": "record",
    "Records": "record",
    "Runner": "run",
    "load_claims": "claim",
    "run_figure": "run",
    "run_table": "run",
}
__all__ = [
    "BenchOutcome",
    "Claim",
    "Grid",
    "Method",
    "Record",
    "Records",
    "Runner",
    "load_claims",
    "run_figure",
    "run_table",
]


def __getattr__(name: str) -> Any:
    if name in EXPORTS:
        return getattr(importlib.import_module(f"r2et.bench.{EXPORTS[name]}"), name)
    raise AttributeError(f"module 'r2et.bench' has no attribute {name!r}")
