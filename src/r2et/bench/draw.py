"""Pictures of panels, as PNG and PDF."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from r2et.bench.cases import standing
from r2et.bench.panel import Panel
from r2et.bench.record import refused
from r2et.bench.table import family

WIDTH = 3.4  # inches of a panel
MEASURES = {
    "adversarial_rows": "thickness, adversarial",
    "hessian_rows": "Hessian norm",
    "gaussian_rows": "thickness, Gaussian, mean",
    "gaussian_least_rows": "thickness, Gaussian, least",
}
Drawing = Callable[[Any, Any, str], None]


def correlation(steps: Sequence[int], values: Sequence[float | None]) -> tuple[float, int]:
    """Spearman's between steps and values, over rows that flipped; and how many these are."""
    pairs = [(s, v) for s, v in zip(steps, values, strict=True) if s > 0 and v is not None]
    if len(pairs) < 3 or len({s for s, _ in pairs}) < 2 or len({v for _, v in pairs}) < 2:
        return math.nan, len(pairs)
    return float(spearmanr(*zip(*pairs, strict=True)).statistic), len(pairs)


def scatter(axes: Any, panel: Panel, name: str) -> None:
    """Steps to the first flip against one measure; those that never flip in grey above."""
    steps, values = panel.values["first_flip_rows"], panel.values[name]
    good = [(v, s) for s, v in zip(steps, values, strict=True) if v is not None and s > 0]
    held = [v for s, v in zip(steps, values, strict=True) if v is not None and s <= 0]
    if good:
        axes.scatter(*zip(*good, strict=True), s=6, alpha=0.5)
    top = max((s for _, s in good), default=1)
    if held:
        axes.scatter(held, [1.05 * top] * len(held), s=6, alpha=0.3, marker="^", color="grey")
    rho, count = correlation(steps, values)
    said = "none" if math.isnan(rho) else f"{rho:.2f}"
    axes.set_title(f"{panel.data}, {panel.recipe}: Spearman {said}\n{count} of {len(steps)} flip")
    axes.set_xlabel(MEASURES[name])
    axes.set_ylabel("steps to first flip")


def maps(axes: Any, panel: Panel, name: str) -> None:
    """One row's scores as a picture: before, or after the attack; the top k in red."""
    when, _, number = name.partition(" ")
    row = panel.values["shown"][int(number)]
    scores = np.array([0.0 if v is None else v for v in row[when]])
    side = math.isqrt(len(scores))
    axes.imshow(scores[: side * side].reshape(side, side), cmap="Reds")
    axes.set_axis_off()
    after = f", P@k {row['precision']:.0%}" if when == "after" else ""
    axes.set_title(f"{panel.recipe}, {when}{after}")


def front(points: Sequence[tuple[float, float]], low: bool) -> list[tuple[float, float]]:
    """The Pareto front, of points where less (or more) of both is better."""
    sign = 1 if low else -1
    found: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda p: (sign * p[0], sign * p[1])):
        if not found or sign * y < sign * found[-1][1]:
            found.append((x, y))
    return found


def constrained(axes: Any, panel: Panel, name: str) -> None:
    """P@k against the share of predictions lost, by constraint."""
    points = [p for p in panel.values["points"] if p["attack"] == name]
    for constraint in dict.fromkeys(p["constraint"] for p in points):
        some = [p for p in points if p["constraint"] == constraint]
        axes.scatter(
            [100 * p["sensitivity"] for p in some],
            [100 * p["precision"] for p in some],
            label=constraint,
        )
    edge = front([(100 * p["sensitivity"], 100 * p["precision"]) for p in points], low=True)
    if edge:
        axes.plot(*zip(*edge, strict=True), color="red", linewidth=1)
        axes.legend(fontsize=6)
    axes.set_title(f"{panel.data}, {panel.recipe}, {name}")
    axes.set_xlabel("sensitivity, %")
    axes.set_ylabel("P@k, %")


def trade_off(axes: Any, panels: Sequence[Panel], name: str) -> None:
    """Mean AUC and P@k of every recipe; R2ET and its kin as triangles."""
    points = {}
    for panel in panels:
        if name in panel.values:
            pair = (np.mean(panel.values["auc"]), 100 * np.mean(panel.values[name]))
            points[panel.recipe] = (float(pair[0]), float(pair[1]))
    for recipe, (x, y) in points.items():
        axes.scatter([x], [y], marker="^" if family(recipe) else "o", s=18)
        axes.annotate(recipe, (x, y), fontsize=5, xytext=(2, 2), textcoords="offset points")
    edge = front([p for r, p in points.items() if r != "linear"], low=False)
    if edge:
        axes.plot(*zip(*edge, strict=True), color="red", linewidth=1)
    axes.set_title(f"{panels[0].data}, {'ERAttack' if name == 'er' else 'StrongAttack'}")
    axes.set_xlabel("cAUC")
    axes.set_ylabel("P@k, %")


