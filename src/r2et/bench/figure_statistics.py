"""What the figures come to in numbers: rank correlations, and a sentence for each panel."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import spearmanr

from r2et.bench.panel import Panel

# What steps to the first flip are compared with: the first two in Figure 2, four in Figure 4.
QUANTITIES = {
    "adversarial_rows": "thickness, adversarial",
    "hessian_rows": "Hessian norm",
    "gaussian_rows": "thickness, Gaussian, mean",
    "gaussian_least_rows": "thickness, Gaussian, least",
    "adversarial_last_rows": "thickness, to the attack's last point",
    "adversarial_gap_rows": "mean gap, adversarial",
}


def correlation(
    steps: Sequence[int], values: Sequence[float | None], *, every: bool = False
) -> tuple[float, int]:
    """Spearman's between steps and values, over rows that flipped; and how many these are.

    every: rows that never flip count as well, all of them as later than any that does.
    """
    late = max(steps, default=0) + 1
    times = [s if s > 0 else late for s in steps]
    both = zip(steps, times, values, strict=True)
    pairs = [(t, v) for s, t, v in both if v is not None and (every or s > 0)]
    if len(pairs) < 3 or len({s for s, _ in pairs}) < 2 or len({v for _, v in pairs}) < 2:
        return math.nan, len(pairs)
    return float(spearmanr(*zip(*pairs, strict=True)).statistic), len(pairs)


def correlations(panel: Panel, name: str, *, every: bool) -> list[float]:
    """Of one quantity with the steps to the first flip, for each seed; nan where there is none."""
    seeds = panel.values["seeds"]
    return [correlation(s["first_flip_rows"], s[name], every=every)[0] for s in seeds]


def spearman(panel: Panel, name: str, *, every: bool = True) -> str:
    """The same as text: the mean over seeds, and their range."""
    every_seed = correlations(panel, name, every=every)
    known = [rho for rho in every_seed if not math.isnan(rho)]
    if not known:
        return "none"
    low, high = f"{min(known):.2f}", f"{max(known):.2f}"
    span = f" ({low} to {high})" if len(known) > 1 else ""
    return f"{sum(known) / len(known):.2f}{span}"


def measured_quantities(panel: Panel) -> list[str]:
    """Those of QUANTITIES that a panel of Figure 2 or 4 has."""
    return [name for name in QUANTITIES if name in panel.values["seeds"][0]]


def correlation_sentences(panels: Sequence[Panel]) -> list[str]:
    """A sentence for each panel of Figures 2 and 4."""
    sentences = []
    for panel in panels:
        if panel.failed is None and "seeds" in panel.values:
            names = measured_quantities(panel)
            each = "; ".join(f"{QUANTITIES[name]} {spearman(panel, name)}" for name in names)
            where = f"{panel.figure}, {panel.data}, {panel.recipe}"
            sentences.append(f"{where}: Spearman of steps to the first flip with {each}.")
    return sentences
