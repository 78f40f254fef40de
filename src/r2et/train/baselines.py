"""Honest baselines of a table: logistic regression and boosting, fitted on the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from r2et.data import Data, Split
from r2et.metrics import auc_of_logits

NUMBERS = 2**24  # how much a baseline is shown
MOST_CLASSES = 20  # boosting grows a forest for each
LEAST = -1e6  # the log-probability of what a model calls impossible
START_C = 0.03  # of the logistic regression that a network starts at: few rows, small weights
BOOSTING = {"max_iter": 100, "learning_rate": 0.1, "early_stopping": True}


@dataclass(frozen=True, eq=False)
class Logistic:
    """A logistic regression: logits = x @ weight.T + bias, ready to score any rows.

    weight, bias: (C, n) and (C,), of float64.
    auc_val, auc_test: of the parts of the data it was fitted on; None where one has one class.
    """

    weight: Tensor
    bias: Tensor
    auc_val: float | None = None
    auc_test: float | None = None

    def logits(self, x: Tensor) -> Tensor:
        """(B, C) of rows x (B, n)."""
        return x.detach().cpu().flatten(1).double() @ self.weight.T + self.bias

    def auc(self, split: Split) -> float | None:
        """AUC of labelled rows; None where these have one class, or there are none."""
        return auc_of_logits(self.logits(split.x), split.y.cpu()) if len(split.y) else None


@dataclass(frozen=True)
class Boosting:
    """What scikit-learn's HistGradientBoostingClassifier reaches on the same rows.

    settings, seed: with them it can be fitted again.
    """

    settings: dict[str, Any]
    seed: int
    auc_val: float | None
    auc_test: float | None


@dataclass(frozen=True, eq=False)
class FittedBoosting:
    """A fitted HistGradientBoostingClassifier, ready to score any rows.

    settings, seed: what it was fitted with.
    count: of classes; one that the rows lacked is never the likely one.
    """

    model: HistGradientBoostingClassifier
    settings: dict[str, Any]
    seed: int
    count: int

    def logits(self, x: Tensor) -> Tensor:
        """(B, C) log-probabilities of rows x (B, n)."""
        shares = self.model.predict_proba(x.detach().flatten(1).double().cpu().numpy())
        logits = torch.full((len(shares), self.count), LEAST).double()
        logs = np.log(np.clip(shares, 1e-300, None))
        logits[:, torch.from_numpy(self.model.classes_)] = torch.from_numpy(logs)
        return logits

    def described(self, data: Data) -> Boosting:
        """What it reaches on data.val and data.test."""
        areas = (
            auc_of_logits(self.logits(part.x), part.y.cpu()) if len(part.y) else None
            for part in (data.val, data.test)
        )
        return Boosting(self.settings, self.seed, *areas)


@dataclass(frozen=True, eq=False)
class Baselines:
    """What simpler and stronger models make of the training rows; boosting may be left out."""

    logistic: Logistic
    boosting: Boosting | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        logistic = {
            "weight": self.logistic.weight.tolist(),
            "bias": self.logistic.bias.tolist(),
            "auc_val": self.logistic.auc_val,
            "auc_test": self.logistic.auc_test,
        }
        boosting = None if self.boosting is None else asdict(self.boosting)
        return {"logistic": logistic, "boosting": boosting}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Baselines:
        """What to_json described."""
        logistic, boosting = dict(data["logistic"]), data["boosting"]
        for name in ("weight", "bias"):
            logistic[name] = torch.tensor(logistic[name], dtype=torch.float64)
        return cls(Logistic(**logistic), None if boosting is None else Boosting(**boosting))


def some_rows(count: int, most: int) -> Tensor:
    """Which of `count` rows to take where `most` are enough: all, or some at random.

    Always the same ones, and not the first: a table may be sorted by its target.
    """
    if count <= most:
        return torch.arange(count)
    return torch.randperm(count, generator=torch.Generator().manual_seed(0))[:most].sort().values


def fit_baselines(
    data: Data, *, seed: int = 0, weights: Tensor | None = None, boosting: bool = True
) -> Baselines:
    """Fit both on data.train; weights: of its rows (B,). boosting: False leaves that one out."""
    rows = some_rows(len(data.train.y), max(1, NUMBERS // data.train.x[0].numel()))
    x = data.train.x[rows].flatten(1).double().cpu().numpy()
    y = data.train.y[rows].cpu().numpy()
    weight = None if weights is None else weights[rows].double().cpu().numpy()
    count = max(len(data.classes), int(data.train.y.max()) + 1)
    linear = _logistic(x, y, weight, count)
    scored = Logistic(linear.weight, linear.bias, linear.auc(data.val), linear.auc(data.test))
    most = max(count, *(int(part.y.max()) + 1 for part in data.parts if len(part.y)))
    boosted = fit_boosting(x, y, weight, seed=seed, count=most) if boosting else None
    return Baselines(scored, None if boosted is None else boosted.described(data))


def logistic_regression(
    x: Tensor, y: Tensor, weights: Tensor | None = None, classes: int = 2, *, c: float = 1.0
) -> Logistic:
    """One fitted on rows x (B, n) of classes y (B,), which count for weights (B,).

    c: scikit-learn's C, the inverse of what its weights cost.
    """
    weight = None if weights is None else weights.double().cpu().numpy()
    return _logistic(x.double().cpu().numpy(), y.cpu().numpy(), weight, classes, c)


def _logistic(
    x: NDArray[np.float64],
    y: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    count: int,
    c: float = 1.0,
) -> Logistic:
    """Fitted on scaled features; the scaling goes into its weights."""
    scaler = StandardScaler().fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=c, max_iter=1000).fit(scaler.transform(x), y, weight)
    slopes = model.coef_ / scaler.scale_
    shifts = model.intercept_ - slopes @ scaler.mean_
    if len(model.classes_) == 2:  # scikit-learn has the log-odds of the second class alone
        slopes, shifts = np.vstack([0 * slopes, slopes]), np.append(0 * shifts, shifts)
    # A class that the rows lack is never the likely one.
    all_slopes, all_shifts = np.zeros((count, x.shape[1])), np.full(count, LEAST)
    all_slopes[model.classes_], all_shifts[model.classes_] = slopes, shifts
    return Logistic(torch.from_numpy(all_slopes), torch.from_numpy(all_shifts))


def fit_boosting(
    x: NDArray[np.float64],
    y: NDArray[np.int64],
    weight: NDArray[np.float64] | None = None,
    *,
    seed: int = 0,
    count: int | None = None,
) -> FittedBoosting | None:
    """Fit on rows x (B, n) of classes y (B,), of `count`; None where these are too many."""
    labels, rows = np.unique(y, return_counts=True)
    if len(labels) > MOST_CLASSES:
        return None
    # Stopping early takes rows of every class to stop by.
    settings = BOOSTING | {"early_stopping": BOOSTING["early_stopping"] and int(rows.min()) >= 20}
    model = HistGradientBoostingClassifier(**settings, random_state=seed).fit(x, y, weight)
    return FittedBoosting(model, settings, seed, max(count or 0, int(labels.max()) + 1))
