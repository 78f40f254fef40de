"""The papers' tables, each as data."""

from __future__ import annotations

import difflib

from r2et.bench.registry import find_benchmark
from r2et.bench.table_plan import ResultColumn, TableSpec, precision, share
from r2et.errors import InputError

ER = precision("ERAttack", "er", ("table1", 0))
MSE = precision("MSE attack", "mse", ("table1", 1))
STRONG = precision("StrongAttack", "strong", None)
PROVED = share("proved", "certified", "share", None, tables_only=True)
AUC = ResultColumn("cAUC", "clean", "auc", higher=None)
SETS = ResultColumn("sets", "clean", "distinct_top_k", higher=None, digits=0)

TABLE_SPECS: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        TableSpec(
            "table1",
            "Table 1: P@k under attack",
            (AUC, ER, MSE, STRONG, PROVED, SETS),
            about="StrongAttack and the share of rows proved are ours; sets: different top-k sets.",
        ),
        TableSpec(
            "table2",
            "Table 2: P@k under ERAttack, by explanation",
            (
                precision("Grad", "er", ("table2", 0)),
                precision("SG", "er", ("table2", 1), options=(("explainer", "smoothgrad"),)),
                precision("IG", "er", ("table2", 2), options=(("explainer", "integrated"),)),
                AUC,
            ),
            about="SmoothGrad and integrated gradients are attacked through the gradient.",
        ),
        TableSpec(
            "table5",
            "Tables 3 and 5: P@k and thickness",
            (
                precision("ERAttack", "er", ("table5", 0)),
                ResultColumn("thickness", "thickness", "adversarial", ("table5", 1), digits=4),
                ResultColumn("thickness in the ball", "thickness", "probability", digits=4),
                ResultColumn("mean gap", "thickness", "gap", digits=4),
                AUC,
            ),
            about="Thickness: the share of pairs in order, on the way to the attack's points and "
            "in the whole ball; the mean gap depends on the scale of a model's gradients.",
        ),
        TableSpec(
            "table6",
            "Table 6: AUC before and after the attack",
            (
                ResultColumn("cAUC, ER", "er", "auc_clean", ("table6", 0)),
                ResultColumn("aAUC, ER", "er", "auc_attacked", ("table6", 1)),
                ResultColumn("cAUC, MSE", "mse", "auc_clean", ("table6", 2)),
                ResultColumn("aAUC, MSE", "mse", "auc_attacked", ("table6", 3)),
            ),
            about="Of the attacked rows.",
        ),
        TableSpec(
            "table8",
            "Table 8: P@k under ERAttack, from scratch and retrained from Vanilla",
            (
                precision("scratch", "er", ("table8", 0)),
                precision("retrained", "er", ("table8", 1), retrain=True),
                ResultColumn("cAUC, scratch", "clean", "auc", higher=None),
                ResultColumn("cAUC, retrained", "clean", "auc", higher=None, retrain=True),
            ),
            about="Retrained: with a tenth of the learning rate, for 10 epochs at most, stopped "
            "where P@k with Vanilla's own rankings falls below 0.9 or the AUC by more than 0.01; "
            "where that is in the first epoch, it is Vanilla still, and there is no number.",
        ),
        TableSpec(
            "table9",
            "Table 9: faithfulness",
            (
                ResultColumn("DFFOT", "faithfulness", "dffot", ("table9", 0), higher=False),
                ResultColumn("COMP", "faithfulness", "comprehensiveness", ("table9", 1)),
                ResultColumn("SUFF", "faithfulness", "sufficiency", ("table9", 2), higher=False),
                AUC,
            ),
            about="DFFOT and SUFF: less is better. Removed features are set to 0; differences are "
            "absolute, as the papers print them.",
        ),
        TableSpec(
            "nearest",
            "What comes nearest to each figure of the papers' Table 1",
            (ER, AUC, STRONG, PROVED, SETS),
            about="Of all settings tried, the one whose validation P@k is nearest to the papers' "
            "figure, above the threshold where that is within five points of it.",
            nearest=True,
            regime="papers",
        ),
        TableSpec(
            "leaderboard",
            "Leaderboard: proved, then under StrongAttack",
            (PROVED, STRONG, AUC, SETS),
            order=("proved", "strongattack"),
            about="At the accuracy threshold; those below it come last.",
        ),
    )
}
ALIASES = {"table3": "table5"}


def table7(data: str) -> TableSpec:
    """Table 7: each dataset has its own three k."""
    own, ks = find_benchmark(data).k, find_benchmark(data).ks
    options = {k: () if k == own else (("k", k),) for k in ks}  # Table 1 has its own k
    attacked = tuple(
        precision(f"P@{k}", "er", ("table7", i), options=options[k]) for i, k in enumerate(ks)
    )
    hard = tuple(precision(f"P@{k}, StrongAttack", "strong", None, options=options[k]) for k in ks)
    about = "All of the models trained for the data set's own k."
    return TableSpec(
        "table7", "Table 7: P@k under ERAttack, for several k", (*attacked, *hard), (), about
    )


TABLE_NAMES = ("table1", "table2", "table3", "table5", "table6", "table7", "table8", "table9")


def table_spec(name: str, data: str) -> TableSpec:
    """The table of this name, as it is for a dataset."""
    name = ALIASES.get(name, name)
    return table7(data) if name == "table7" else TABLE_SPECS[name]


def unknown_name(name: str, names: tuple[str, ...]) -> InputError:
    """A sentence about a table or figure that is none."""
    if name.lower() == "table4":
        reason = "in the papers a list of settings, and ours are in every record"
        return InputError(f"bench: name must be a table of numbers, got {name!r}, {reason}.")
    near = difflib.get_close_matches(name.lower(), names, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return InputError(f"bench: name must be one of {', '.join(names)}{hint}, got {name!r}.")
