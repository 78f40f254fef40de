"""A baseline for the same rows: the training's logistic regression, or else one fitted on them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from r2et.audit.input_rows import Chunk
from r2et.audit.statistics import Columns
from r2et.metrics import auc_of_logits
from r2et.train.baselines import FittedBoosting, Logistic

NUMBERS = 2**22  # how much the linear model is shown
FOLDS = 5
HUGE = 1e100  # columns beyond are scaled down, lest their variance overflow


class LinearBaseline:
    """Collects rows as they pass, and tells a linear model's AUC on them.

    fitted: a logistic regression fitted on the model's training rows; it only has to score. Where
    there is none, one is fitted on the rows themselves, as many as fit: that is another question,
    and no verdict is built on it.
    boosted: a boosting fitted on the training rows, which scores beside it.
    """

    def __init__(
        self, fitted: Logistic | None = None, boosted: FittedBoosting | None = None
    ) -> None:
        self.fitted, self.boosted = fitted, boosted
        self.logits: dict[int, Tensor] = {}
        self.boosted_logits: dict[int, Tensor] = {}
        self.x: list[Tensor] = []
        self.y: list[Tensor] = []
        self.numbers = 0
        self.folds: list[float] | None = None

    def see(self, chunk: Chunk) -> None:
        """Take notice of rows and their classes."""
        x, y = chunk.x, chunk.y
        if self.boosted is not None:
            self.boosted_logits[chunk.number] = self.boosted.logits(x)
        if self.fitted is not None:
            self.logits[chunk.number] = self.fitted.logits(x)
        elif y is not None and self.numbers < NUMBERS:
            self.x.append(x.flatten(1).cpu())
            self.y.append(y)
            self.numbers += x.numel()

    def columns(self, numbers: Iterable[int]) -> Columns:
        """Logits of the training's own baselines, of the chunks with these numbers."""
        of = list(numbers)
        scored = {"logits_logistic": self.logits, "logits_boosting": self.boosted_logits}
        return {
            name: torch.cat([logits[i] for i in of]) for name, logits in scored.items() if logits
        }

    @property
    def rows(self) -> int:
        """How many rows the linear model is shown."""
        return sum(len(y) for y in self.y)

    def auc(self) -> list[float]:
        """AUC of each fold of a cross-validation; empty where the rows are too few for one."""
        if self.folds is None:
            self.folds = self._validated()
        return self.folds

    def _validated(self) -> list[float]:
        if not self.y:
            return []
        x, y = torch.cat(self.x).double().numpy(), torch.cat(self.y).numpy()
        largest = np.abs(x).max(0)
        x = x / np.where(largest > HUGE, largest, 1.0)
        labels, codes = np.unique(y, return_inverse=True)
        folds = min(FOLDS, int(np.bincount(codes).min()))
        if len(labels) < 2 or folds < 2:
            return []
        areas = []
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(x, codes):
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(x[train], codes[train])
            logits = torch.from_numpy(model.decision_function(x[test]))
            if logits.ndim == 1:  # scikit-learn has the log-odds of the second class alone
                logits = torch.stack([torch.zeros_like(logits), logits], 1)
            value = auc_of_logits(logits, torch.from_numpy(codes[test]))
            assert value is not None  # every class has a row in every fold
            areas.append(value)
        return areas
