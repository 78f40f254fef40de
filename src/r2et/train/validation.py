"""What is watched while a network learns: its AUC, and how thick its explanations are."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from r2et.data import Split
from r2et.errors import row_numbers
from r2et.explain import Explainer
from r2et.explain.base import CHUNK_NUMBERS
from r2et.models.output import log_odds, logits, undisturbed
from r2et.rank import thickness
from r2et.region import L2

WATCHED = 128  # rows whose thickness is measured after each epoch


def outputs(model: nn.Module, x: Tensor, where: str = "outputs") -> Tensor:
    """(B, C) logits in eval mode, without a graph, on the CPU, in bounded memory."""
    rows = max(1, CHUNK_NUMBERS // x[0].numel())
    device = next((p.device for p in model.parameters()), x.device)
    parts = []
    with undisturbed(model), torch.no_grad():
        for start in range(0, len(x), rows):
            with row_numbers(start.__add__):
                parts.append(logits(model, x[start : start + rows].to(device), where).cpu())
    return torch.cat(parts)


def area(out: Tensor, y: Tensor) -> float | None:
    """AUC of (B, C) logits for (B,) classes y; None where y holds a single class.

    Two classes: ranked by log-odds. More: the mean over the classes in y of one against the rest,
    each ranked by its log-odds, which order rows as probabilities do and never round to ties at 1.
    """
    present: Tensor = torch.unique(y)
    if len(present) < 2:
        return None
    out = out.double()
    labels = present if out.shape[1] > 2 else present.new_tensor([1])
    found = [
        roc_auc_score((y == label).numpy(), log_odds(out, torch.full_like(y, int(label))).numpy())
        for label in labels
    ]
    return float(np.mean(found))


def auc(model: nn.Module, split: Split) -> float | None:
    """cAUC of a part of the data, one against the rest for many classes; None for one class."""
    return area(outputs(model, split.x), split.y.cpu())


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
