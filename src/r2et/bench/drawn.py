"""What is measured for the figures: thickness and steps, sorted gradients, saliency maps."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from r2et.bench.case import Case
from r2et.bench.kind import Kind, mean, numbers
from r2et.data import Data
from r2et.explain import Explainer
from r2et.rank import ranking, thickness
from r2et.rank.bounds import score_jacobian
from r2et.rank.thickness_weights import Kind as Quantity
from r2et.rank.thickness_weights import ordered_share, rank_weights
from r2et.region import L2, Region

# Of the way to the attack's points. Ten were too few: an attack stops soon after a swap, and what
# swaps on the last twentieth of the way then counts as never swapped.
POINTS = 200


@final
class Thickness(Kind):
    """Thickness of every row, steps to its first flip under ERAttack, and Hessian norm (Fig. 2, 4).

    adversarial: towards the attack's best points, and as a mean gap, and towards its last points;
    gaussian, its mean and smallest; uniform in the ball. A record without `points` took 10.
    """

    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        rows = options.get("rows") or case.rows
        attack = repr(case.attack("er", options.get("steps")))
        told = {"attack": attack, "explainer": repr(case.explainer), "k": case.k, "rows": rows}
        told |= {} if case.table else {"region": repr(_ball(case))}
        return {**told, "points": POINTS + 1, "hessian": bool(options.get("hessian", False))}

    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        settings = self.settings(case, **options)
        x, k, explainer = data.test.x[: settings["rows"]], case.k, case.explainer
        steps = options.get("steps")
        found = case.attack("er", steps)(model, explainer, x, k=k)
        last = case.attack("er", steps, keep="last")(model, explainer, x, k=k)
        common: dict[str, Any] = {"explainer": explainer, "region": _ball(case)}
        near: dict[str, Any] = {**common, "distribution": "gaussian", "samples": 8}
        each = {
            "gap": thickness(model, x, k, **common),
            "probability": thickness(model, x, k, kind="probability", **common),
            "adversarial": on_the_way(model, explainer, x, found.x_adv, k, "probability"),
            "adversarial_gap": on_the_way(model, explainer, x, found.x_adv, k, "gap"),
            "adversarial_last": on_the_way(model, explainer, x, last.x_adv, k, "probability"),
            "gaussian": thickness(model, x, k, kind="probability", **near),
            "gaussian_least": thickness(model, x, k, kind="probability", over="min", **near),
        }
        if options.get("hessian"):
            each["hessian"] = hessian_norm(case, model, x)
        told: dict[str, Any] = {name: mean(value) for name, value in each.items()}
        told |= {"rows": len(x), "points": settings["points"], "precision": mean(found.precision)}
        each["precision"] = found.precision
        told |= {f"{name}_rows": numbers(value) for name, value in each.items()}
        return {**told, "first_flip_rows": found.first_flip.tolist()}


def on_the_way(
    model: nn.Module, explainer: Explainer, x: Tensor, x_adv: Tensor, k: int, kind: Quantity
) -> Tensor:
    """(B,) thickness on the straight way from x to x_adv, whose end is one of the points.

    So a row whose top k has changed at x_adv has a probability kind below 1, however late the swap.
    """
    parts = []
    for here, there in zip(torch.split(x, 64), torch.split(x_adv, 64), strict=True):
        told: dict[str, Any] = {"distribution": "adversarial", "x_adv": there, "points": POINTS}
        way = thickness(model, here, k, explainer=explainer, kind=kind, **told).detach()
        scores = explainer.at(model, here)
        ranked = scores(there).gather(1, ranking(scores(here)))
        if kind == "probability":
            end = ordered_share(ranked, k)
        else:
            end = ranked @ rank_weights(ranked.shape[1], k, kind).to(ranked)
        parts.append((POINTS * way + end) / (POINTS + 1))
    return torch.cat(parts)


def _ball(case: Case) -> Region:
    """Where random points are taken from."""
    return case.region if case.table else L2(1.0)


def hessian_norm(case: Case, model: nn.Module, x: Tensor) -> Tensor:
    """(B,) Frobenius norm of the scores' derivative by the input, a few rows at a time."""
    parts = []
    for part in torch.split(x, 64):
        scores = case.explainer.at(model, part, create_graph=True)
        parts.append(score_jacobian(scores, part, constant=True).flatten(1).norm(dim=1))
    return torch.cat(parts)


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
