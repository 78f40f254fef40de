"""What every figure is: which data and recipes, and a plan for each panel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from r2et.bench.grid import Grid
from r2et.bench.panel import PanelPlan
from r2et.bench.record import Record


@dataclass(frozen=True)
class FigurePlan(ABC):
    """A figure.

    datasets, recipes: those of the papers that can be had here, by default.
    regime: of its networks.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    recipes: tuple[str, ...]
    regime: str = field(default="long", kw_only=True)

    @abstractmethod
    def plan(self, grid: Grid, data: str, recipe: str) -> PanelPlan:
        """Measure what one panel shows."""


def by_seeds(records: list[Record], name: str, seeds: int) -> list[list[float]]:
    """One number of each record; those of all seeds of one training together."""
    flat = [record.measured[name] for record in records]
    return [flat[i : i + seeds] for i in range(0, len(flat), seeds)]
