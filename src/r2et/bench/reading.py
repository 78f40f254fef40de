"""What figures say in numbers, for those who would rather read than look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import mean

from r2et.bench.panel import Panel
from r2et.bench.plots import QUANTITIES, correlations, spearman

Line = tuple[str, ...]
BAR = 0.5  # from where on thickness can be said to tell how soon a ranking flips


def said(panels: Sequence[Panel]) -> list[str]:
    """A sentence for each panel of Figures 2 and 4."""
    found = []
    for panel in panels:
        if panel.failed is None and "seeds" in panel.values:
            told = [f"{QUANTITIES[name]} {spearman(panel, name)}" for name in _held(panel)]
            where = f"{panel.figure}, {panel.data}, {panel.recipe}"
            found.append(f"{where}: Spearman of steps to the first flip with {'; '.join(told)}.")
    return found


def _held(panel: Panel) -> list[str]:
    return [name for name in QUANTITIES if name in panel.values["seeds"][0]]


def lines(panel: Panel) -> tuple[Line, list[Line]]:
    """A panel as rows of a table, under a head; none where it is a picture and nothing else."""
    for part, (head, rows) in READINGS.items():
        if part in panel.values:
            return head, list(rows(panel))
    return (), []


def _steps(panel: Panel) -> Iterable[Line]:
    held = _held(panel)
    for every, rows in ((True, "all"), (False, "those that flip")):
        told = [spearman(panel, n, every=every) if n in held else "none" for n in QUANTITIES]
        yield (rows, _flips(panel), *told, follows(panel, every=every))


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
    if "hessian_rows" in _held(panel):
        found = correlations(panel, "hessian_rows", every=every)
        bent = [0.0 if math.isnan(rho) else abs(rho) for rho in found]
    good = sum(a > BAR and a > b for a, b in zip(thick, bent, strict=True))
    if good in (0, len(thick)):
        return "yes" if good else "no"
    return f"with {good} of {len(thick)} seeds"


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


# By what a panel holds: the head of its table, and its rows.
READINGS: dict[str, tuple[Line, Callable[[Panel], Iterable[Line]]]] = {
    "seeds": (
        ("rows", "flip", *QUANTITIES.values(), "the first above 0.5 and above the second"),
        _steps,
    ),
    "er_last": (("epochs", "cAUC", "P@k, best point", "P@k, last point"), _lengths),
    "counts": (("k'", "P@k"), _pairs),
    "points": (
        ("attack", "constraint", "step", "P@k where the prediction is kept", "sensitivity, %"),
        _constrained,
    ),
}
