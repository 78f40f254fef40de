"""What is measured of a trained network on test rows: one function each, from settings to JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import torch
from torch import Tensor, nn

from r2et.attack import AttackResult, StrongAttack
from r2et.bench.case import Case
from r2et.certify import IntervalCertifier
from r2et.data import Data
from r2et.metrics import auc, distinct_top_k, faithfulness, largest_top_k_share
from r2et.rank import thickness
from r2et.rank.bounds import score_jacobian
from r2et.region import L2

VALIDATION_ROWS = 300


def numbers(values: Tensor, digits: int = 6) -> list[float | None]:
    """One number per row as JSON holds it, to a few digits; None where infinite."""
    found = values.detach().double().cpu().tolist()
    return [float(f"{v:.{digits}g}") if abs(v) < float("inf") else None for v in found]


def mean(values: Tensor) -> float:
    """The mean over rows."""
    return float(f"{float(values.double().mean()):.8g}")


class Kind(ABC):
    """A kind of measurement. `settings` says, beside the options, what its result hangs on."""

    @abstractmethod
    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        """Its explanation, attack and the like, as their repr."""

    @abstractmethod
    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        """Measure."""


@final
class Clean(Kind):
    """Accuracy and individuality without an attack."""

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        return {"explainer": repr(case.judged), "k": case.k, **options}

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

    validation: on validation rows, for the choice of a model. explainer: Table 2's. constraint,
    share: Figure 6's, whose attacks keep their last point.
    """

    def __init__(self, attack: str, validation: bool = False) -> None:
        self.attack, self.validation = attack, validation

    def _setup(self, case: Case, **options: Any) -> tuple[Any, Any, int, int]:
        name = options.get("explainer", "gradient")
        more: dict[str, Any] = {}
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
class Thickness(Kind):
    """Thickness of every row, steps to its first flip under ERAttack, and Hessian norm (Fig. 2, 4).

    adversarial: towards the attack's points; gaussian, its mean and smallest; uniform in the ball.
    """

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        rows = options.get("rows") or case.rows
        attack = repr(case.attack("er", options.get("steps")))
        told = {"attack": attack, "explainer": repr(case.explainer), "k": case.k, "rows": rows}
        return {**told, "hessian": bool(options.get("hessian", False))}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        rows = self.settings(case, **options)["rows"]
        x, k, explainer = data.test.x[:rows], case.k, case.explainer
        found = case.attack("er", options.get("steps"))(model, explainer, x, k=k)
        region = case.region if case.table else L2(1.0)
        common: dict[str, Any] = {"explainer": explainer, "region": region}
        near: dict[str, Any] = {**common, "distribution": "gaussian", "samples": 8}
        each = {
            "gap": thickness(model, x, k, **common),
            "probability": thickness(model, x, k, kind="probability", **common),
            "adversarial": thickness(
                model,
                x,
                k,
                explainer=explainer,
                distribution="adversarial",
                x_adv=found.x_adv,
                kind="probability",
            ),
            "gaussian": thickness(model, x, k, kind="probability", **near),
            "gaussian_least": thickness(model, x, k, kind="probability", over="min", **near),
        }
        if options.get("hessian"):
            each["hessian"] = hessian_norm(case, model, x)
        told: dict[str, Any] = {name: mean(value) for name, value in each.items()}
        told |= {"rows": len(x), "precision": mean(found.precision)}
        told |= {f"{name}_rows": numbers(value) for name, value in each.items()}
        return {**told, "first_flip_rows": found.first_flip.tolist()}


def hessian_norm(case: Case, model: nn.Module, x: Tensor) -> Tensor:
    """(B,) Frobenius norm of the scores' derivative by the input, a few rows at a time."""
    parts = []
    for part in torch.split(x, 64):
        scores = case.explainer.at(model, part, create_graph=True)
        parts.append(score_jacobian(scores, part, constant=True).flatten(1).norm(dim=1))
    return torch.cat(parts)


@final
class Faithful(Kind):
    """DFFOT, COMP, SUFF (Table 9)."""

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        rows = options.get("rows") or case.rows
        return {"explainer": repr(case.explainer), "baseline": 0.0, "rows": rows}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        x = data.test.x[: self.settings(case, **options)["rows"]]
        found = faithfulness(model, case.explainer, x)._asdict()
        return {"rows": len(x), **{name: mean(value) for name, value in found.items()}}


@final
class Sorted(Kind):
    """Gradient magnitudes in descending order, mean over rows, the largest as 1 (Figure 8)."""

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        return {"explainer": repr(case.judged), "rows": options.get("rows") or case.rows}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        x = data.test.x[: self.settings(case, **options)["rows"]]
        scores = case.judged(model, x).abs().sort(1, descending=True).values
        shares = scores / scores[:, :1].clamp(min=torch.finfo(scores.dtype).tiny)
        return {"rows": len(x), "features": scores.shape[1], "sorted_rows": numbers(shares.mean(0))}


@final
class Saliency(Kind):
    """Scores of a few rows before and after ERAttack, to be drawn (Figures 3 and 5)."""

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        rows = options.get("rows") or 2
        attack = repr(case.attack("er", options.get("steps")))
        return {"attack": attack, "explainer": repr(case.explainer), "k": case.k, "rows": rows}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        x = data.test.x[: self.settings(case, **options)["rows"]]
        found = case.attack("er", options.get("steps"))(model, case.explainer, x, k=case.k)
        scores = case.explainer.at(model, x)
        shown = []
        for row, (before, after) in enumerate(zip(scores(x), scores(found.x_adv), strict=True)):
            told = {"row": row, "precision": float(found.precision[row])}
            shown.append({**told, "before": numbers(before, 4), "after": numbers(after, 4)})
        return {"shown": shown, "shape": list(x.shape[1:])}


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
