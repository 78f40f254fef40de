"""From rows to one figure each, with its interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor

from r2et.audit.intervals import mean_interval
from r2et.audit.linear import LinearBaseline
from r2et.audit.measures import Columns
from r2et.audit.settings import Settings
from r2et.metrics import auc_of_logits
from r2et.models.output import log_odds

# Means over rows: the figure's name and the column it is of.
MEANS = (
    "precision_noise",
    "precision_er",
    "precision_strong",
    "certified_precision",
    "thickness",
    "thickness_probability",
    "sensitivity",
    "dffot",
    "comprehensiveness",
    "sufficiency",
)
MEDIANS = ("radius_certified", "radius_attacked")
RESAMPLES = 200  # of an AUC
POINTS = 40  # of the curve


def summarize(
    columns: Columns, settings: Settings, linear: LinearBaseline
) -> tuple[dict[str, Any], dict[str, int]]:
    """The flat summary of an audit, and how many rows are behind each figure."""
    found: dict[str, Any] = {
        "rows": len(columns["index"]),
        "k": settings.k,
        "radius": settings.radius,
    }
    counts: dict[str, int] = {}

    def put(name: str, value: float | None, low: float | None, high: float | None, n: int) -> None:
        found.update({name: value, f"{name}_low": low, f"{name}_high": high})
        if value is not None:
            counts[name] = n

    def put_mean(name: str, values: Tensor | None) -> None:
        sample = None if values is None else values[values.isfinite()].double()
        if sample is None or not len(sample):
            put(name, None, None, None, 0)
        else:
            low, high = mean_interval(name, sample, settings.level)
            put(name, float(sample.mean()), low, high, len(sample))

    for name in MEANS:
        put_mean(name, columns.get(name))
    radius = columns.get("radius_certified")
    if radius is not None:  # rows without a certificate are not rows whose certificate fails
        radius = (radius[~radius.isnan()] >= settings.radius).double()
    put_mean("certified_share", radius)
    for name in MEDIANS:
        values = columns.get(name)
        middle = None if values is None else median(values[~values.isnan()], settings.level)
        n = 0 if values is None else int((~values.isnan()).sum())
        put(f"{name}_median", *(middle or (None, None, None)), n)
        if n:  # an infinite median is None too, but not for want of rows
            counts[f"{name}_median"] = n
    for name, out in (("auc_clean", "logits"), ("auc_attacked", "logits_strong")):
        put(name, *_auc(columns, out, settings), _labelled(columns, out))
    sets, largest = top_sets(columns["top"])
    found["distinct_top_k"] = sets
    # No interval: resampled rows repeat each other, so that their commonest set is ever larger.
    put("largest_top_k_share", float(largest.mean()), None, None, len(largest))
    folds = linear.auc()
    mean = float(np.mean(folds)) if folds else None
    put("auc_linear", mean, min(folds, default=None), max(folds, default=None), linear.rows)
    return found, counts


def top_sets(top: Tensor) -> tuple[int, Tensor]:
    """How many different sets the top k (B, k) are, and which rows (B,) have the commonest."""
    sets, which = torch.unique(top.sort(1).values, dim=0, return_inverse=True)
    return len(sets), (which == which.bincount().argmax()).double()


def median(values: Tensor, level: float) -> tuple[float | None, float | None, float | None] | None:
    """The median and the order statistics that hold it with this confidence; infinite is None.

    Of B values the number below the true median is binomial (B, 1/2), whatever they are drawn from.
    Few values have no two that hold it so surely (below 6, at 95 %), and then no ends.
    """
    if not len(values):
        return None
    ordered = values.double().sort().values
    last = len(ordered) - 1
    low = int(binom.ppf((1 - level) / 2, len(ordered), 0.5))
    middle = _finite(float(ordered[last // 2]))
    if low == 0:
        return middle, None, None
    return middle, _finite(float(ordered[low - 1])), _finite(float(ordered[last + 1 - low]))


def curve(columns: Columns, settings: Settings) -> list[dict[str, float]]:
    """Shares of rows proved, unknown and broken, over radii up to the limit."""
    proved, broken = columns.get("radius_certified"), columns.get("radius_attacked")
    if broken is None:
        return []
    there = ~broken.isnan()
    if not bool(there.any()):
        return []
    broken, proved = broken[there], None if proved is None else proved[there].nan_to_num(0.0)
    ends = np.geomspace(settings.limit / 1000, settings.limit, POINTS).tolist()
    found = []
    for radius in sorted({*ends[:-1], float(settings.limit), settings.radius}):
        held = 0.0 if proved is None else float((proved >= radius).double().mean())
        lost = float((broken <= radius).double().mean())
        unknown = max(0.0, 1 - held - lost)
        found.append({"radius": radius, "proved": held, "unknown": unknown, "broken": lost})
    return found


def _auc(
    columns: Columns, out: str, settings: Settings
) -> tuple[float | None, float | None, float | None]:
    """AUC of the rows that have logits and a label, and its percentile bootstrap interval."""
    if not _labelled(columns, out):
        return None, None, None
    logits, y = columns[out].double(), columns["label"].long()
    there = logits.isfinite().all(1)
    logits, y = logits[there], y[there]
    value = auc_of_logits(logits, y)
    if value is None:
        return None, None, None
    again = resampled_areas(logits, y)
    if not len(again):
        return value, None, None
    ends: NDArray[np.float64] = np.quantile(again, _tails(settings.level))
    if ends[0] == ends[1]:  # classes that these rows keep apart: no evidence that others do
        return value, None, None
    return value, min(value, float(ends[0])), max(value, float(ends[1]))


def resampled_areas(logits: Tensor, y: Tensor) -> NDArray[np.float64]:
    """AUC of bootstrap samples of the rows, as `area` has it; those of one class are left out.

    Rows are sorted once: a sample is how often each of them was drawn.
    """
    random = np.random.default_rng(0)
    drawn = random.multinomial(len(y), np.full(len(y), 1 / len(y)), size=RESAMPLES).astype(float)
    several = logits.shape[1] > 2
    labels = sorted(set(y.tolist())) if several else [1]
    found = []
    for label in labels:
        score = log_odds(logits, torch.full_like(y, label)).numpy()
        values, group = np.unique(score, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(values)))
        positive = (y == label).numpy().astype(float)
        hits = np.add.reduceat((drawn * positive)[:, order], starts, axis=1)
        misses = np.add.reduceat((drawn * (1 - positive))[:, order], starts, axis=1)
        below = misses.cumsum(1) - misses / 2  # ties count by half
        pairs = hits.sum(1) * misses.sum(1)
        with np.errstate(invalid="ignore"):
            found.append(np.where(pairs > 0, (hits * below).sum(1) / pairs, np.nan))
    each = np.stack(found)  # (labels, samples); a sample may lack a label
    there = np.isfinite(each)
    means = np.where(there, each, 0).sum(0) / there.sum(0).clip(1)
    areas: NDArray[np.float64] = means[there.any(0)]
    return areas


def _labelled(columns: Columns, out: str) -> int:
    both = "label" in columns and out in columns
    return int(columns[out].isfinite().all(1).sum()) if both else 0


def _tails(level: float) -> tuple[float, float]:
    return (1 - level) / 2, (1 + level) / 2


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
