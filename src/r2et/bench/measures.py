"""What is measured of a trained network on test rows: one function each, from settings to JSON."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor, nn

from r2et.attack import AttackResult, StrongAttack
from r2et.bench.case import Case
from r2et.bench.drawn import Saliency, Sorted, Thickness
from r2et.bench.kind import Kind, mean, numbers
from r2et.certify import IntervalCertifier
from r2et.data import Data
from r2et.metrics import auc, distinct_top_k, faithfulness, largest_top_k_share

VALIDATION_ROWS = 300


@final
class Clean(Kind):
    """Accuracy and individuality without an attack."""

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        rows = {} if case.table else {"rows": case.rows}
        return {"explainer": repr(case.judged), "k": case.k, **rows, **options}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        del options
        x = data.test.x if case.table else data.test.x[: case.rows]
        scores = case.judged(model, x)
        return {
            "auc": auc(model, data.test.x, data.test.y),
            "rows": len(x),
            "distinct_top_k": distinct_top_k(scores, case.k),
            "largest_top_k_share": largest_top_k_share(scores, case.k),
        }


def tied(scores: Tensor, k: int) -> int:
    """Rows whose k-th and next score are equal: there P@k says which index comes first."""
    ranked = scores.sort(1, descending=True).values
    return int((ranked[:, k - 1] == ranked[:, k]).sum())


def _attacked(
    found: AttackResult, model: nn.Module, x: Tensor, y: Tensor, ties: int
) -> dict[str, Any]:
    return {
        "precision": mean(found.precision),
        "rows": len(x),
        "tied_rows": ties,
        "auc_clean": auc(model, x, y),
        "auc_attacked": auc(model, found.x_adv, y),
        "sensitivity": mean((~found.kept).float()),
        "precision_rows": numbers(found.precision),
    }


@final
class Papers(Kind):
    """P@k under the papers' ERAttack or MSE attack.

    validation: on validation rows, for the choice of a model. explainer: Table 2's. keep: "last"
    for the attack's last point in place of its best. constraint, share: Figure 6's, whose attacks
    keep their last point.
    """

    def __init__(self, attack: str, validation: bool = False) -> None:
        self.attack, self.validation = attack, validation

    def _setup(self, case: Case, **options: Any) -> tuple[Any, Any, int, int]:
        name = options.get("explainer", "gradient")
        more: dict[str, Any] = {"keep": options["keep"]} if "keep" in options else {}
        if "constraint" in options:
            size = options["share"] * case.region.radius / 5  # type: ignore[attr-defined]
            more = {"constraint": options["constraint"], "keep": "last", "step_size": size}
        through = name != "gradient"
        attack = case.attack(self.attack, options.get("steps"), through=through, **more)
        usual = min(VALIDATION_ROWS, case.rows) if self.validation else case.rows
        rows = options.get("rows") or usual
        return attack, case.explained_by(name), options.get("k", case.k), rows

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        attack, explainer, k, rows = self._setup(case, **options)
        told = {"attack": repr(attack), "explainer": repr(explainer), "k": k, "rows": rows}
        return {**told, "part": "validation" if self.validation else "test"}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        attack, explainer, k, rows = self._setup(case, **options)
        part = data.val if self.validation else data.test
        x, y = part.x[:rows], part.y[:rows]
        found = attack(model, explainer, x, k=k)
        told = _attacked(found, model, x, y, tied(explainer(model, x), k))
        if "constraint" in options:  # such an attack may lose predictions: they are no success
            told["precision"] = mean(found.precision[found.kept]) if found.kept.any() else None
        if self.validation:
            told = {"auc_validation": auc(model, *data.val), "precision": told["precision"]}
        return told


@final
class Strong(Kind):
    """P@k under the attack to judge by; with a small budget where a row has many features."""

    def _attack(self, case: Case) -> StrongAttack:
        return StrongAttack(case.region, budget="standard" if case.table else "fast")

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        rows, k = options.get("rows") or case.strong_rows, options.get("k", case.k)
        told = {"attack": repr(self._attack(case)), "explainer": repr(case.judged)}
        return {**told, "k": k, "rows": rows}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        told = self.settings(case, **options)
        x, y, k = data.test.x[: told["rows"]], data.test.y[: told["rows"]], told["k"]
        found = self._attack(case)(model, case.judged, x, k=k)
        return _attacked(found, model, x, y, tied(case.judged(model, x), k))


@final
class Certified(Kind):
    """The proved radius of each row, and the share of rows proved at the case's radius."""

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        certifier = IntervalCertifier(limit=3 * case.radius)
        rows = options.get("rows") or case.certified_rows
        told = {"certifier": repr(certifier), "explainer": repr(case.judged)}
        return {**told, "k": case.k, "rows": rows, "radius": case.radius}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        rows = self.settings(case, **options)["rows"]
        x = data.test.x[:rows]
        found = IntervalCertifier(limit=3 * case.radius)(model, case.judged, x, k=case.k)
        return {
            "share": mean((found.radius >= case.radius).float()),
            "precision": mean(found.precision_at(case.radius)),
            "radius_median": mean(found.radius.median()),
            "rows": len(x),
            "sound": found.sound,
            "assumptions": found.assumptions,
            "radius_rows": numbers(found.radius),
        }


@final
class Faithful(Kind):
    """DFFOT, COMP, SUFF of absolute differences, as the papers print them (Table 9)."""

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        rows = options.get("rows") or case.rows
        told = {"explainer": repr(case.explainer), "baseline": 0.0, "absolute": True}
        return {**told, "rows": rows}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        x = data.test.x[: self.settings(case, **options)["rows"]]
        found = faithfulness(model, case.explainer, x, absolute=True)._asdict()
        return {"rows": len(x), **{name: mean(value) for name, value in found.items()}}


MEASURES: dict[str, Kind] = {
    "clean": Clean(),
    "validation": Papers("er", validation=True),
    "er": Papers("er"),
    "mse": Papers("mse"),
    "strong": Strong(),
    "certified": Certified(),
    "thickness": Thickness(),
    "faithfulness": Faithful(),
    "sorted": Sorted(),
    "saliency": Saliency(),
}
