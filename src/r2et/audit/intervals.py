"""Where a figure of some rows would lie for others of their kind, where that can be said at all."""

from __future__ import annotations

from torch import Tensor

from r2et.metrics import bootstrap_interval, share_interval

# Least and greatest value that a row can have; a share of rows is a mean of zeros and ones.
RANGES = {
    "precision_noise": (0.0, 1.0),
    "precision_er": (0.0, 1.0),
    "precision_strong": (0.0, 1.0),
    "certified_precision": (0.0, 1.0),
    "thickness_probability": (0.0, 1.0),
    "dffot": (0.0, 1.0),
    "comprehensiveness": (-1.0, 1.0),
    "sufficiency": (-1.0, 1.0),
}
SHARES = ("certified_share", "sensitivity")

Ends = tuple[float | None, float | None]


def mean_interval(name: str, values: Tensor, level: float) -> Ends:
    """The ends for the mean of a measure over rows, (B,) numbers; None where rows say nothing.

    Shares of rows have exact ones. Other means have the bootstrap's, which equal rows defeat: then
    the rows that may differ are as many as none of B can hide, and differ as far as can be.
    """
    rows = len(values)
    if rows < 2:
        return None, None
    if name in SHARES:
        share = share_interval(int(values.sum()), rows, level)
        return share.low, share.high
    least, most = float(values.min()), float(values.max())
    if least < most:
        found = bootstrap_interval(values, level)
        return found.low, found.high
    if name not in RANGES:
        return None, None
    low, high = RANGES[name]
    hidden = share_interval(0, rows, level).high
    return least - hidden * (least - low), least + hidden * (high - least)
