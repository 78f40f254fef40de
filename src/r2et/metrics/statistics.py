"""What a number measured on some rows says about all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtr
from torch import Tensor

from r2et.errors import require

Values: TypeAlias = Tensor | NDArray[np.generic] | Sequence[float]

DRAWS = 2**20  # numbers drawn at a time by the bootstrap: 8 MB


class PairedTest(NamedTuple):
    """difference: mean of a - b. significant: p_value is below the level that was asked for."""

    difference: float
    statistic: float
    p_value: float
    significant: bool


class Interval(NamedTuple):
    low: float
    high: float


def paired_test(a: Values, b: Values, *, level: float = 0.05) -> PairedTest:
    """Student's paired t-test, two-sided: t = mean(d) / (std(d) / sqrt(B)) for d = a - b.

    statistic: any real number, positive where a is larger on average; p_value: 0..1. Equal
    differences have no spread: t is then infinite with p = 0, or 0 with p = 1 where a equals b.
    Student, "The probable error of a mean", Biometrika 1908.
    """
    first, second = _values("paired_test", "a", a, 2), _values("paired_test", "b", b, 2)
    expected = f"as long as a, {len(first)} values"
    require(len(first) == len(second), "paired_test", "b", expected, f"{len(second)} values")
    _check_share("paired_test", level)
    d = first - second
    mean, freedom = float(d.mean()), len(d) - 1
    if d.min() == d.max():
        mean = float(d[0])
        t = 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
    else:
        # Over the largest first: the squares of tiny differences underflow.
        part = d / np.abs(d).max()
        t = float(part.mean() / (part.std(ddof=1) / np.sqrt(len(d))))
    p = float(2 * stdtr(freedom, -abs(t)))
    return PairedTest(mean, t, p, p < level)


def bootstrap_interval(
    values: Values, level: float = 0.95, samples: int = 2000, seed: int = 0
) -> Interval:
    """Percentile interval of the mean of B values: quantiles (1 -/+ level) / 2 of resampled means.

    Both ends lie between the smallest and the largest value; narrower is better. It does not depend
    on the order of the values. Equal values, and so a single one, give that value for both ends:
    one row says nothing about others. Efron, "Bootstrap methods", Annals of Statistics 1979.
    """
    where = "bootstrap_interval"
    # Sorted: an interval of the same rows in another order is the same interval.
    sample = np.sort(_values(where, "values", values, 1))
    _check_share(where, level)
    is_valid = type(samples) is int and samples > 0
    require(is_valid, where, "samples", "a positive whole number", samples)
    require(type(seed) is int and seed >= 0, where, "seed", "a whole number, 0 or more", seed)
    if sample[0] == sample[-1]:
        return Interval(float(sample[0]), float(sample[0]))
    random = np.random.default_rng(seed)
    step = max(1, DRAWS // len(sample))
    means = np.concatenate(
        [
            sample[random.integers(len(sample), size=(min(step, samples - i), len(sample)))].mean(1)
            for i in range(0, samples, step)
        ]
    )
    # A mean of equal numbers may differ from them by rounding.
    means = means.clip(sample[0], sample[-1])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def share_interval(count: int, rows: int, level: float = 0.95) -> Interval:
    """Exact interval of the share of rows of which `count` of `rows` were seen.

    Its ends are the shares at which so many, or so few, have probability (1 - level) / 2: it holds
    the true share at least as often as it says, at 0 and at all rows too. Clopper and Pearson, "The
    use of confidence or fiducial limits", Biometrika 1934.
    """
    where = "share_interval"
    require(type(rows) is int and rows > 0, where, "rows", "a positive whole number", rows)
    is_valid = type(count) is int and 0 <= count <= rows
    require(is_valid, where, "count", f"a whole number in 0..{rows}", count)
    _check_share(where, level)
    tail = (1 - level) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, rows - count + 1, tail))
    high = 1.0 if count == rows else float(betaincinv(count + 1, rows - count, 1 - tail))
    return Interval(low, high)


def _values(where: str, name: str, values: Values, least: int) -> NDArray[np.float64]:
    """Numbers, one per row, as float64."""
    raw = values.detach().cpu().double() if isinstance(values, Tensor) else values
    try:
        array = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    expected = f"at least {least} number{'s' if least > 1 else ''}, one per row"
    is_valid = array.ndim == 1 and len(array) >= least
    require(is_valid, where, name, expected, f"shape {array.shape}" if array.ndim else values)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        value = f"NaN or infinity in {len(bad)} of {len(array)} rows, first in row {bad[0]}"
        require(False, where, name, "finite", value)
    return array


def _check_share(where: str, level: float) -> None:
    is_valid = isinstance(level, int | float) and 0 < level < 1
    require(is_valid, where, "level", "above 0 and below 1", level)
