"""One training from the outside: a file or a name in, a folder and a report out."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from r2et.data import DATASETS, Data, load, load_table
from r2et.defaults import MAX_AUC_DROP, RADIUS
from r2et.errors import require
from r2et.models.network import check_widths
from r2et.region import Region
from r2et.train.baselines import Baselines
from r2et.train.defaults import default_explainer, default_network
from r2et.train.fit import fit
from r2et.train.recipe import Recipe, recipe
from r2et.train.report import Report, report
from r2et.train.trial_measures import can_tell
from r2et.train.weight_search import WeightSearch, has_weight

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
    search: WeightSearch | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain, flat data for JSON."""
        plain = asdict(self)
        measured = plain.pop("report")
        return {**plain, **measured}


def open_data(source: str, target: str | None = None, k: int | None = None, **columns: Any) -> Data:
    """A named data set, or a CSV or Parquet file whose column `target` is to be predicted.

    columns: what else load_table is told of a file's columns (drop, positive, kinds, weights).
    """
    path = Path(source)
    asked = {name: value for name, value in columns.items() if value}
    if target is None and asked and not path.is_file():
        name, value = next(iter(asked.items()))
        require(
            source not in DATASETS, WHERE, name, f"left out for {source}, a named data set", value
        )
    if target is not None:
        named = source in DATASETS and not path.exists()
        expected = f"left out for {source}, which has its own"
        require(not named, WHERE, "target", expected, target)
        return load_table(source, target, k=k, **asked)
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
    radius: float = RADIUS,
    epochs: int | None = None,
    seed: int = 0,
    hidden: Sequence[int] | None = None,
    resume: bool = True,
    progress: bool = False,
    baselines: bool = True,
    class_weight: Any = None,
    max_auc_drop: float | None = None,
    heavier: bool = True,
    region: Region | None = None,
) -> TrainingRun:
    """Train the usual network for the data, store it in the folder, and measure it.

    baselines: beside logistic regression and boosting on the same rows; tables only.
    class_weight, max_auc_drop, heavier, region: as in fit.
    """
    table = data.train.x.ndim == 2
    is_valid = hidden is None or not chosen.linear
    require(is_valid, WHERE, "hidden", "left out for a linear model", hidden)
    if table and hidden is not None:
        check_widths("MLP", hidden)
        chosen = replace(chosen, hidden=tuple(hidden))
    network = None if table else default_network(data, hidden, seed)
    done = fit(
        network,
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
        baselines=baselines and table,
        class_weight=class_weight,
        max_auc_drop=max_auc_drop,
        heavier=heavier,
        region=region,
    )
    record = done.record
    stored = None if done.trained is None else done.trained.baselines
    beside: Baselines | Literal[False] | None = stored if baselines else False
    return TrainingRun(
        folder=os.fspath(out),
        table=data.schema is not None,
        data=data.name,
        recipe=chosen.name,
        epochs=record["epochs_done"],
        seconds=record["seconds"],
        stopped=record["stopped"],
        search=done.search,
        report=report(done.model, data, k=k, radius=radius, progress=progress, baselines=beside),
    )


def usual_drop(data: Data, chosen: Recipe) -> float | None:
    """What AUC the penalty of a table's recipe may cost; None where no weight is to be found.

    That is where the recipe has none, and where the validation rows are too few to compare by.
    """
    is_table = data.train.x.ndim == 2
    return MAX_AUC_DROP if is_table and has_weight(chosen) and can_tell(data.val.y) else None


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


def column_names(text: str | None) -> list[str]:
    """Names of columns, from "sex,ID"."""
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


def column_kinds(text: str | None) -> dict[str, str]:
    """Kinds of columns, from "zip=category,age=number"."""
    pairs = [part.partition("=") for part in column_names(text)]
    for name, sign, kind in pairs:
        is_valid = bool(name and sign and kind)
        require(is_valid, WHERE, "kinds", "of the form column=kind, as zip=category", text)
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def ignored_columns(data: Data) -> str:
    """What of a table is no feature, and why, in a sentence; empty where all is."""
    dropped = () if data.schema is None else data.schema.dropped
    return "; ".join(f"{name} ({reason})" for name, reason in dropped)


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
