"""Single plots of panels, each drawn into axes of a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.colors import ListedColormap, to_rgba

from r2et.bench.figure_statistics import QUANTITIES, spearman
from r2et.bench.panel import Panel
from r2et.bench.papers import ADDITIONS, BASELINE, is_r2et_family
from r2et.bench.registry import find_benchmark
from r2et.metrics import pareto_front
from r2et.rank import top_k_mask

BLUE, ORANGE, GREY, RED = "#006BA4", "#FF800E", "#595959", "#C85200"
MARKS = (("o", BLUE), ("s", ORANGE), ("^", GREY), ("D", "#009E73"), ("v", "#CC79A7"))
ATTACKS = {"er": "ERAttack", "mse": "MSE attack", "strong": "StrongAttack"}
ALLOWED = 2  # the sensitivity, in %, up to which the papers choose an attack, Figure 6
Point = tuple[float, float]


def columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """What matplotlib takes: all x, then all y."""
    return [x for x, _ in points], [y for _, y in points]


def scatter(axes: Any, panel: Panel, name: str) -> None:
    """Steps to the first flip against one quantity; rows that never flip as triangles above.

    The first seed's rows; the correlation is of all seeds and all rows.
    """
    seed = panel.values["seeds"][0]
    steps, values = seed["first_flip_rows"], seed[name]
    rows = [(v, s) for s, v in zip(steps, values, strict=True) if v is not None]
    flipped, held = [r for r in rows if r[1] > 0], [v for v, s in rows if s <= 0]
    above = 1.08 * max((s for _, s in flipped), default=1)
    face = "none" if panel.unreliable else BLUE
    style: dict[str, Any] = {"lw": 0.5, "alpha": 0.5, "edgecolor": BLUE, "facecolor": face}
    axes.scatter(*columns(flipped), s=7, label="a row, at its first flip", **style)
    style |= {"marker": "^", "edgecolor": RED, "facecolor": "none"}
    axes.scatter(held, [above] * len(held), s=16, label="a row that never flips", **style)
    if name == "hessian_rows":
        axes.set_xscale("log")
    title = f"{panel.data}, {panel.recipe}\nSpearman {spearman(panel, name)}"
    axes.set(title=title, xlabel=QUANTITIES[name])
    axes.set_ylabel("steps to first flip")


def saliency(panel: Panel, row: int, when: str) -> tuple[Any, Any]:
    """Scores of a row, before or after the attack, and which are the top k: (height, width).

    Of pairs of pictures the explained one; what is no picture is one line of features.
    """
    stored = panel.values["shown"][row][when]
    least = min((v for v in stored if v is not None), default=0.0)
    scores = torch.tensor([[least if v is None else v for v in stored]], dtype=torch.float64)
    sides = tuple(panel.values["shape"][-2:])
    sides = sides if len(sides) == 2 and math.prod(sides) == len(stored) else (1, len(stored))
    chosen = top_k_mask(scores, find_benchmark(panel.data).k)
    return scores.reshape(sides).numpy(), chosen.reshape(sides).numpy()


def maps(axes: Any, panel: Panel, name: str) -> None:
    """One row's scores, before or after the attack: the top k in reds, all others in pale greys.

    Crosses: what the attack has driven from the top k.
    """
    when, row, k = name.split()[0], int(name.split()[1]), find_benchmark(panel.data).k
    scores, chosen = saliency(panel, row, when)
    shape = "equal" if len(scores) > 1 else "auto"
    for part, shades, low, high in ((~chosen, "Greys", 0.0, 0.35), (chosen, "Reds", 0.5, 1.0)):
        colours = ListedColormap(matplotlib.colormaps[shades](np.linspace(low, high, 256)))
        axes.imshow(np.ma.masked_array(scores, ~part), cmap=colours, aspect=shape)
    axes.scatter([], [], marker="s", color="#CB181D", label=f"top {k} (darker: more important)")
    axes.scatter([], [], marker="s", color="#C8C8C8", label="all others")
    down, across = np.nonzero(saliency(panel, row, "before")[1] & ~chosen)
    lost = f"driven from the top {k} by the attack"
    axes.scatter(across, down, marker="x", s=14, lw=1.3, color=BLUE, label=lost)
    kept = f", P@k {panel.values['shown'][row]['precision']:.0%}" if when == "after" else ""
    axes.set(xticks=[], yticks=[], title=f"{panel.recipe}, {when}{kept}")


def front(points: Sequence[Point], low: bool) -> list[Point]:
    """The Pareto front, of points where less (or more) of both is better; the best x first."""
    sign, different = -1 if low else 1, list(dict.fromkeys(points))
    best = pareto_front([(sign * x, sign * y) for x, y in different])
    return [different[i] for i in reversed(best)]


def draw_front(
    axes: Any, points: Sequence[Point], ring: float = 0, label: str = "Pareto front", **more: Any
) -> None:
    """The front as a line, its points in rings of this size."""
    style = {"color": RED, "lw": 1.2, "zorder": 0.5, "marker": "o", "fillstyle": "none"}
    axes.plot(*columns(points), ms=ring, label=label, **{**style, **more})


def constrained(axes: Any, panel: Panel, name: str) -> None:
    """P@k against the share of predictions lost, by constraint and step size, with the front.

    The asterisk, as in the papers: of attacks with at most 2 % sensitivity, the least P@k.
    """
    every = panel.values["points"]
    marks = dict(zip(dict.fromkeys(p["constraint"] for p in every), MARKS, strict=False))
    sizes = {share: 15 * 3**i for i, share in enumerate(sorted({p["share"] for p in every}))}
    for constraint, (mark, colour) in marks.items():
        axes.scatter([], [], marker=mark, color=colour, label=f"constraint {constraint}")
    for share, size in sizes.items():
        axes.scatter([], [], s=size, c="none", ec="black", label=f"step size x {share:g}")
    points: list[Point] = []
    for p in sorted(every, key=lambda p: -float(p["share"])):  # the small above the large
        if p["attack"] == name:
            points.append((100 * p["sensitivity"], 100 * p["precision"]))
            mark, colour = marks[p["constraint"]]
            face = "none" if panel.unreliable else to_rgba(colour, 0.25)
            axes.scatter(*points[-1], s=sizes[p["share"]], marker=mark, ec=colour, fc=face)
    draw_front(axes, front(points, low=True))
    best = sorted((y, x) for x, y in points if x <= ALLOWED)[:1]
    style = {"s": 90, "lw": 1, "color": "black", "label": "least P@k at 2 % sensitivity or less"}
    axes.scatter(*columns(best)[::-1], marker=(6, 2, 0), **style)
    axes.set_title(f"{panel.data}, {panel.recipe}, {ATTACKS[name]}")
    axes.set(xlabel="sensitivity, %", ylabel="P@k of rows that keep their prediction, %")


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights of labels, from 0 to 1: as near as can be to those asked for, a gap apart."""
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    free = np.array(heights)[order] - steps
    up, down = np.maximum.accumulate(free), np.minimum.accumulate(free[::-1])[::-1]
    placed = np.empty(len(heights))
    placed[order] = np.clip((up + down) / 2, 0, max(0.0, 1 - steps[-1])) + steps
    return [float(height) for height in placed]


