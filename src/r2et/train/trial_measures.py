"""What is measured of one training of a search, on validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor, nn

from r2et.attack import StrongAttack
from r2et.certify import IntervalCertifier
from r2et.data import Data
from r2et.errors import InputError
from r2et.explain import Explainer
from r2et.models.output import log_odds
from r2et.rank import distinct_top_k
from r2et.region import L2

PROVED_ROWS, ATTACKED_ROWS = 100, 50  # validation rows that stability is measured on
MANY_FEATURES = 1000  # beyond, nothing is proved or attacked here
NORMAL = 1.96  # standard errors to either side: 95 %
FEW = 10  # rows of a class: of fewer, DeLong's standard error says nothing


def can_tell(y: Tensor) -> bool:
    """Whether rows of classes y (B,) are enough to compare two AUCs by."""
    rows = torch.unique(y, return_counts=True)[1]
    return len(rows) > 1 and int(rows.min()) >= FEW


def auc_drop(before: Tensor, after: Tensor, y: Tensor) -> tuple[float, float]:
    """How far the AUC of logits `after` is below that of `before`, and half its 95 % interval.

    Both (B, C), of the same rows, of classes y (B,). The standard error is DeLong's of a
    difference: what both get wrong alike does not count. Of more than two classes the mean of one
    against the rest, whose standard error is at most the mean of theirs.
    """
    present = torch.unique(y).tolist()
    labels = present if before.shape[1] > 2 else [1]
    drops, errors = [], []
    for label in labels:
        of_class = (y == label).numpy()
        target = torch.full_like(y, label)
        pair = [
            _placements(log_odds(out.double(), target).numpy(), of_class) for out in (before, after)
        ]
        inside, outside = (a - b for a, b in zip(*pair, strict=True))
        drops.append(float(inside.mean()))
        spread = sum(float(np.var(part)) / max(len(part) - 1, 1) for part in (inside, outside))
        errors.append(spread**0.5)
    return float(np.mean(drops)), NORMAL * float(np.mean(errors))


def _placements(
    scores: NDArray[np.float64], of_class: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each row of a class the share of others that it is above; for each other, of those above.

    The mean of either is the AUC; ties count by half.
    """
    inside, outside = scores[of_class], scores[~of_class]
    rank = rankdata(scores)
    above = (rank[of_class] - rankdata(inside)) / len(outside)
    below = 1 - (rank[~of_class] - rankdata(outside)) / len(inside)
    return above, below


def stability(
    model: nn.Module, data: Data, explainer: Explainer, k: int, radius: float, *, of_reasons: bool
) -> dict[str, Any]:
    """proved, attacked and distinct of WeightTrial, on the first validation rows.

    Proved without branch and bound, which takes minutes where columns have bins.
    """
    few = data.val.x[:PROVED_ROWS]
    if of_reasons or few[0].numel() > MANY_FEATURES:
        return {"proved": None, "attacked": None, "distinct": None}
    region = L2(radius)
    proved = None
    try:
        certificate = IntervalCertifier(limit=radius * 1.01, splits=0)(model, explainer, few, k=k)
        proved = float((certificate.radius >= radius).double().mean())
    except InputError:
        pass  # a network or an explanation that no proof is known for
    attack = StrongAttack(region, budget="fast", progress=False)
    attacked = attack(model, explainer, few[:ATTACKED_ROWS], k=k)
    return {
        "proved": proved,
        "attacked": float(attacked.precision.mean()),
        "distinct": distinct_top_k(explainer(model, few), k),
    }
