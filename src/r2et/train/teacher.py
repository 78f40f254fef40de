"""What boosting makes of training rows that it was not shown: a network may learn from it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn
from torch.nn.functional import one_hot

from r2et.data import Data
from r2et.metrics import auc_of_logits
from r2et.models.output import batched_logits
from r2et.progress import bar
from r2et.train.trial_measures import FEW, can_tell

NUMBERS = 1 << 21  # features of all rows, times classes beyond two: of more, labels are enough
FOLDS = 5
SHARE = 0.6  # of what a network is to learn that is the teacher's; the rest is the labels'
LEAST = 1e-4  # of a probability: a teacher is not to be sure
SETTINGS = {"max_iter": 150, "learning_rate": 0.05, "max_leaf_nodes": 15, "early_stopping": False}


def teacher_shares(
    network: nn.Module,
    data: Data,
    seed: int,
    weights: Tensor | None = None,
    *,
    progress: bool = False,
) -> Tensor | None:
    """(rows, classes): how likely each class is, by a row's label and by boosting on other rows.

    Of few rows a network soon knows the labels by heart, and boosting with it; what boosting says
    of rows that it has not seen is smoother than labels are, and tells of interactions. None where
    it is no teacher: where its AUC of the validation rows is not above that of the network as it
    begins, where these are too few to tell, and where the training rows are many.
    weights: (rows,) what training rows count for; those of 0 have no say.
    """
    y, val = data.train.y.cpu(), data.val
    count = max(len(data.classes), int(y.max()) + 1)
    counted = torch.ones(len(y)) if weights is None else weights.cpu()
    rows = (counted > 0).nonzero().flatten()
    present, sizes = torch.unique(y[rows], return_counts=True)
    few = len(present) < 2 or int(sizes.min()) < FEW
    if few or not can_tell(val.y) or int(val.y.max()) >= count:
        return None
    if data.train.x.numel() * (len(present) if len(present) > 2 else 1) > NUMBERS:
        return None
    x, labels = data.train.x[rows].double().cpu().numpy(), y[rows].numpy()
    # Equal rows are in one fold: boosting would know them else.
    first, group = _distinct(x)
    kinds = np.unique(labels[first], return_counts=True)[1]
    if len(kinds) < len(present) or int(kinds.min()) < FOLDS:
        return None
    weight = None if weights is None else counted[rows].double().numpy()
    whole = _fitted(x, labels, weight, seed)
    unseen = _shares(whole, val.x.double().cpu().numpy(), count)
    begins = auc_of_logits(batched_logits(network, val.x, "fit"), val.y.cpu())
    reached = auc_of_logits(unseen.clamp(min=1e-12).log(), val.y.cpu())
    if begins is None or reached is None or reached <= begins:
        return None
    shares = one_hot(y, count).double()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    with bar("teacher", total=FOLDS, show=progress) as advance:
        for _, held in folds.split(first, labels[first]):
            own = np.isin(group, held)
            counts = None if weight is None else weight[~own]
            model = _fitted(x[~own], labels[~own], counts, seed)
            there = rows[torch.from_numpy(own)]
            shares[there] = (1 - SHARE) * shares[there] + SHARE * _shares(model, x[own], count)
            advance(1)
    return shares.float()


def _distinct(x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each distinct row comes first, in this order, and for each row which of them it is."""
    _, first, group = np.unique(x, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group.reshape(-1)]


def _fitted(
    x: NDArray[np.float64], y: NDArray[np.int64], weight: NDArray[np.float64] | None, seed: int
) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**SETTINGS, random_state=seed).fit(x, y, weight)


def _shares(model: HistGradientBoostingClassifier, x: NDArray[np.float64], count: int) -> Tensor:
    """(B, count) probabilities, none of a class that the model knows below LEAST."""
    known = np.clip(model.predict_proba(x), LEAST, None)
    shares = torch.zeros(len(x), count, dtype=torch.float64)
    shares[:, torch.from_numpy(model.classes_)] = torch.from_numpy(
        known / known.sum(1, keepdims=True)
    )
    return shares
