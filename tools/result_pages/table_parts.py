"""Parts of pages made of what was measured on tables: accuracy beside boosting, budgets of AUC."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

from result_pages.perf_parts import made_with, record, table

COLUMNS = ("certified", "vanilla")
BASELINES = ("logistic", "boosting")
NEAR = {"certified": 0.01, "vanilla": 0.005}  # of AUC: what is said to be at boosting's level


def tables() -> str:
    """Test AUC, proved share and sets of the default networks, and the baselines' AUC."""
    stored = record("tables")
    rows = [_row(name, entry) for name, entry in stored["tables"].items() if entry["runs"]]
    head = ["table", "rows", "features", "logistic regression", "boosting"]
    for recipe in COLUMNS:
        head += [f"`{recipe}`", "beside boosting", "proved", "sets"]
    note = (
        f"Test AUC, means over {_splits(stored)} splits of each table, a training on each. Beside "
        "boosting: the mean difference on the same split, and its standard error. Proved: share of "
        f"{stored['proved_rows']} test rows whose top k cannot change within radius "
        f"{stored['radius']}. Sets: different top-k sets among the first {stored['sets_rows']} "
        "test rows. Rows: for training. Tables in italics had no say in how the networks were made."
    )
    return f"{table(head, rows)}\n\n{note}\n\n{_summary(stored)} {made_with(stored)}"


def tables_ranks() -> str:
    """What columns as ranks change, where `certified` is clearly below boosting."""
    stored = record("tables")
    rows = []
    for name, entry in stored["tables"].items():
        over = {
            ranks: _over(entry, "certified", "boosting", ranks=ranks) for ranks in (False, True)
        }
        if not all(over.values()) or mean(over[False]) >= -NEAR["certified"]:
            continue
        cells = [name if entry["chosen_by"] else f"*{name}*"]
        for ranks, values in over.items():
            runs = _runs(entry, "certified", ranks=ranks)
            cells.append(f"{mean(values):+.3f} ± {standard_error(values):.3f}")
            cells.append(f"{100 * mean(run['proved'] for run in runs):.0f} %")
            cells.append(f"{mean(run['sets'] for run in runs):.0f}")
        rows.append(cells)
    head = ["table", "`certified` beside boosting", "proved", "sets"]
    return table([*head, "columns as ranks", "proved", "sets"], rows)


def _splits(stored: dict[str, Any]) -> str:
    """How many there are: of all tables the fewest and the most, where these differ."""
    counts = {len(entry["baselines"]) for entry in stored["tables"].values()}
    return " to ".join(map(str, sorted({min(counts), max(counts)})))


def _row(name: str, entry: dict[str, Any]) -> list[str]:
    cells = [name if entry["chosen_by"] else f"*{name}*", str(entry["rows"][0])]
    cells.append(str(entry["features"]))
    cells += [f"{mean(b[key] for b in entry['baselines']):.3f}" for key in BASELINES]
    for recipe in COLUMNS:
        runs = _runs(entry, recipe)
        if not runs:
            cells += ["", "", "", ""]
            continue
        over = _over(entry, recipe, "boosting")
        cells.append(f"{mean(run['auc'] for run in runs):.3f}")
        cells.append(f"{mean(over):+.3f} ± {standard_error(over):.3f}")
        cells.append(f"{100 * mean(run['proved'] for run in runs):.0f} %")
        cells.append(f"{mean(run['sets'] for run in runs):.0f}")
    return cells


def _runs(entry: dict[str, Any], recipe: str, *, ranks: bool = False) -> list[dict[str, Any]]:
    return [run for run in entry["runs"] if (run["recipe"], run["ranks"]) == (recipe, ranks)]


def _over(entry: dict[str, Any], recipe: str, baseline: str, *, ranks: bool = False) -> list[float]:
    """How far a recipe is above a baseline, split by split; ranks: with its columns as ranks."""
    beside = {split["seed"]: split[baseline] for split in entry["baselines"]}
    runs = _runs(entry, recipe, ranks=ranks)
    return [run["auc"] - beside[run["seed"]] for run in runs]


def standard_error(values: list[float]) -> float:
    """Of their mean; 0 of one value."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _summary(stored: dict[str, Any]) -> str:
    """On how many tables a recipe is near boosting, and above logistic regression."""
    parts = []
    for recipe, near in NEAR.items():
        entries = [e for e in stored["tables"].values() if _runs(e, recipe)]
        if not entries:
            continue
        over = [_over(entry, recipe, "boosting") for entry in entries]
        lines = [_over(entry, recipe, "logistic") for entry in entries]
        below = [values for values in over if mean(values) < -near]
        surely = sum(mean(values) + 2 * standard_error(values) < -near for values in below)
        parts.append(
            f"`{recipe}` is at most {near} below boosting, or above it, on "
            f"{len(over) - len(below)} of {len(over)} tables (mean difference "
            f"{mean(map(mean, over)):+.3f}), on {surely} surely further below, by two standard "
            f"errors; and above logistic regression on {sum(mean(v) > 0 for v in lines)}."
        )
    return " ".join(parts)


def auc_budget() -> str:
    """Whether max_auc_drop held on test rows, and what a fixed weight would have proved."""
    stored = record("auc_budget")
    rows, held, exact, near = [], 0, 0, 0
    for case in stored["cases"]:
        chosen = next(t for t in case["test"] if t["weight"] == case["chosen"])
        inside = [t for t in case["test"] if t["weight"] and t["drop"] <= stored["max_auc_drop"]]
        best = max((t["proved"] for t in inside), default=0.0)
        held += chosen["drop"] - chosen["half_width"] <= stored["max_auc_drop"]
        exact += chosen["drop"] <= stored["max_auc_drop"]
        near += chosen["proved"] >= best - 0.03
        name = case["table"] if case["chosen_by"] else f"*{case['table']}*"
        rows.append(
            [
                name,
                f"`{case['recipe']}`",
                str(case["seed"]),
                f"{case['chosen']:.3g}",
                f"{chosen['drop']:+.4f} ± {chosen['half_width']:.4f}",
                f"{100 * chosen['proved']:.0f} %",
                f"{100 * best:.0f} %",
                f"{case['plain_trainings']:.1f}",
            ]
        )
    head = ["table", "recipe", "seed", "weight", "drop on test rows", "proved"]
    head += ["best weight's", "plain trainings"]
    total = len(rows)
    note = (
        f"max_auc_drop={stored['max_auc_drop']}, {stored['epochs']} epochs, radius "
        f"{stored['radius']}, proved on {stored['proved_rows']} test rows. The drop is within the "
        f"budget, or not surely beyond it (95 %), in {held} of {total} cases, in {exact} of them "
        f"without regard to its interval; the proved share is "
        f"at most 3 points below that of the best weight of the same search that keeps to the "
        f"budget on test rows in {near} of {total}."
    )
    return f"{table(head, rows)}\n\n{note} {made_with(stored)}"
