"""What each training row counts for in the loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from r2et.data import Data
from r2et.errors import require

WHERE = "fit"


def row_weights(data: Data, class_weight: Any = None, sample_weight: Any = None) -> Tensor | None:
    """(rows,) float32 of mean 1, the product of both; None where all rows count alike."""
    rows = len(data.train.y)
    given = data.weights if sample_weight is None else sample_weight
    if given is None and class_weight is None:
        return None
    weights = torch.ones(rows, dtype=torch.float64)
    if given is not None:
        try:
            own = torch.as_tensor(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            own = torch.empty(0)
        is_valid = own.shape == (rows,) and bool((own.isfinite() & (own >= 0)).all())
        expected = f"{rows} numbers from 0 on, one per training row"
        alike = own.shape == (rows,)
        shown = "nan, inf or negative ones" if alike else f"shape {tuple(np.shape(given))}"
        require(is_valid, WHERE, "sample_weight", expected, shown)
        weights = weights * own
    if class_weight is not None:
        weights = weights * _by_class(data, class_weight, weights)[data.train.y.cpu()]
    total = float(weights.sum())
    require(total > 0, WHERE, "sample_weight", "above 0 for some rows", "0 for all")
    counted = (weights * (rows / total)).float()
    y = data.train.y.cpu()
    left, lost = (torch.unique(y[rows]) for rows in (counted > 0, counted == 0))
    name = "sample_weight" if class_weight is None else "class_weight"
    expected = "above 0 for rows of two classes or more"
    alone = len(left) == 1 and bool((lost != left[0]).any())
    require(not alone, WHERE, name, expected, f"0 for all but class {int(left[0])}")
    return counted


def _by_class(data: Data, class_weight: Any, weights: Tensor) -> Tensor:
    """(C,) what a row of each class counts for."""
    y = data.train.y.cpu()
    count = max(len(data.classes), int(y.max()) + 1)
    if isinstance(class_weight, str):
        expected = "None, 'balanced' or a dictionary of weights by class"
        require(class_weight == "balanced", WHERE, "class_weight", expected, class_weight)
        masses = torch.zeros(count, dtype=torch.float64).index_add(0, y, weights)
        return torch.where(masses > 0, 1 / masses, 0.0)
    mapped = isinstance(class_weight, Mapping)
    expected = "None, 'balanced' or a dictionary of weights by class"
    require(mapped, WHERE, "class_weight", expected, class_weight)
    by_class = torch.ones(count, dtype=torch.float64)
    for name, weight in class_weight.items():
        text = str(name)
        place = data.classes.index(text) if text in data.classes else name
        known = isinstance(place, int | np.integer) and bool(0 <= place < count)
        classes = ", ".join(data.classes or map(str, range(count)))
        require(known, WHERE, "class_weight", f"of {classes}", name)
        number = isinstance(weight, int | float | np.floating | np.integer)
        is_valid = number and bool(0 <= weight < float("inf"))
        require(is_valid, WHERE, "class_weight", "numbers from 0 on", weight)
        by_class[place] = weight
    return by_class
