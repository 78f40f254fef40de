"""Anybody's network on the leaderboard: the same measurements as of ours, and one claim."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import torch
from torch import nn

from r2et.bench.claim import Claim, load_claims, save_claims
from r2et.bench.measure_task import doubts
from r2et.bench.paper_tables import TABLE_SPECS
from r2et.bench.record import Record
from r2et.bench.registry import find_benchmark
from r2et.bench.result_table import ResultTable, make_table, shown
from r2et.bench.table_measurements import MEASUREMENTS
from r2et.bench.table_plan import gathered
from r2et.config import plain
from r2et.errors import InputError, require
from r2et.machine import machine
from r2et.models.weights import weights_digest
from r2et.version import __version__

TABLE = "open"  # claims of anybody's networks, beside those of the benchmark's tables
WHERE = "leaderboard"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
SPEC = replace(
    TABLE_SPECS["leaderboard"],
    name=TABLE,
    about="Whatever their accuracy: it stands beside.",
)
COLUMNS = SPEC.columns


def evaluate(
    model: nn.Module,
    name: str,
    data: str = "adult",
    *,
    reported: Mapping[str, float] | None = None,
    by: str = "",
    source: str = "",
) -> Claim:
    """Measure a network as the leaderboard does: AUC, top-k sets, P@k under StrongAttack, proved.

    name: of its row. data: of the benchmark; its k, its region and its first test rows are fixed.
    reported: what its makers say of it, by column (proved, strongattack, cauc,
        sets); P@k and shares in percent.
    by, source: who made it, and where it is to be had.
    """
    check_name(name)
    require(isinstance(model, nn.Module), WHERE, "model", "a torch.nn.Module", type(model).__name__)
    benchmark = find_benchmark(data)
    require(benchmark.is_table, WHERE, "data", "a table of the benchmark", data)
    claimed = check_reported(reported)
    rows = benchmark.load()
    _check_fits(model, rows.test.x[:1], int(rows.train.y.max()) + 1)
    began, numbers, settings = time.monotonic(), {}, {}
    results: dict[str, Record] = {}
    for column in COLUMNS:
        kind = MEASUREMENTS[column.kind]
        if column.kind not in results:
            try:
                measured = kind(benchmark, model, rows)
                results[column.kind] = Record({}, measured, unreliable=doubts(measured))
            except InputError as error:  # such as an operator that no proof is known for
                results[column.kind] = Record({}, failed=str(error))
            settings[column.kind] = plain(kind.settings(benchmark))
        numbers[column.key] = gathered(column, [results[column.kind]], claimed.get(column.key))
    made = {
        "r2et": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        **machine(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "seconds": round(time.monotonic() - began, 1),
    }
    about = {"k": benchmark.k, "seeds": 1, "weights_sha256": weights_digest(model)}
    more = {"by": by, "source": source, "rules": settings}
    return Claim(TABLE, data, name, {}, (), numbers, {**about, **more}, made)


def claim_lines(claim: Claim) -> list[str]:
    """Measured and reported figures in the table's own units, a line each."""
    lines = []
    for column in COLUMNS:
        values = claim.numbers[column.key]
        measured = values.failed or (
            "not measured" if values.mean is None else shown(column, values)
        )
        beside = "" if values.reported is None else f" (reported {values.reported:g})"
        lines.append(f"{column.key:14}{measured}{beside}")
    return lines


def check_name(name: str) -> None:
    """A name that a file can have, and a table can show."""
    is_valid = isinstance(name, str) and NAME.fullmatch(name) is not None
    expected = "letters, digits, '.', '_' and '-', 60 at most, beginning with a letter or digit"
    require(is_valid, WHERE, "name", expected, name)


def check_reported(reported: Mapping[str, float] | None) -> dict[str, float]:
    """Numbers by column, as the table shows them: shares in percent, AUC up to 1, sets in rows."""
    columns = {column.key: column for column in COLUMNS}
    for key, value in (reported or {}).items():
        require(key in columns, WHERE, "reported", f"of {', '.join(columns)}", key)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        most = 1e9 if key == "sets" else columns[key].scale
        expected = "a number, 0 or more" + ("" if key == "sets" else f", at most {most:g}")
        require(number and 0 <= value <= most, WHERE, f"reported {key}", expected, value)
    return dict(reported or {})


def parse_reported(text: str | None) -> dict[str, float]:
    """Of a command line: "proved=97,cauc=0.88"."""
    numbers = {}
    for part in (text or "").split(",") if text else ():
        key, _, value = part.partition("=")
        try:
            numbers[key.strip()] = float(value)
        except ValueError:
            require(False, WHERE, "reported", "numbers as proved=97,cauc=0.88", text)
    return numbers


def _check_fits(model: nn.Module, x: torch.Tensor, classes: int) -> None:
    try:
        with torch.no_grad():
            out = model(x)
    except Exception as error:  # somebody's code may raise anything
        got = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(".")
        expected = f"one that takes rows of shape {tuple(x.shape[1:])}"
        raise InputError(f"{WHERE}: model must be {expected}, got {got}.") from error
    width = out.shape[1] if isinstance(out, torch.Tensor) and out.ndim == 2 else 1
    fits = isinstance(out, torch.Tensor) and (width == classes or (classes == 2 and width == 1))
    shape = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
    require(fits, WHERE, "model", f"one of {classes} classes", f"outputs of shape {shape}")


def add(claim: Claim, folder: str | os.PathLike[str]) -> Path:
    """Write a claim as a file of its own in a folder; returns its path."""
    save_claims([claim], Path(folder))
    return Path(folder) / claim.name


def leaderboards(folder: str | os.PathLike[str]) -> list[ResultTable]:
    """A table for each dataset of the claims in a folder, best first."""
    claims = load_claims(Path(folder), TABLE)
    expected = f"a folder with claims, {TABLE}/*.json (`r2et leaderboard add` writes them)"
    require(bool(claims), WHERE, "out", expected, os.fspath(folder))
    return [make_table(SPEC, data, data, claims) for data in dict.fromkeys(c.data for c in claims)]
