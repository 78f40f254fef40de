"""Audits in MLflow: figures as metrics, settings as parameters, the page and the JSON as files."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2et.errors import InputError, require
from r2et.wording import finite

if TYPE_CHECKING:
    from r2et.audit.model_audit import Audit

WHERE = "log_mlflow"
LONGEST = 500  # characters of a parameter, which some versions hold
FOLDER = "r2et"  # of the files in a run's artifacts


def log_mlflow(audit: Audit, *, prefix: str = "r2et.", run_id: str | None = None) -> str:
    """Log an audit to MLflow's active run, or to that of run_id; gives the run's id.

    Without either a run is begun and ended. prefix: of the names of metrics, parameters and tags,
    so that those of a training keep theirs. What was not measured is no metric.
    """
    try:
        import mlflow
    except ImportError as error:
        expected = "installed (pip install 'r2et[mlflow]')"
        sentence = f"{WHERE}: mlflow must be {expected}, got no such package."
        raise InputError(sentence) from error
    require(isinstance(prefix, str), WHERE, "prefix", "a text", prefix)
    active = mlflow.active_run()
    if run_id is None and active is not None:
        run_id = str(active.info.run_id)
    if run_id is None:
        with mlflow.start_run(run_name=f"audit of {audit.name}") as begun:
            return log_mlflow(audit, prefix=prefix, run_id=str(begun.info.run_id))
    client = mlflow.MlflowClient()
    from mlflow.entities import Metric, Param, RunTag

    now = int(1000 * time.time())
    metrics = [Metric(f"{prefix}{name}", value, now, 0) for name, value in figures(audit)]
    params = [Param(f"{prefix}{name}", text) for name, text in settings(audit)]
    tags = [RunTag(f"{prefix}{name}", text) for name, text in digests(audit)]
    client.log_batch(run_id, metrics=metrics, params=params, tags=tags)
    with tempfile.TemporaryDirectory(prefix="r2et-mlflow-") as name:
        audit.to_html(Path(name) / "audit.html")
        audit.to_json(Path(name) / "audit.json")
        client.log_artifacts(run_id, name, FOLDER)
    return run_id


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
