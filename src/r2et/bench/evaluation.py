"""Anybody's network on the leaderboard: the same measurements as of ours, and one claim."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import torch
from torch import nn

from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.bench.claim import Claim, claim_files, load_claims, save_claims
from r2et.bench.claim_rules import is_name
from r2et.bench.measure_task import doubts
from r2et.bench.paper_tables import TABLE_SPECS
from r2et.bench.record import Record
from r2et.bench.registry import find_benchmark
from r2et.bench.result_table import ResultTable, make_table, shown
from r2et.bench.table_measurements import MEASUREMENTS
from r2et.bench.table_plan import gathered
from r2et.config import plain
from r2et.errors import InputError, printable, require
from r2et.files import write_new
from r2et.machine import machine
from r2et.models.weights import weights_digest
from r2et.version import __version__

TABLE = "open"  # claims of anybody's networks, beside those of the benchmark's tables
WHERE = "leaderboard"
SPEC = replace(
    TABLE_SPECS["leaderboard"],
    name=TABLE,
    about="Whatever their accuracy: it stands beside.",
    open_to_all=True,
)
COLUMNS = SPEC.columns
NEEDED = ("cauc", "strongattack")  # without them there is nothing to show; a proof may be unknown
ROUNDING = 1e-5  # of a slope, as float32 computes it
LONGEST = 300  # characters of what is said about a network


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
    benchmark = table_benchmark(data)
    claimed = check_reported(reported)
    check_about(by, source)
    rows = benchmark.load()
    _check_fits(model, rows.test.x[:1], int(rows.train.y.max()) + 1)
    mode = "the model in train mode"
    require(not model.training, WHERE, "model", "in eval mode (call model.eval())", mode)
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
    for key in NEEDED:
        failed = numbers[key].failed
        require(failed is None, WHERE, key, "measured", f"an error ({(failed or '').rstrip('.')})")
    made = {
        "r2et": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        **machine(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "seconds": round(time.monotonic() - began, 1),
    }
    about = {"k": benchmark.k, "seeds": 1, "weights_sha256": weights_digest(model)}
    linear = is_linear(model, rows.test.x[: benchmark.strong_rows])
    more = {"linear": linear, "by": by, "source": source, "rules": settings}
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
        tied = "?" if claim.tied(column.key) else ""
        lines.append(f"{column.key:14}{measured}{tied}{beside}")
        lines += [f"{tied:2}{column.key}: {doubt}" for doubt in values.unreliable]
    if claim.settings.get("linear"):
        lines.append("linear, so not compared: one explanation for all rows")
    return [printable(line) for line in lines]


def is_linear(model: nn.Module, x: torch.Tensor) -> bool:
    """Whether the gradient of the log-odds is one for all rows, these and any in 0..1."""
    generator = torch.Generator().manual_seed(0)
    anywhere = torch.rand(x.shape, generator=generator, dtype=x.dtype)
    rows = torch.cat([x, anywhere]).requires_grad_()
    logits = model(rows)
    odds = logits.flatten(1) if logits.ndim > 1 else logits[:, None]
    odds = odds[:, 1:] - odds[:, :1] if odds.shape[1] > 1 else odds
    for each in odds.unbind(1):
        (slope,) = torch.autograd.grad(each.sum(), rows, retain_graph=True)
        range_of = slope.amax(0) - slope.amin(0)
        if bool(range_of.max() > ROUNDING * slope.abs().max()):
            return False
    return True


def check_name(name: str) -> None:
    """A name that a file can have, and a table can show."""
    expected = "letters, digits, '.', '_' and '-', 60 at most, beginning with a letter or digit"
    require(is_name(name), WHERE, "name", expected, name)


def table_benchmark(data: str) -> BenchmarkConfig:
    """The rules of a dataset, which is a table of the benchmark."""
    require(is_name(data), WHERE, "data", "a table of the benchmark", data)
    benchmark = find_benchmark(data)
    require(benchmark.is_table, WHERE, "data", "a table of the benchmark", data)
    return benchmark


def check_about(by: str, source: str) -> None:
    """Who made a network and where it is to be had: a line each."""
    for name, value in {"by": by, "source": source}.items():
        fits = isinstance(value, str) and value.isprintable() and len(value) <= LONGEST
        require(fits, WHERE, name, f"one line of {LONGEST} characters at most", value)


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


def claim_path(folder: str | os.PathLike[str], name: str, data: str) -> Path:
    """Where a network's claim is."""
    check_name(name)
    return Path(folder) / TABLE / f"{table_benchmark(data).data}-{name}.json"


def check_free(path: Path) -> None:
    """No claim is there yet."""
    expected = "of no claim yet (unless it replaces that: --replace, replace=True)"
    require(not os.path.lexists(path), WHERE, "name", expected, f"that of {path}")


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Before work is done for it: claims could be written here. Nothing is made."""
    place = Path(folder) / TABLE
    nearest = next((each for each in (place, *place.parents) if os.path.lexists(each)), place)
    usable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    require(usable, WHERE, "out", "a folder that can be written to", os.fspath(folder))


def add(claim: Claim, folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
    """Write a claim as a file of its own in a folder; returns its path.

    replace: whether it may take the place of a claim of the same name.
    """
    path = Path(folder) / claim.name
    if replace:
        save_claims([claim], Path(folder))
    else:
        check_free(path)
        write_new(WHERE, "name", path, claim.to_json().encode())
    return path


def leaderboards(folder: str | os.PathLike[str]) -> list[ResultTable]:
    """A table for each dataset of the claims in a folder, best first."""
    claims = load_claims(Path(folder), TABLE)
    expected = f"a folder with claims, {TABLE}/*.json (`r2et leaderboard add` writes them)"
    require(bool(claims), WHERE, "out", expected, os.fspath(folder))
    for path, claim in zip(claim_files(Path(folder), TABLE), claims, strict=True):
        check_name(claim.recipe)
        own = claim.name == f"{TABLE}/{path.name}"
        require(own, WHERE, "claim", f"in {claim.name}, as it says", f"{path}")
    return [make_table(SPEC, data, data, claims) for data in dict.fromkeys(c.data for c in claims)]
