"""What the papers report: papers.json, by table, recipe and dataset; which recipes are theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, TypeAlias

R2ET_VARIANTS = ("r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh")
OTHER_METHODS = ("wd", "sp", "est-h", "exact-h", "ssr", "at", "cl")
ADDITIONS = ("r2et-ball", "certified", "certified-individual", "r2et-reasons", "certified-reasons")
BASELINE = "linear"  # a constant ranking: printed, and not in the race

PaperTables: TypeAlias = dict[str, dict[str, dict[str, list[float | None]]]]
Place: TypeAlias = tuple[str, tuple[str, ...]]
# Of each measurement: the table, and what its numbers are there.
WHERE: dict[str, Place] = {
    "er": ("table1", ("precision", "")),
    "mse": ("table1", ("", "precision")),
    "thickness": ("table5", ("", "adversarial")),
    "faithfulness": ("table9", ("dffot", "comprehensiveness", "sufficiency")),
}


def is_r2et_family(recipe: str) -> bool:
    """Whether a recipe is R2ET or one of our additions; a module:name of others is not."""
    return recipe in R2ET_VARIANTS or recipe in ADDITIONS


@lru_cache(maxsize=1)
def paper_tables() -> PaperTables:
    """table -> recipe -> dataset -> numbers."""
    text = resources.files("r2et.bench").joinpath("papers.json").read_text(encoding="utf-8")
    tables: PaperTables = json.loads(text)
    return tables


def reported_value(table: str, paper: str | None, recipe: str, index: int) -> float | None:
    """One number of a table; None where the papers have none, and for data that are not theirs."""
    if paper is None:
        return None
    numbers = paper_tables().get(table, {}).get(recipe, {}).get(paper, [])
    return numbers[index] if index < len(numbers) else None


def where_reported(
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


def reported_values(
    paper: str | None, recipe: str, table: str, names: Sequence[str]
) -> dict[str, Any] | None:
    """A table's figures for a recipe, by name."""
    values = {n: reported_value(table, paper, recipe, i) for i, n in enumerate(names) if n}
    printed = {name: value for name, value in values.items() if value is not None}
    return {"table": table, **printed} if printed else None
