"""What figures say in numbers, for those who would rather read than look."""

from __future__ import annotations

import math
from collections.abc import Sequence

from r2et.bench.draw import MEASURES, correlation
from r2et.bench.panel import Panel


def correlations(panel: Panel) -> dict[str, float | None]:
    """Spearman's between steps to the first flip and each measure; None where there is none."""
    steps = panel.values["first_flip_rows"]
    found = {
        name: correlation(steps, panel.values[name])[0] for name in MEASURES if name in panel.values
    }
    return {name: None if math.isnan(rho) else rho for name, rho in found.items()}


def said(panels: Sequence[Panel]) -> list[str]:
    """A sentence for each panel of Figures 2 and 4."""
    found = []
    for panel in panels:
        if panel.failed is None and "first_flip_rows" in panel.values:
            told = [
                f"{MEASURES[name]} {'none' if rho is None else f'{rho:.2f}'}"
                for name, rho in correlations(panel).items()
            ]
            where = f"{panel.figure}, {panel.data}, {panel.recipe}"
            found.append(f"{where}: Spearman of steps to the first flip with {', '.join(told)}.")
    return found
