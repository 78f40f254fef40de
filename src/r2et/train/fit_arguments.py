"""What `fit` asks of its arguments before it starts."""

from __future__ import annotations

import math
import numbers
from typing import Any

import torch
from torch import Tensor, nn

from r2et.checks import check_input, check_k
from r2et.data import Data
from r2et.errors import require
from r2et.explain import Explainer
from r2et.models.output import batched_logits


def whole(name: str, value: Any) -> int:
    """A whole number of any kind, numpy's included."""
    is_valid = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    require(is_valid, "fit", name, "a whole number", value)
    return int(value)


def check_arguments(
    radius: Any, keep: Any, threshold: Any, explainer: Any, agree: Any, save_every: Any
) -> None:
    real = {"radius": radius, "save_every": save_every, "agree": agree}
    for name, value in real.items():
        is_valid = isinstance(value, numbers.Real) and not isinstance(value, bool)
        require(is_valid, "fit", name, "a number", value)
    require(0 < radius < math.inf, "fit", "radius", "positive and finite", radius)
    require(save_every >= 0, "fit", "save_every", "0 seconds or more", save_every)
    require(0 <= agree <= 1, "fit", "agree", "in 0..1", agree)
    require(keep in ("last", "best", "above"), "fit", "keep", "last, best or above", keep)
    is_valid = (threshold is not None) == (keep == "above")
    require(is_valid, "fit", "threshold", "given with keep='above', and only then", threshold)
    number = threshold is None or (isinstance(threshold, numbers.Real) and threshold == threshold)
    require(number, "fit", "threshold", "a number", threshold)
    is_valid = explainer is None or isinstance(explainer, Explainer)
    require(is_valid, "fit", "explainer", "None or an Explainer", explainer)


def check_retraining(retrain: Any, check_every: Any) -> None:
    """How often a retraining is compared with the model it started from."""
    if check_every is not None:
        is_valid = type(check_every) is int and check_every > 0 and bool(retrain)
        expected = "None, or a positive number of batches with retrain=True"
        require(is_valid, "fit", "check_every", expected, check_every)


def check_model(model: nn.Module, data: Data, k: int, explainer: Explainer) -> None:
    """The model takes the data, has an output for each class, and something to learn."""
    few = data.train.x[:2]
    weight = next(model.parameters(), None)
    trainable = any(p.requires_grad for p in model.parameters())
    require(trainable, "fit", "model", "one with weights that require a gradient", "none")
    assert weight is not None
    out = batched_logits(model, few, "fit")
    most = max(2, out.shape[1])
    top = max(int(part.y.max()) for part in (data.train, data.val))
    require(top < most, "fit", "data", f"of at most {most} classes for this model", f"class {top}")
    check_k("fit", k, explainer(model, few.to(weight.device)).shape[1])


def check_data(data: Data, labelled: bool) -> None:
    """Rows with classes; two or more of these for training, and where `labelled` for validation."""
    require(isinstance(data, Data), "fit", "data", "a Data (see load, load_table)", data)
    for part in ("train", "val"):
        (x, y), name = getattr(data, part), f"data.{part}"
        check_input("fit", x, f"{name}.x")
        is_valid = isinstance(y, Tensor) and y.dtype == torch.int64 and y.shape == (len(x),)
        require(is_valid, "fit", f"{name}.y", f"an int64 tensor of {len(x)} classes", y)
        require(int(y.min()) >= 0, "fit", f"{name}.y", "classes from 0 on", int(y.min()))
    for part in ("train", "val") if labelled else ("train",):
        labels = torch.unique(getattr(data, part).y).tolist()
        expected = "of two classes or more" + (" for an AUC to keep by" if part == "val" else "")
        require(len(labels) > 1, "fit", f"data.{part}.y", expected, f"only class {labels}")
