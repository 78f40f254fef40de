"""Figures as tables of numbers, for those who would rather read than look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import mean

from r2et.bench.figure_statistics import (
    QUANTITIES,
    correlations,
    measured_quantities,
    spearman,
)
from r2et.bench.panel import Panel

Line = tuple[str, ...]
BAR = 0.5  # from where on thickness can be said to tell how soon a ranking flips


def lines(panel: Panel) -> tuple[Line, list[Line]]:
    """A panel as rows of a table, under a head; none where it is a picture and nothing else."""
    for part, (head, rows) in READINGS.items():
        if part in panel.values:
            return head, list(rows(panel))
    return (), []


def _steps(panel: Panel) -> Iterable[Line]:
    held = measured_quantities(panel)
    for every, rows in ((True, "all"), (False, "those that flip")):
        each = [spearman(panel, n, every=every) if n in held else "none" for n in QUANTITIES]
        yield (rows, _flips(panel), *each, follows(panel, every=every))


def _flips(panel: Panel) -> str:
    """How many rows flip, of how many, with each seed."""
    steps = [seed["first_flip_rows"] for seed in panel.values["seeds"]]
    return f"{', '.join(str(sum(s > 0 for s in some)) for some in steps)} of {len(steps[0])}"


def follows(panel: Panel, *, every: bool = True) -> str:
    """Whether thickness tells the steps better than chance and the Hessian norm: in how many seeds.

    Better: a correlation above BAR, and above the Hessian norm's in either direction.
    """
    thick = correlations(panel, "adversarial_rows", every=every)
    bent = [0.0] * len(thick)
    if "hessian_rows" in measured_quantities(panel):
        hessian = correlations(panel, "hessian_rows", every=every)
        bent = [0.0 if math.isnan(rho) else abs(rho) for rho in hessian]
    better = sum(a > BAR and a > b for a, b in zip(thick, bent, strict=True))
    if better in (0, len(thick)):
        return "yes" if better else "no"
    return f"with {better} of {len(thick)} seeds"


def _lengths(panel: Panel) -> Iterable[Line]:
    values = panel.values
    for i, count in enumerate(values["epochs"]):
        numbers = [f"{100 * mean(values[name][i]):.1f}" for name in ("er", "er_last")]
        yield (str(count), f"{mean(values['auc'][i]):.3f}", *numbers)


def _searched(panel: Panel) -> Iterable[Line]:
    values = panel.values
    for i, count in enumerate(values["epochs"]):
        taken = "taken" if count == values["nearest"] else ""
        kept = f"{100 * mean(values['er_last'][i]):.1f}"
        yield (
            str(count),
            f"{mean(values['auc'][i]):.3f}",
            kept,
            f"{100 * values['papers']:.1f}",
            taken,
        )


def _budgets(panel: Panel) -> Iterable[Line]:
    values = panel.values
    aucs = f"{mean(values['auc']):.3f}", f"{values['auc_edges']:.3f}"
    for i, budget in enumerate(values["budgets"]):
        numbers = [f"{100 * mean(values[name][i]):.1f}" for name in ("er_last", "sensitivity")]
        yield (f"{budget:g}", *aucs, *numbers, f"{100 * values['papers']:.1f}")


def _pairs(panel: Panel) -> Iterable[Line]:
    for count, seeds in zip(panel.values["counts"], panel.values["precision"], strict=True):
        half = 50 * (max(seeds) - min(seeds))
        yield (str(count), f"{100 * mean(seeds):.1f} ± {half:.1f}")


def _constrained(panel: Panel) -> Iterable[Line]:
    for point in panel.values["points"]:
        numbers = [f"{100 * point[name]:.1f}" for name in ("precision", "sensitivity")]
        yield (point["attack"], point["constraint"], f"{point['share']:g}", *numbers)


# By what a panel holds: the head of its table, and its rows.
READINGS: dict[str, tuple[Line, Callable[[Panel], Iterable[Line]]]] = {
    "seeds": (
        ("rows", "flip", *QUANTITIES.values(), "the first above 0.5 and above the second"),
        _steps,
    ),
    "nearest_budget": (
        ("budget, in std", "cAUC", "edges' cAUC", "P@k", "sensitivity, %", "the papers' P@k"),
        _budgets,
    ),
    "nearest": (("epochs", "cAUC", "P@k, last point", "the papers' P@k", ""), _searched),
    "er_last": (("epochs", "cAUC", "P@k, best point", "P@k, last point"), _lengths),
    "counts": (("k'", "P@k"), _pairs),
    "points": (
        ("attack", "constraint", "step", "P@k where the prediction is kept", "sensitivity, %"),
        _constrained,
    ),
}
