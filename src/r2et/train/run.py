"""One training from the outside: a file or a name in, a folder and a report out."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from r2et.data import DATASETS, Data, load, load_table
from r2et.errors import require
from r2et.train.defaults import default_explainer, default_network
from r2et.train.fit import fit
from r2et.train.recipe import Recipe, recipe
from r2et.train.report import Report, report

WHERE = "train"


@dataclass(frozen=True)
class TrainingRun:
    """What a training was, and what it came to. table: raw rows of a file can be read for it."""

    folder: str
    table: bool
    data: str
    recipe: str
    epochs: int
    seconds: float
    stopped: str | None
    report: Report

    def to_dict(self) -> dict[str, Any]:
        """Plain, flat data for JSON."""
        plain = asdict(self)
        measured = plain.pop("report")
        return {**plain, **measured}


def open_data(source: str, target: str | None = None, k: int | None = None) -> Data:
    """A named data set, or a CSV or Parquet file whose column `target` is to be predicted."""
    path = Path(source)
    if target is not None:
        named = source in DATASETS and not path.exists()
        expected = f"left out for {source}, which has its own"
        require(not named, WHERE, "target", expected, target)
        return load_table(source, target, k=k)
    given = f"the column of {source} to predict"
    require(not path.is_file(), WHERE, "target", given, "nothing")
    file = bool(path.suffix) or len(path.parts) > 1
    require(not file, WHERE, "DATA", "a file that exists or a data set of `r2et data list`", source)
    return load(source)


def train(
    data: Data,
    chosen: Recipe,
    out: str | os.PathLike[str],
    *,
    k: int | None = None,
    radius: float = 0.3,
    epochs: int | None = None,
    seed: int = 0,
    hidden: Sequence[int] | None = None,
    resume: bool = True,
    progress: bool = False,
) -> TrainingRun:
    """Train the usual network for the data, store it in the folder, and measure it."""
    table = data.train.x.ndim == 2
    is_valid = hidden is None or not chosen.linear
    require(is_valid, WHERE, "hidden", "left out for a linear model", hidden)
    layers = chosen.hidden if hidden is None and table else hidden
    done = fit(
        default_network(data, layers, seed),
        data,
        chosen,
        k=k,
        radius=radius,
        epochs=epochs,
        seed=seed,
        out=out,
        resume=resume,
        explainer=None if table else default_explainer(data, of="probability"),
        progress=progress,
    )
    record = done.record
    return TrainingRun(
        folder=os.fspath(out),
        table=data.schema is not None,
        data=data.name,
        recipe=chosen.name,
        epochs=record["epochs_done"],
        seconds=record["seconds"],
        stopped=record["stopped"],
        report=report(done.model, data, k=k, radius=radius, progress=progress),
    )


def changed(name: str, changes: Sequence[str]) -> Recipe:
    """A recipe with changes written as in "weight=0.1"."""
    parts = [change.partition("=") for change in changes]
    for (key, sign, value), text in zip(parts, changes, strict=True):
        is_valid = key.isidentifier() and sign and value
        require(bool(is_valid), WHERE, "a change", "of the form name=value", text)
    return recipe(name, **{key: _value(value) for key, _, value in parts})


def widths(text: str | None) -> tuple[int, ...] | None:
    """Widths of hidden layers, from "32,32"."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    is_valid = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    require(is_valid, WHERE, "hidden", "whole numbers with commas between, as 32,32", text)
    return tuple(int(part) for part in parts)


def _value(text: str) -> Any:
    """A number, True, False or None where it reads as one, in any case; else the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float) else text
