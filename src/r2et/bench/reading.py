"""What figures say in numbers, for those who would rather read than look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import mean

from r2et.bench.panel import Panel
from r2et.bench.plots import MEASURES, correlation

Line = tuple[str, ...]
BAR = 0.5  # from where on thickness can be said to tell how soon a ranking flips


def correlations(panel: Panel) -> dict[str, float | None]:
    """Spearman's between steps to the first flip and each measure; None where there is none."""
    steps, values = panel.values["first_flip_rows"], panel.values
    found = {name: correlation(steps, values[name])[0] for name in MEASURES if name in values}
    return {name: None if math.isnan(rho) else rho for name, rho in found.items()}


def said(panels: Sequence[Panel]) -> list[str]:
    """A sentence for each panel of Figures 2 and 4."""
    found = []
    for panel in panels:
        if panel.failed is None and "first_flip_rows" in panel.values:
            told = [f"{MEASURES[name]} {_two(rho)}" for name, rho in correlations(panel).items()]
            where = f"{panel.figure}, {panel.data}, {panel.recipe}"
            found.append(f"{where}: Spearman of steps to the first flip with {', '.join(told)}.")
    return found


def lines(panel: Panel) -> tuple[Line, list[Line]]:
    """A panel as rows of a table, under a head; none where it is a picture and nothing else."""
    for part, (head, rows) in READINGS.items():
        if part in panel.values:
            return head, list(rows(panel))
    return (), []


def _steps(panel: Panel) -> Iterable[Line]:
    steps, found = panel.values["first_flip_rows"], correlations(panel)
    thick, bent = found["adversarial_rows"], found.get("hessian_rows")
    good = thick is not None and thick > BAR and thick > abs(bent or 0.0)
    flipped = f"{sum(step > 0 for step in steps)} of {len(steps)}"
    yield (flipped, *(_two(found.get(name)) for name in MEASURES), "yes" if good else "no")


def _lengths(panel: Panel) -> Iterable[Line]:
    values = panel.values
    for i, count in enumerate(values["epochs"]):
        numbers = [f"{100 * mean(values[name][i]):.1f}" for name in ("er", "er_last")]
        yield (str(count), f"{mean(values['auc'][i]):.3f}", *numbers)


def _pairs(panel: Panel) -> Iterable[Line]:
    for count, seeds in zip(panel.values["counts"], panel.values["precision"], strict=True):
        half = 50 * (max(seeds) - min(seeds))
        yield (str(count), f"{100 * mean(seeds):.1f} ± {half:.1f}")


def _constrained(panel: Panel) -> Iterable[Line]:
    for point in panel.values["points"]:
        numbers = [f"{100 * point[name]:.1f}" for name in ("precision", "sensitivity")]
        yield (point["attack"], point["constraint"], f"{point['share']:g}", *numbers)


def _two(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


# By what a panel holds: the head of its table, and its rows.
READINGS: dict[str, tuple[Line, Callable[[Panel], Iterable[Line]]]] = {
    "first_flip_rows": (
        ("rows that flip", *MEASURES.values(), "the first above 0.5 and above the second"),
        _steps,
    ),
    "er_last": (("epochs", "cAUC", "P@k, best point", "P@k, last point"), _lengths),
    "counts": (("k'", "P@k"), _pairs),
    "points": (
        ("attack", "constraint", "step", "P@k where the prediction is kept", "sensitivity, %"),
        _constrained,
    ),
}