def magnitudes(axes: Any, panel: Panel, name: str) -> None:
    """Sorted magnitudes, the largest as 1."""
    values = panel.values[name]
    axes.plot(range(1, len(values) + 1), values, marker="." if len(values) < 50 else None)
    axes.set_title(f"{panel.data}, {panel.recipe}")
    axes.set_xlabel("rank")
    axes.set_ylabel("gradient, share of the largest")


def pairs(axes: Any, panel: Panel, name: str) -> None:
    """P@k against k', mean and range over seeds."""
    seeds = 100 * np.array(panel.values[name])
    counts = panel.values["counts"]
    axes.plot(counts, seeds.mean(1), marker=".")
    axes.fill_between(counts, seeds.min(1), seeds.max(1), alpha=0.2)
    axes.set_title(f"{panel.data}, {panel.recipe}")
    axes.set_xlabel("k'")
    axes.set_ylabel("P@k under ERAttack, %")


def lengths(axes: Any, panel: Panel, name: str) -> None:
    """P@k and AUC against epochs of training, means over seeds."""
    del name
    shown = {"er": "P@k, best point", "er_last": "P@k, last point", "auc": "100 x AUC"}
    for key, label in shown.items():
        values = 100 * np.array(panel.values[key]).mean(1)
        axes.plot(panel.values["epochs"], values, marker=".", label=label)
    axes.set_xscale("log")
    axes.legend(fontsize=6)
    axes.set_title(f"{panel.data}, {panel.recipe}")
    axes.set_xlabel("epochs")
    axes.set_ylabel("%")


def cells(figure: str, panels: Sequence[Panel]) -> list[tuple[Drawing, Any, str]]:
    """Every single plot of a figure: how, of what, and what of it."""
    if figure in ("figure2", "figure4"):
        names = list(MEASURES)[: 2 if figure == "figure2" else 4]
        return [(scatter, p, n) for p in panels for n in names if n in p.values]
    if figure in ("figure3", "figure5"):
        shown = [(p, i) for p in panels for i in range(len(p.values["shown"]))]
        return [(maps, p, f"{when} {i}") for p, i in shown for when in ("before", "after")]
    if figure == "figure6":
        return [(constrained, p, kind) for p in panels for kind in ("er", "mse")]
    if figure == "figure7":
        found: list[tuple[Drawing, Any, str]] = []
        for data in dict.fromkeys(p.data for p in panels):
            some = [p for p in panels if p.data == data]
            found += [(trade_off, some, k) for k in ("er", "strong") if k in some[0].values]
        return found
    if figure == "figure8":
        return [(magnitudes, p, "sorted_rows") for p in panels]
    if figure == "lengths":
        return [(lengths, p, "er") for p in panels]
    return [(pairs, p, "precision") for p in panels]


def draw(figure: str, title: str, panels: Sequence[Panel], folder: Path) -> list[Path]:
    """figure.png and figure.pdf; panels that failed are named below the picture."""
    good = [p for p in panels if p.failed is None]
    todo = cells(figure, good)
    across = min(4 if figure in ("figure3", "figure5") else 2, max(1, len(todo)))
    down = max(1, math.ceil(len(todo) / across))
    picture = Figure(figsize=(WIDTH * across, 0.85 * WIDTH * down + 0.5), layout="constrained")
    FigureCanvasAgg(picture)
    for number, (how, what, name) in enumerate(todo):
        axes = picture.add_subplot(down, across, number + 1)
        how(axes, what, name)
        axes.title.set_fontsize(8)
    sets = ", ".join(standing(d) for d in dict.fromkeys(p.data for p in panels))
    picture.suptitle(f"{title}\n{sets}", fontsize=9)
    lacking = [f"{p.data}, {p.recipe}: {p.failed}" for p in panels if p.failed is not None]
    if lacking:
        picture.supxlabel("\n".join(lacking), fontsize=6)
    files = [folder / f"{figure}.{end}" for end in ("png", "pdf")]
    try:
        for file in files:
            picture.savefig(
                file, dpi=150, metadata={"CreationDate": None} if file.suffix == ".pdf" else None
            )
    except OSError as error:
        raise refused(folder, error) from error
    return files
