"""What is watched while a network learns: its AUC, and how thick its explanations are."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from r2et.data import Split
from r2et.explain import Explainer
from r2et.explain.base import CHUNK_NUMBERS
from r2et.models.output import logits, undisturbed
from r2et.rank import thickness
from r2et.region import L2

WATCHED = 128  # rows whose thickness is measured after each epoch


def outputs(model: nn.Module, x: Tensor) -> Tensor:
    """(B, C) logits in eval mode, without a graph, on the CPU, in bounded memory."""
    rows = max(1, CHUNK_NUMBERS // x[0].numel())
    device = next((p.device for p in model.parameters()), x.device)
    with undisturbed(model), torch.no_grad():
        return torch.cat([logits(model, part.to(device)).cpu() for part in torch.split(x, rows)])


def auc(model: nn.Module, split: Split) -> float | None:
    """cAUC of a part of the data, one against the rest for many classes; None for one class."""
    y = split.y.cpu().numpy()
    if len(np.unique(y)) < 2:
        return None
    out = outputs(model, split.x).double()
    if out.shape[1] <= 2:
        odds = out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0]
        return float(roc_auc_score(y, odds.numpy()))
    present = np.unique(y)
    shares = out.softmax(1).numpy()
    found = [roc_auc_score(y == label, shares[:, label]) for label in present]
    return float(np.mean(found))


def watched_thickness(
    model: nn.Module, explainer: Explainer, x: Tensor, k: int, radius: float
) -> float:
    """Mean share of pairs in order, over the first rows of the validation part (Sec. 4.1)."""
    with undisturbed(model):
        found = thickness(
            model,
            x[:WATCHED],
            k,
            kind="probability",
            explainer=explainer,
            region=L2(radius),
            samples=4,
            points=4,
        )
    return float(found.mean())
