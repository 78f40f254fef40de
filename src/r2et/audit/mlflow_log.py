"""Audits in MLflow: figures as metrics, settings as parameters, the page and the JSON as files."""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2et.errors import InputError, R2ETError, describe, first_line, printable, require
from r2et.wording import finite

if TYPE_CHECKING:
    from r2et.audit.model_audit import Audit

WHERE = "log_mlflow"
LONGEST = 500  # characters of a parameter, which some versions hold
PREFIX = re.compile(r"[A-Za-z0-9_./ -]{0,100}")
FOLDER = "r2et"  # of the files in a run's artifacts


def log_mlflow(audit: Audit, *, prefix: str = "r2et.", run_id: str | None = None) -> str:
    """Log an audit to MLflow's active run, or to that of run_id; gives the run's id.

    Without either a run is begun and ended. prefix: of the names of metrics, parameters and tags,
    so that those of a training keep theirs, and that of a second audit in one run: MLflow changes
    no parameter. What was not measured is no metric.
    """
    try:
        import mlflow
    except ImportError as error:
        expected = "installed (pip install 'r2et[mlflow]')"
        sentence = f"{WHERE}: mlflow must be {expected}, got no such package."
        raise InputError(sentence) from error
    is_prefix = isinstance(prefix, str) and PREFIX.fullmatch(prefix) is not None
    require(is_prefix, WHERE, "prefix", "letters, digits, '_', '-', '.', '/' and spaces", prefix)
    is_id = run_id is None or (isinstance(run_id, str) and bool(run_id))
    require(is_id, WHERE, "run_id", "the id of a run", run_id)
    with _in_one_sentence("MLflow", "able to log the audit"):
        active = mlflow.active_run()
        if run_id is None and active is not None:
            run_id = str(active.info.run_id)
        if run_id is not None:
            return _log(mlflow.MlflowClient(), audit, prefix, run_id)
        with mlflow.start_run(run_name=f"audit of {audit.name}") as begun:
            return _log(mlflow.MlflowClient(), audit, prefix, str(begun.info.run_id))


def _log(client: Any, audit: Audit, prefix: str, run_id: str) -> str:
    from mlflow.entities import Metric, Param, RunTag

    params = {f"{prefix}{name}": text for name, text in settings(audit)}
    with _in_one_sentence("run_id", "that of a run MLflow has"):
        logged = client.get_run(run_id).data.params
    other = [name for name, text in params.items() if logged.get(name, text) != text]
    expected = "another than that of the run's first audit, whose settings are others"
    differing = ", ".join(f"{name} {params[name]} beside {logged[name]}" for name in other[:3])
    require(not other, WHERE, "prefix", expected, f"{prefix} ({differing})")
    now = int(1000 * time.time())
    metrics = [Metric(f"{prefix}{name}", value, now, 0) for name, value in figures(audit)]
    tags = [RunTag(f"{prefix}{name}", text) for name, text in digests(audit)]
    stored = [Param(name, text) for name, text in params.items()]
    client.log_batch(run_id, metrics=metrics, params=stored, tags=tags)
    with tempfile.TemporaryDirectory(prefix="r2et-mlflow-") as name:
        audit.to_html(Path(name) / "audit.html")
        audit.to_json(Path(name) / "audit.json")
        client.log_artifacts(run_id, name, FOLDER)
    return run_id


@contextmanager
def _in_one_sentence(name: str, expected: str) -> Iterator[None]:
    """What MLflow, its store or the network say is ours to say."""
    try:
        yield
    except R2ETError:
        raise
    except Exception as error:
        got = f"an error ({type(error).__name__}: {describe(first_line(error))})"
        sentence = f"{WHERE}: {name} must be {expected}, got {got}."
        raise InputError(printable(sentence)) from error


def figures(audit: Audit) -> Iterator[tuple[str, float]]:
    """The figures of the summary that were measured, with the ends of their intervals."""
    for name, value in audit.summary().items():
        number = finite(value)
        if number is not None and math.isfinite(number):
            yield name, number


def settings(audit: Audit) -> Iterator[tuple[str, str]]:
    """What was asked for, as texts."""
    for name, value in audit.result["settings"].items():
        yield name, str(value)[:LONGEST]


def digests(audit: Audit) -> Iterator[tuple[str, str]]:
    """The model's name, and the SHA-256 of weights and data."""
    yield "model", audit.name
    inputs: Any = audit.result.get("inputs") or {}
    for part in ("data", "weights"):
        sha256 = (inputs.get(part) or {}).get("sha256")
        if sha256:
            yield f"{part}_sha256", str(sha256)
