"""How well a model predicts, and whether an attack changes what it predicts."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from r2et.checks import check_input, check_model_input, check_same_shape
from r2et.data import Split
from r2et.errors import require
from r2et.models.output import batched_logits, classes, log_odds

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
    out, y = batched_logits(model, x, "auc"), y.detach().cpu().long()
    count = max(out.shape[1], 2)
    low, high = int(y.min()), int(y.max())
    wrong = low if low < 0 else high
    require(low >= 0 and high < count, "auc", "y", f"in 0..{count - 1}", wrong)
    return auc_of_logits(out, y)


def auc_of_logits(out: Tensor, y: Tensor) -> float | None:
    """AUC of (B, C) logits for (B,) classes y; None where y holds a single class.

    Two classes: ranked by log-odds. More: the mean over the classes in y of one against the rest,
    each ranked by its log-odds, which order rows as probabilities do and never round to ties at 1.
    """
    present: Tensor = torch.unique(y)
    if len(present) < 2:
        return None
    out = out.double()
    labels = present if out.shape[1] > 2 else present.new_tensor([1])
    areas = [
        roc_auc_score((y == label).numpy(), log_odds(out, torch.full_like(y, int(label))).numpy())
        for label in labels
    ]
    return float(np.mean(areas))


def split_auc(model: nn.Module, split: Split) -> float | None:
    """cAUC of a part of the data, whatever device the model is on; None for a single class."""
    return auc_of_logits(batched_logits(model, split.x), split.y.cpu())


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
    before, after = (classes(batched_logits(model, points, where)) for points in (x, x_adv))
    return (before != after).to(x.device)