def places(panels: Sequence[Panel], name: str) -> dict[str, Point]:
    """Where each recipe is in Figure 7, by its means over seeds. name: as of `trade_off`."""
    attack, accuracy = name.split()
    return {
        p.recipe: (float(np.mean(p.values[accuracy])), float(100 * np.mean(p.values[attack])))
        for p in panels
    }


def counted(panels: Sequence[Panel], placed: dict[str, Point], papers: bool = False) -> list[Point]:
    """Points of recipes that can be on a front; papers: without our additions."""
    racing = [p.recipe for p in panels if not p.unreliable and p.recipe != BASELINE]
    return [placed[name] for name in racing if not (papers and name in ADDITIONS)]


def trade_off(axes: Any, panels: Sequence[Panel], name: str) -> None:
    """Mean AUC and P@k of every recipe, named at the right; R2ET and our additions as triangles.

    name: the attack, then the AUC: of all test rows, or of the attacked ones after this attack.
    Off the fronts: recipes that do not count, drawn hollow, and linear, which no attack can move.
    Two fronts: of all, and of the papers' methods alone.
    """
    attack, accuracy = name.split()
    some = [p for p in panels if attack in p.values and None not in p.values[accuracy]]
    if not some:  # attacked rows of one class have no AUC
        axes.set_title(f"{panels[0].data}, {ATTACKS[attack]}: no AUC")
        return
    placed = places(some, name)
    points = [placed[p.recipe] for p in some]
    papers = {"color": GREY, "ls": "--"}
    draw_front(axes, front(counted(some, placed), low=False), 13, "Pareto front of all")
    theirs = front(counted(some, placed, papers=True), low=False)
    draw_front(axes, theirs, 9, "Pareto front of the papers' methods", **papers)
    low, high = min(y for _, y in points), max(y for _, y in points)
    low, high = low - 1 - 0.04 * (high - low), high + 1 + 0.04 * (high - low)
    heights = spread([(y - low) / (high - low) for _, y in points], 0.075)
    for panel, point, height in zip(some, points, heights, strict=True):
        kin = is_r2et_family(panel.recipe)
        mark, colour, label = ("^", ORANGE, "R2ET, ours too") if kin else ("o", BLUE, "others")
        face, label = (
            ("white", "AUC too low, off the fronts") if panel.unreliable else (colour, label)
        )
        axes.scatter(*point, s=26, marker=mark, ec=colour, fc=face, label=label)
        thin = {"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkB": 3}
        style = {"textcoords": "axes fraction", "va": "center", "arrowprops": thin}
        axes.annotate(panel.recipe, point, (1.04, height), zorder=0, **style)
    axes.set_ylim(low, high)
    axes.set(title=f"{panels[0].data}, {ATTACKS[attack]}", ylabel="P@k, %")
    axes.set_xlabel("cAUC" if accuracy == "auc" else "aAUC, of the attacked rows")
    axes.locator_params(axis="x", nbins=4)


