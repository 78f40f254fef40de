"""From the columns of all rows to one figure, and where it would lie for other rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor

from r2et.audit.settings import AuditSettings
from r2et.metrics import auc_of_logits, bootstrap_interval, share_interval
from r2et.models.output import log_odds

RESAMPLES = 200  # of an AUC
DRAWS = 2**21  # numbers drawn at a time: 16 MB

Columns: TypeAlias = dict[str, Tensor]


class Estimate(NamedTuple):
    """A figure, the ends of its interval, and how many rows are behind it; None: not known."""

    value: float | None
    low: float | None
    high: float | None
    rows: int


Statistic: TypeAlias = Callable[[Columns, AuditSettings], Estimate]
UNKNOWN = Estimate(None, None, None, 0)


@dataclass(frozen=True)
class Mean:
    """The mean over the rows that have a finite value, with the bootstrap's interval.

    column: (B,) numbers.
    bounds: least and greatest value that a row can have, where there are such.

    Equal rows defeat the bootstrap: then the rows that may differ are as many as none of B can
    hide, and differ as far as the bounds allow.
    """

    column: str
    bounds: tuple[float, float] | None = None

    def __call__(self, columns: Columns, settings: AuditSettings) -> Estimate:
        values = _finite_values(columns.get(self.column))
        if not len(values):
            return UNKNOWN
        return Estimate(float(values.mean()), *self._ends(values, settings.level), len(values))

    def _ends(self, values: Tensor, level: float) -> tuple[float | None, float | None]:
        least, most = float(values.min()), float(values.max())
        if len(values) < 2 or (least == most and self.bounds is None):
            return None, None
        if least < most or self.bounds is None:
            return bootstrap_interval(values, level)
        low, high = self.bounds
        hidden = share_interval(0, len(values), level).high
        return least - hidden * (least - low), least + hidden * (high - least)


@dataclass(frozen=True)
class Share:
    """The share of rows for which a column of zeros and ones is 1, with its exact interval."""

    column: str

    def __call__(self, columns: Columns, settings: AuditSettings) -> Estimate:
        return share_of(_finite_values(columns.get(self.column)), settings.level)


def share_of(holds: Tensor, level: float) -> Estimate:
    """The share of ones among (B,) zeros and ones."""
    rows = len(holds)
    if not rows:
        return UNKNOWN
    share = float(holds.double().mean())
    if rows == 1:
        return Estimate(share, None, None, rows)
    ends = share_interval(int(holds.sum()), rows, level)
    return Estimate(share, ends.low, ends.high, rows)


@dataclass(frozen=True)
class Median:
    """The median over the rows that have a value, which may be infinite; infinite is None."""

    column: str

    def __call__(self, columns: Columns, settings: AuditSettings) -> Estimate:
        values = columns.get(self.column, torch.empty(0))
        values = values[~values.isnan()]
        return Estimate(*median(values, settings.level), len(values))


def median(values: Tensor, level: float) -> tuple[float | None, float | None, float | None]:
    """The median and the order statistics that hold it with this confidence; infinite is None.

    Of B values the number below the true median is binomial (B, 1/2), whatever they are drawn from.
    Few values have no two that hold it so surely (below 6, at 95 %), and then no ends.
    """
    if not len(values):
        return None, None, None
    ordered = values.double().sort().values
    last = len(ordered) - 1
    low = int(binom.ppf((1 - level) / 2, len(ordered), 0.5))
    middle = _if_finite(float(ordered[last // 2]))
    if low == 0:
        return middle, None, None
    return middle, _if_finite(float(ordered[low - 1])), _if_finite(float(ordered[last + 1 - low]))


@dataclass(frozen=True)
class Auc:
    """AUC of the rows that have logits, a column (B, C), and a label; with a bootstrap interval."""

    column: str

    def __call__(self, columns: Columns, settings: AuditSettings) -> Estimate:
        if "label" not in columns or self.column not in columns:
            return UNKNOWN
        logits, y = columns[self.column].double(), columns["label"].long()
        there = logits.isfinite().all(1)
        logits, y = logits[there], y[there]
        value = auc_of_logits(logits, y)
        if value is None:
            return UNKNOWN
        resampled = resampled_aucs(logits, y)
        tails = ((1 - settings.level) / 2, (1 + settings.level) / 2)
        ends = np.quantile(resampled, tails).tolist() if len(resampled) else (value, value)
        if ends[0] == ends[1]:  # classes that these rows keep apart: no evidence that others do
            return Estimate(value, None, None, len(y))
        return Estimate(value, min(value, ends[0]), max(value, ends[1]), len(y))


def resampled_aucs(logits: Tensor, y: Tensor) -> NDArray[np.float64]:
    """AUC of bootstrap samples of the rows, as `auc_of_logits` has it; those of one class left out.

    Rows are sorted once: a sample is how often each of them was drawn.
    """
    random = np.random.default_rng(0)
    ordered = [_ordered(logits, y, label) for label in _labels(logits, y)]
    chances = np.full(len(y), 1 / len(y))
    step = max(1, DRAWS // len(y))
    each = np.empty((len(ordered), RESAMPLES))  # a sample may lack a label
    for start in range(0, RESAMPLES, step):
        count = min(step, RESAMPLES - start)
        drawn = random.multinomial(len(y), chances, size=count).astype(float)
        each[:, start : start + count] = [order.areas(drawn) for order in ordered]
    there = np.isfinite(each)
    means = np.where(there, each, 0).sum(0) / there.sum(0).clip(1)
    areas: NDArray[np.float64] = means[there.any(0)]
    return areas


class _Order(NamedTuple):
    """Rows in the order of one label's score.

    place: which row comes where. starts: where rows of another score begin. positive: (B,) 1.0 for
    rows of the label, 0.0 for others, in the rows' own order.
    """

    place: NDArray[np.int64]
    starts: NDArray[np.int64]
    positive: NDArray[np.float64]

    def areas(self, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        """AUC of each sample; drawn: (samples, B) how often each row is in it. NaN: one class."""
        hits = np.add.reduceat((drawn * self.positive)[:, self.place], self.starts, axis=1)
        misses = np.add.reduceat((drawn * (1 - self.positive))[:, self.place], self.starts, axis=1)
        below = misses.cumsum(1) - misses / 2  # ties count by half
        pairs = hits.sum(1) * misses.sum(1)
        with np.errstate(invalid="ignore"):
            areas: NDArray[np.float64] = np.where(pairs > 0, (hits * below).sum(1) / pairs, np.nan)
        return areas


def _labels(logits: Tensor, y: Tensor) -> list[int]:
    """The classes whose AUCs are averaged; of two, one is enough."""
    return sorted(set(y.tolist())) if logits.shape[1] > 2 else [1]


def _ordered(logits: Tensor, y: Tensor, label: int) -> _Order:
    score = log_odds(logits, torch.full_like(y, label)).numpy()
    values, group = np.unique(score, return_inverse=True)
    place = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[place], np.arange(len(values)))
    return _Order(place, starts, (y == label).numpy().astype(float))


def _finite_values(values: Tensor | None) -> Tensor:
    return torch.empty(0) if values is None else values[values.isfinite()].double()


def _if_finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
