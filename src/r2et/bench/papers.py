"""What the papers report: papers.json, by table, recipe and data set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, TypeAlias

Place: TypeAlias = tuple[str, tuple[str, ...]]
# Of each kind of measure: the table, and what its numbers are there.
WHERE: dict[str, Place] = {
    "er": ("table1", ("precision", "")),
    "mse": ("table1", ("", "precision")),
    "thickness": ("table5", ("", "adversarial")),
    "faithfulness": ("table9", ("dffot", "comprehensiveness", "sufficiency")),
}


@lru_cache(maxsize=1)
def papers() -> dict[str, dict[str, dict[str, list[float | None]]]]:
    """table -> recipe -> data set -> numbers."""
    text = resources.files("r2et.bench").joinpath("papers.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, dict[str, list[float | None]]]] = json.loads(text)
    return found


def figure(table: str, paper: str | None, recipe: str, index: int) -> float | None:
    """One number of a table; None where the papers have none, and for data that are not theirs."""
    if paper is None:
        return None
    numbers = papers().get(table, {}).get(recipe, {}).get(paper, [])
    return numbers[index] if index < len(numbers) else None


def where(
    kind: str, options: Mapping[str, Any], retrain: bool, k: int, ks: Sequence[int]
) -> Place | None:
    """The table that has a measurement, and what each of its numbers is there."""
    others = set(options) - {"rows", "steps", "hessian"}
    if retrain:
        return ("table8", ("", "precision")) if kind == "er" and not others else None
    if kind == "er" and others == {"explainer"}:
        names = ("gradient", "smoothgrad", "integrated")
        return "table2", _only("precision", names.index(options["explainer"]))
    if kind == "er" and others == {"k"} and options["k"] in ks:
        return "table7", _only("precision", list(ks).index(options["k"]))
    return WHERE.get(kind) if others <= {"k"} and options.get("k", k) == k else None


def _only(name: str, index: int) -> tuple[str, ...]:
    return (*[""] * index, name)


def reported(
    paper: str | None, recipe: str, table: str, names: Sequence[str]
) -> dict[str, Any] | None:
    """A table's figures for a recipe, by name."""
    told = {n: figure(table, paper, recipe, i) for i, n in enumerate(names) if n}
    found = {name: value for name, value in told.items() if value is not None}
    return {"table": table, **found} if found else None
