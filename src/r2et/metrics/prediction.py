"""How well a model predicts, and whether an attack changes what it predicts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from r2et.checks import check_input, check_model_input, check_same_shape
from r2et.errors import require
from r2et.models.output import classes
from r2et.train.validation import area, outputs

WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def auc(model: nn.Module, x: Tensor, y: Tensor) -> float | None:
    """Area under the ROC curve: P(score of a row of the class > score of another), ties by half.

    0..1, higher is better, 0.5 is chance. cAUC at clean inputs, aAUC at x_adv (B.1.4). Two classes
    are ranked by the log-odds of class 1; of more, it is the mean over the classes in y of one
    against the rest. None where y (B,) holds a single class: there is nothing to rank.
    """
    check_model_input("auc", model, x)
    require(isinstance(y, Tensor), "auc", "y", "a torch.Tensor", type(y).__name__)
    require(y.dtype in WHOLE, "auc", "y", "a tensor of whole numbers (use y.long())", y)
    require(y.shape == (len(x),), "auc", "y", f"of shape ({len(x)},)", y)
    out, y = outputs(model, x, "auc"), y.detach().cpu().long()
    count = max(out.shape[1], 2)
    low, high = int(y.min()), int(y.max())
    wrong = low if low < 0 else high
    require(low >= 0 and high < count, "auc", "y", f"in 0..{count - 1}", wrong)
    return area(out, y)


def changed_predictions(model: nn.Module, x: Tensor, x_adv: Tensor) -> Tensor:
    """(B,) bool, true where argmax f(x_adv) differs from argmax f(x); sensitivity row by row."""
    return _changed("changed_predictions", model, x, x_adv)


def sensitivity(model: nn.Module, x: Tensor, x_adv: Tensor) -> float:
    """Share of predictions that change, |{argmax f(x) != argmax f(x_adv)}| / B (B.1.4).

    0..1, lower is better: for the model that it is robust, for the attack that it stays unseen.
    """
    return float(_changed("sensitivity", model, x, x_adv).double().mean())


def _changed(where: str, model: nn.Module, x: Tensor, x_adv: Tensor) -> Tensor:
    check_model_input(where, model, x)
    check_same_shape(where, x_adv, x, "x_adv", "x")
    require(x_adv.dtype == x.dtype, where, "x_adv", f"of the type of x, {x.dtype}", x_adv)
    check_input(where, x_adv, "x_adv")
    before, after = (classes(outputs(model, points, where)) for points in (x, x_adv))
    return (before != after).to(x.device)
