"""Parts of pages about training: Table 1 of the benchmark, and the recipes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from functools import cache
from statistics import mean, median
from typing import Any

from r2et.bench.candidates import TABLE_CANDIDATES
from r2et.bench.claim import Claim
from r2et.bench.paper_tables import TABLE_SPECS
from r2et.bench.registry import BENCHMARKS
from r2et.bench.result_table import shown
from r2et.train import RECIPES
from result_pages.archive import END, Archive
from result_pages.perf_parts import ROOT, made_with, record, table

RECORDS = ROOT / "docs" / "records"  # what `r2et bench` measured
NEAR = 0.03  # of a share: as stable
HEAD = (
    "data",
    "recipe",
    "chosen",
    "reported",
    "cAUC",
    "ERAttack",
    "StrongAttack",
    "proved",
    "sets",
)


@cache
def bench_claims(is_table: bool) -> list[Claim]:
    """Every row of Table 1 by `r2et bench`, as the papers order them.

    Of tables in the long regime, of what is none in the papers'.
    """
    order = list(TABLE_CANDIDATES)
    run, name = ("tables", "table1") if is_table else ("papers", "table1-papers")
    claims = Archive.read(RECORDS / f"{run}{END}").claims_of(name)
    return sorted(claims, key=lambda c: (list(BENCHMARKS).index(c.data), order.index(c.recipe)))


def bench_rows(is_table: bool, names: Collection[str] = ()) -> list[list[str]]:
    """Rows of Table 1: of tables, or of what is none; of all recipes or of some."""
    columns = {column.key: column for column in TABLE_SPECS["table1"].columns}
    rows = []
    for claim in bench_claims(is_table):
        if BENCHMARKS[claim.data].is_table is not is_table:
            continue
        if names and claim.recipe not in names:
            continue
        if not is_table and all(values.mean is None for values in claim.numbers.values()):
            continue  # a recipe for tables alone
        cells = {}
        for key, values in claim.numbers.items():
            cells[key] = "" if values.mean is None else shown(columns[key], values)
        chosen = claim.chosen.items()
        settings = ", ".join(f"{n}={v if isinstance(v, str) else f'{v:g}'}" for n, v in chosen)
        settings += " (AUC below the threshold)" if claim.unreliable else ""
        theirs = claim.numbers["erattack"].reported
        reported = "" if theirs is None else f"{theirs:.1f}"
        figures = [cells[key] for key in ("cauc", "erattack", "strongattack", "proved", "sets")]
        rows.append([claim.data, f"`{claim.recipe}`", settings, reported, *figures])
    return rows


def training() -> str:
    """Table 1 for tables: the papers' figure beside ours, and what they do not report."""
    about = (
        "P@8 in percent, l2 radius 1, 3 seeds (mean ± half the range); 500 test rows under "
        "ERAttack, 200 under StrongAttack; proved: the share of 200 rows whose top 8 cannot "
        "change; sets: different top-8 sets of all test rows. All tables and figures, and the "
        "records: [results](results.md)."
    )
    return f"{table(list(HEAD), bench_rows(is_table=True))}\n\n{about}"


def primal_dual() -> str:
    """The search for a weight beside trainings that adapt theirs, over all cases of a recipe."""
    stored = record("primal_dual")
    rows = []
    for recipe in dict.fromkeys(case["recipe"] for case in stored["cases"]):
        cases = [case["ways"] for case in stored["cases"] if case["recipe"] == recipe]
        for way in cases[0]:
            pairs = [(ways[way], ways["search"]) for ways in cases]
            own = [one for one, _ in pairs]
            beyond = sum(one["drop"] - one["half_width"] > stored["max_auc_drop"] for one in own)
            less = sum(
                any(one[share] < other[share] - NEAR for share in ("proved", "attacked"))
                for one, other in pairs
            )
            rows.append(
                [
                    f"`{recipe}`",
                    way,
                    f"{sum(one['met'] for one in own)} of {len(own)}",
                    f"{mean(one['drop'] for one in own):+.4f}",
                    f"{max(one['drop'] for one in own):+.4f}",
                    str(beyond),
                    f"{100 * mean(one['proved'] for one in own):.0f} %",
                    f"{100 * mean(one['attacked'] for one in own):.1f} %",
                    f"{mean(one['sets'] for one in own):.0f}",
                    str(less),
                    f"{median(one['cost'] for one in own):.1f}",
                ]
            )
    head = ["recipe", "weight by", "within the budget (validation)", "mean drop (test)", "largest"]
    head += ["surely beyond", "proved", "P@k", "sets", "less stable than the search", "cost"]
    seeds: dict[int, dict[str, None]] = {}
    for case in stored["cases"]:
        seeds.setdefault(case["seed"], {})[case["table"]] = None
    tables = "; ".join(f"seed {seed}: {', '.join(names)}" for seed, names in seeds.items())
    trainings = median(case["ways"]["search"]["trainings"] for case in stored["cases"])
    note = (
        f"Tables of {tables}. A budget of {stored['max_auc_drop']}, "
        f"{stored['epochs']} epochs, radius {stored['radius']}. On test rows: the drop from weight "
        f"0, and of {stored['proved_rows']} and {stored['attacked_rows']} of them the share proved "
        "and P@k under StrongAttack. Surely: beyond the 95 % interval. Less stable: in so many "
        f"cases either share is more than {100 * NEAR:.0f} points lower. Cost: median processor "
        "time in trainings at weight 0, all that a way needs; of the search with its proofs and "
        f"attacks (its trainings alone, by the clock of a busy machine, as is the cost of the own "
        f"weight: {trainings:.1f})."
    )
    return f"{table(head, rows)}\n\n{note} {made_with(stored)}"


def others() -> str:
    """Pairs of digits, pictures, brain networks."""
    rows = [row[:7] for row in bench_rows(is_table=False)]
    return table(list(HEAD[:7]), rows)


def changes(settings: Any, *hidden: str) -> str:
    """The fields of a dataclass that differ from their defaults, as they would be written."""
    changed = []
    for item in fields(settings):
        value = getattr(settings, item.name)
        if item.name not in hidden and value != item.default:
            changed.append(f"{item.name}={value!r}")
    return ", ".join(changed)


def recipes() -> str:
    """Every recipe: what it does, its penalty, and its own settings."""
    rows = []
    for name, recipe in RECIPES.items():
        penalty = recipe.penalty
        shown = "" if penalty is None else f"`{type(penalty).__name__}({changes(penalty)})`"
        settings = changes(recipe, "name", "penalty", "about")
        if penalty is not None and recipe.weight is None:
            settings = settings.replace("weight=None", f"weight={penalty.usual_weight:g} / radius")
        rows.append([f"`{name}`", recipe.about, shown, f"`{settings}`" if settings else ""])
    return table(["recipe", "what it is", "penalty", "settings"], rows)


def one_recipe(name: str) -> str:
    """What one recipe came to beside Vanilla, and what its step costs."""
    rows = [row[:2] + row[4:] for row in bench_rows(is_table=True, names={name, "vanilla"})]
    head = [*HEAD[:2], *HEAD[4:]]
    costs = record("steps")["plain steps"]
    each = [f"{some[name]:.2f} on {kind}" for kind, some in costs.items() if name in some]
    cost = f" A step costs, in plain steps: {'; '.join(each)}." if each else ""
    about = (
        "P@8 in percent at l2 radius 1; proved: rows whose top 8 cannot change; sets: different "
        "top-8 sets. All recipes: [results](../results.md)."
    )
    return f"{table(head, rows)}\n\n{about}{cost}"
