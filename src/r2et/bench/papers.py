"""What the papers report: papers.json, by table, recipe and data set."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

# Of each kind of measure: the table, and what its numbers are there.
WHERE: dict[str, tuple[str, tuple[str, ...]]] = {
    "er": ("table1", ("precision", "")),
    "mse": ("table1", ("", "precision")),
    "thickness": ("table5", ("", "probability")),
    "faithfulness": ("table9", ("dffot", "comprehensiveness", "sufficiency")),
}


@lru_cache(maxsize=1)
def papers() -> dict[str, dict[str, dict[str, list[float | None]]]]:
    """table -> recipe -> data set -> numbers."""
    text = resources.files("r2et.bench").joinpath("papers.json").read_text()
    found: dict[str, dict[str, dict[str, list[float | None]]]] = json.loads(text)
    return found


def figure(table: str, paper: str | None, recipe: str, index: int) -> float | None:
    """One number of a table; None where the papers have none, and for data that are not theirs."""
    if paper is None:
        return None
    numbers = papers().get(table, {}).get(recipe, {}).get(paper, [])
    return numbers[index] if index < len(numbers) else None


def reported(
    paper: str | None, recipe: str, kind: str, retrain: bool = False
) -> dict[str, Any] | None:
    """The figures for one kind of measure, by name."""
    if kind not in WHERE:
        return None
    table, names = WHERE[kind]
    if retrain:  # Table 8's second number
        table, names = "table8", ("", "precision" if kind == "er" else "")
    told = {n: figure(table, paper, recipe, i) for i, n in enumerate(names) if n}
    found = {name: value for name, value in told.items() if value is not None}
    return {"table": table, **found} if found else None
