"""The same metrics over batches: update, compute, reset, as torchmetrics has them; and merge."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, final

import torch
from torch import Tensor

from r2et.checks import check_k, check_scores
from r2et.errors import R2ETError, require
from r2et.rank import top_k_mask

Value = TypeVar("Value")


class Running(ABC, Generic[Value]):
    """A metric of rows that come in batches; called, it updates and gives the batch's own value."""

    rows: int

    def __init__(self) -> None:
        self.reset()

    @abstractmethod
    def update(self, *batch: Any) -> None:
        """Take in the rows of a batch."""

    @abstractmethod
    def reset(self) -> None:
        """Forget all rows."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Take in all rows of another metric of the same kind, from another process, say."""

    @abstractmethod
    def fresh(self: Any) -> Any:
        """A new one of the same settings."""

    @abstractmethod
    def value(self) -> Value:
        """The metric of the rows there are."""

    def compute(self) -> Value:
        """The metric of all rows so far."""
        if not self.rows:
            raise R2ETError(
                f"{type(self).__name__}: update must be called before compute, got 0 rows."
            )
        return self.value()

    def __call__(self, *batch: Any) -> Value:
        one: Running[Value] = self.fresh()
        one.update(*batch)
        self.merge(one)
        return one.compute()


@final
class RunningMean(Running[float]):
    """The mean over rows of a metric that has one value per row.

    metric: precision_at_k, pearson, mse, changed_predictions, dffot, ... settings: its own, as k=8.
    RunningMean(changed_predictions) is sensitivity. A row without a value (NaN) makes the mean NaN.
    """

    def __init__(self, metric: Callable[..., Tensor], **settings: Any) -> None:
        require(callable(metric), "RunningMean", "metric", "a function", metric)
        self.metric, self.settings = metric, settings
        super().__init__()

    def update(self, *batch: Any) -> None:
        found = self.metric(*batch, **self.settings)
        good = isinstance(found, Tensor) and found.ndim == 1
        require(good, "RunningMean", "metric", "one that gives a value per row", found)
        self._sum += float(found.double().sum())
        self.rows += len(found)

    def reset(self) -> None:
        self._sum, self.rows = 0.0, 0

    def merge(self, other: RunningMean) -> None:
        same = (other.metric, other.settings) == (self.metric, self.settings)
        require(same, "RunningMean", "other", "a mean of the same metric", other.metric)
        self._sum += other._sum
        self.rows += other.rows

    def fresh(self) -> RunningMean:
        return RunningMean(self.metric, **self.settings)

    def value(self) -> float:
        return self._sum / self.rows


class Individuality(NamedTuple):
    """distinct_top_k, effective_top_k and largest_top_k_share of the same rows."""

    distinct: int
    effective: float
    largest_share: float


@final
class RunningIndividuality(Running[Individuality]):
    """How many different top-k sets the explanations have; memory grows with their number."""

    def __init__(self, k: int) -> None:
        self.k = k
        super().__init__()

    def update(self, *batch: Any) -> None:
        (scores,) = batch
        check_scores("RunningIndividuality", scores)
        check_k("RunningIndividuality", self.k, scores.shape[1])
        sets, counts = torch.unique(top_k_mask(scores, self.k), dim=0, return_counts=True)
        for one, count in zip(sets.cpu(), counts.tolist(), strict=True):
            self._sets[one.numpy().tobytes()] += count
        self.rows += len(scores)

    def reset(self) -> None:
        self._sets: Counter[bytes] = Counter()
        self.rows = 0

    def merge(self, other: RunningIndividuality) -> None:
        require(other.k == self.k, "RunningIndividuality", "k", f"{self.k} in both", other.k)
        self._sets.update(other._sets)
        self.rows += other.rows

    def fresh(self) -> RunningIndividuality:
        return RunningIndividuality(self.k)

    def value(self) -> Individuality:
        shares = [count / self.rows for count in self._sets.values()]
        entropy = -sum(share * math.log(share) for share in shares)
        return Individuality(len(shares), math.exp(entropy), max(shares))
