"""A trained network as `fit` and `r2et train` leave it in a folder, ready for later rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from r2et.data import Schema, apply_schema
from r2et.errors import InputError, describe, first_line, require
from r2et.models import load_extra, load_model
from r2et.models.folder import folder_path
from r2et.train.baselines import Baselines
from r2et.train.seen_rows import SeenRows

NEEDED = ("k", "radius", "recipe", "data", "names", "classes", "schema")


@dataclass(frozen=True)
class Trained:
    """A stored network (eval mode, on the CPU) and what it was trained on.

    k, radius: those of its training.
    recipe, data: names of what it was trained by and on.
    names: of its features, empty for pixels.
    classes: labels in the order of its outputs.
    schema: how a table's cells become x; None for other data.
    extra: everything that was stored with it.
    seen: fingerprints of the rows it was trained on, and its test rows; None where they are gone.
    """

    model: nn.Module
    k: int
    radius: float
    recipe: str
    data: str
    names: tuple[str, ...]
    classes: tuple[str, ...]
    schema: Schema | None
    extra: dict[str, Any]
    seen: SeenRows | None = None

    @property
    def baselines(self) -> Baselines | None:
        """What logistic regression and boosting reach, fitted on its training rows."""
        stored = self.extra.get("baselines")
        return None if stored is None else Baselines.from_json(stored)

    @property
    def mean(self) -> Tensor | None:
        """(n,) float64, the mean of its training rows; None where it was not kept."""
        stored = self.extra.get("mean")
        return None if stored is None else torch.tensor(stored, dtype=torch.float64)

    def read(self, source: Any, **writing: Any) -> tuple[Tensor, Tensor | None]:
        """Rows of a file or DataFrame as x and, where it has the target, y: see apply_schema."""
        if self.schema is None:
            require(False, "Trained.read", "the model", "one of a table", f"one of {self.data}")
        assert self.schema is not None
        return apply_schema(self.schema, source, **writing)


def load_trained(folder: str | os.PathLike[str]) -> Trained:
    """What `fit(..., out=folder)` or `r2et train ... -o folder` stored."""
    model, extra = load_model(folder), load_extra(folder)
    lacking = [name for name in NEEDED if name not in extra]
    expected = "one that fit or `r2et train` has written"
    got = f"{folder}, whose model.json does not say {', '.join(lacking)}"
    require(not lacking, "load_trained", "folder", expected, got)
    name = extra.get("rows")
    is_inside = name is None or (isinstance(name, str) and os.path.basename(name) == name)
    source = f"{folder}: model.json: rows"
    require(is_inside, "load_trained", source, "the name of a file in the folder", name)
    seen = None if name is None else SeenRows.load(folder_path("load_trained", folder) / str(name))
    try:
        trained = described(model, extra, seen)
        mean, _ = trained.mean, trained.baselines
        if mean is not None and mean.ndim != 1:
            raise ValueError("mean")
    except InputError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RuntimeError) as error:
        got = f"{folder} ({type(error).__name__}: {describe(first_line(error))})"
        raise InputError(f"load_trained: folder must be {expected}, got {got}.") from error
    return trained


def described(model: nn.Module, extra: Mapping[str, Any], seen: SeenRows | None) -> Trained:
    """A network together with what its training stores beside it."""
    schema = extra["schema"]
    return Trained(
        model=model,
        k=int(extra["k"]),
        radius=float(extra["radius"]),
        recipe=str(extra["recipe"]),
        data=str(extra["data"]),
        names=tuple(extra["names"]),
        classes=tuple(extra["classes"]),
        schema=None if schema is None else Schema.from_json(schema),
        extra=dict(extra),
        seen=seen,
    )