def line(panel: Panel, mark: str = "o") -> dict[str, Any]:
    """How a panel's line is drawn."""
    return {"marker": mark, "ms": 4, "fillstyle": "none" if panel.unreliable else "full"}


def magnitudes(axes: Any, panel: Panel, name: str) -> None:
    """Sorted magnitudes, the largest as 1."""
    values = panel.values[name]
    axes.plot(range(1, len(values) + 1), values, **line(panel, "o" if len(values) < 50 else ""))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(title=f"{panel.data}, {panel.recipe}", xlabel="rank")
    axes.set_ylabel("gradient, share of the largest")


def pairs(axes: Any, panel: Panel, name: str) -> None:
    """P@k against k', mean and range over seeds."""
    seeds = 100 * np.array(panel.values[name])
    counts = panel.values["counts"]
    axes.plot(counts, seeds.mean(1), label="mean over seeds", **line(panel))
    axes.fill_between(counts, seeds.min(1), seeds.max(1), alpha=0.2, label="range over seeds")
    axes.set(title=f"{panel.data}, {panel.recipe}", xticks=counts, xlabel="k'")
    axes.set_ylabel("P@k under ERAttack, %")


def lengths(axes: Any, panel: Panel, name: str) -> None:
    """P@k and AUC against epochs of training, means over seeds."""
    del name
    shown = {"er": "P@k, best point", "er_last": "P@k, last point", "auc": "100 x AUC"}
    epochs = panel.values["epochs"]
    for (key, label), mark in zip(shown.items(), "os^", strict=True):
        values = 100 * np.array(panel.values[key]).mean(1)
        axes.plot(epochs, values, label=label, **line(panel, mark))
    axes.set_xscale("log")
    axes.set_xticks(epochs, [str(e) for e in epochs])
    axes.minorticks_off()
    axes.set(title=f"{panel.data}, {panel.recipe}", xlabel="epochs", ylabel="%")


def searched_lengths(axes: Any, panel: Panel, name: str) -> None:
    """P@k and AUC against epochs, mean and range over seeds; the papers' P@k as a line."""
    epochs = panel.values["epochs"]
    for key, label, mark in ((name, "P@k, last point", "s"), ("auc", "100 x AUC", "^")):
        seeds = 100 * np.array(panel.values[key])
        axes.plot(epochs, seeds.mean(1), label=label, **line(panel, mark))
        axes.fill_between(epochs, seeds.min(1), seeds.max(1), alpha=0.2)
    axes.axhline(100 * panel.values["papers"], color=GREY, ls="--", label="the papers' P@k")
    axes.axvline(panel.values["nearest"], color=RED, ls=":", label="the length taken")
    axes.set_xticks(epochs, [str(e) for e in epochs])
    axes.set(title=f"{panel.data}, {panel.recipe}", xlabel="epochs", ylabel="%")


def searched_budgets(axes: Any, panel: Panel, name: str) -> None:
    """P@k against the attack's budget, mean and range over seeds; the papers' P@k as a line."""
    budgets, seeds = panel.values["budgets"], 100 * np.array(panel.values[name])
    axes.plot(budgets, seeds.mean(1), label="P@k, last point", **line(panel, "s"))
    axes.fill_between(budgets, seeds.min(1), seeds.max(1), alpha=0.2)
    axes.axhline(100 * panel.values["papers"], color=GREY, ls="--", label="the papers' P@k")
    axes.set_xscale("log")
    axes.set(title=f"{panel.data}, {panel.recipe}", ylabel="%")
    axes.set_xlabel("budget, standard deviations of the data")
