"""Pictures of panels, as PNG and PDF; one legend below says what the marks are."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from r2et.bench.figure_statistics import QUANTITIES
from r2et.bench.panel import Panel
from r2et.bench.plots import (
    constrained,
    lengths,
    magnitudes,
    maps,
    pairs,
    scatter,
    searched_budgets,
    searched_lengths,
    trade_off,
)
from r2et.bench.record import refused
from r2et.bench.registry import dataset_title
from r2et.files import write

LOOK: list[Any] = ["tableau-colorblind10", {"font.size": 8, "axes.titlesize": 8.5}]
Drawing = Callable[[Any, Any, str], None]
Cell = tuple[Drawing, Any, str]


def cells(figure: str, panels: Sequence[Panel]) -> list[list[Cell]]:
    """Every single plot of a figure, row by row: how, of what, and what of it."""
    figure = figure.removesuffix("-papers")
    if figure in ("figure2", "figure4"):
        names = list(QUANTITIES)[: 2 if figure == "figure2" else 4]
        return [[(scatter, p, n) for n in names if n in p.values["seeds"][0]] for p in panels]
    if figure in ("figure3", "figure5"):
        names = [f"{when} {i}" for i in range(2) for when in ("before", "after")]
        return [[(maps, p, n) for n in names[: 2 * len(p.values["shown"])]] for p in panels]
    if figure == "figure6":
        return [[(constrained, p, kind) for kind in ("er", "mse")] for p in panels]
    if figure == "figure7":
        names = ["er auc", "er auc_attacked", "strong auc"]
        sets = [[p for p in panels if p.data == d] for d in dict.fromkeys(p.data for p in panels)]
        return [[(trade_off, s, n) for n in names if n.split()[0] in s[0].values] for s in sets]
    how, name = {
        "figure8": (magnitudes, "sorted_rows"),
        "figure9": (pairs, "precision"),
        "lengths": (lengths, "er"),
        "length-search": (searched_lengths, "er_last"),
        "budget-search": (searched_budgets, "er_last"),
    }[figure]
    return [[(how, p, name) for p in panels[i : i + 3]] for i in range(0, len(panels), 3)]


def remarks(figure: str, panels: Sequence[Panel]) -> list[str]:
    """What is said below: failures, doubts, and how Figures 2 and 4 correlate."""
    lines = [f"{p.data}, {p.recipe}: {p.failed}" for p in panels if p.failed is not None]
    for why in dict.fromkeys(why for p in panels for why in p.unreliable):
        names = ", ".join(f"{p.data} {p.recipe}" for p in panels if why in p.unreliable)
        lines.append(f"unreliable, drawn hollow: {names} ({why})")
    if figure in ("figure2", "figure4"):
        lines.append(
            "Drawn: rows of the first seed. Spearman: mean over seeds (range) of all rows; those "
            "that never flip count as the last."
        )
    return lines


def compose(figure: str, title: str, panels: Sequence[Panel]) -> Figure:
    """All plots of a figure, their marks in one legend, and remarks below."""
    rows = cells(figure, [p for p in panels if p.failed is None])
    across = max((len(row) for row in rows), default=1)
    wide, high = (2.5, 2.5) if across > 3 else (3.4, 2.8)
    width = max(6.0, wide * across)
    below = "\n".join(textwrap.fill(text, int(16 * width)) for text in remarks(figure, panels))
    height = high * max(1, len(rows)) + 0.5 + 0.12 * len(below.splitlines())
    picture = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(picture)
    marks: dict[str, Any] = {}
    for number, row in enumerate(rows):
        for place, (how, shown, name) in enumerate(row):
            axes = picture.add_subplot(len(rows), across, number * across + place + 1)
            how(axes, shown, name)
            handles, labels = axes.get_legend_handles_labels()
            marks |= dict(zip(labels, handles, strict=True))
    sets = ", ".join(dataset_title(d) for d in dict.fromkeys(p.data for p in panels))
    picture.suptitle(f"{title}\n{sets}", fontsize=10)
    picture.supxlabel(below, fontsize=7)
    below_all: dict[str, Any] = {"bbox_to_anchor": (0.5, 0), "ncols": 2 if across < 3 else 5}
    handles, labels = list(marks.values()), list(marks)
    picture.legend(handles, labels, loc="upper center", frameon=False, **below_all)
    return picture


def draw(
    figure: str,
    title: str,
    panels: Sequence[Panel],
    folder: Path,
    ends: Sequence[str] = ("png", "pdf"),
) -> list[Path]:
    """figure.png and figure.pdf, or other ends; panels that failed are named below the picture."""
    with matplotlib.style.context(LOOK):
        picture = compose(figure, title, panels)
        files = [folder / f"{figure}.{end}" for end in ends]
        try:
            for file in files:
                undated = {"CreationDate": None} if file.suffix == ".pdf" else None
                blob, form = io.BytesIO(), file.suffix.removeprefix(".")
                picture.savefig(blob, format=form, dpi=150, bbox_inches="tight", metadata=undated)
                write(file, blob.getvalue())
        except OSError as error:
            raise refused(folder, error) from error
    return files
