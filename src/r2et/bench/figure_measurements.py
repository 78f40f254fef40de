"""What is measured for the figures: thickness and steps, sorted gradients, saliency maps."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.bench.measurement import Measurement, mean, rounded
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
class Thickness(Measurement):
    """Thickness of every row, steps to its first flip under ERAttack, and Hessian norm (Fig. 2, 4).

    adversarial: towards the attack's best points, and as a mean gap, and towards its last points;
    gaussian, its mean and smallest; uniform in the ball. Version 1 took ten points of the way.
    """

    version = 2

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        region = {} if benchmark.is_table else {"region": _ball(benchmark)}
        return {
            "attack": benchmark.attack("er", options.get("steps")),
            "explainer": benchmark.explainer,
            "k": benchmark.k,
            "rows": options.get("rows") or benchmark.rows,
            "hessian": bool(options.get("hessian", False)),
            **region,
        }

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        settings = self.settings(benchmark, **options)
        x, k, explainer = data.test.x[: settings["rows"]], benchmark.k, benchmark.explainer
        best = settings["attack"](model, explainer, x, k=k)
        last = benchmark.attack("er", options.get("steps"), keep="last")(model, explainer, x, k=k)
        common: dict[str, Any] = {"explainer": explainer, "region": _ball(benchmark)}
        near: dict[str, Any] = {**common, "distribution": "gaussian", "samples": 8}
        each = {
            "gap": thickness(model, x, k, **common),
            "probability": thickness(model, x, k, kind="probability", **common),
            "adversarial": on_the_way(model, explainer, x, best.x_adv, k, "probability"),
            "adversarial_gap": on_the_way(model, explainer, x, best.x_adv, k, "gap"),
            "adversarial_last": on_the_way(model, explainer, x, last.x_adv, k, "probability"),
            "gaussian": thickness(model, x, k, kind="probability", **near),
            "gaussian_least": thickness(model, x, k, kind="probability", over="min", **near),
        }
        if settings["hessian"]:
            each["hessian"] = hessian_norm(benchmark, model, x)
        means: dict[str, Any] = {name: mean(value) for name, value in each.items()}
        means |= {"rows": len(x), "points": POINTS + 1, "precision": mean(best.precision)}
        each["precision"] = best.precision
        rows = {f"{name}_rows": rounded(value) for name, value in each.items()}
        return {**means, **rows, "first_flip_rows": best.first_flip.tolist()}


def on_the_way(
    model: nn.Module, explainer: Explainer, x: Tensor, x_adv: Tensor, k: int, kind: Quantity
) -> Tensor:
    """(B,) thickness on the straight way from x to x_adv, whose end is one of the points.

    So a row whose top k has changed at x_adv has a probability kind below 1, however late the swap.
    """
    parts = []
    for here, there in zip(torch.split(x, 64), torch.split(x_adv, 64), strict=True):
        line: dict[str, Any] = {"distribution": "adversarial", "x_adv": there, "points": POINTS}
        way = thickness(model, here, k, explainer=explainer, kind=kind, **line).detach()
        scores = explainer.at(model, here)
        ranked = scores(there).gather(1, ranking(scores(here)))
        if kind == "probability":
            end = ordered_share(ranked, k)
        else:
            end = ranked @ rank_weights(ranked.shape[1], k, kind).to(ranked)
        parts.append((POINTS * way + end) / (POINTS + 1))
    return torch.cat(parts)


def _ball(benchmark: BenchmarkConfig) -> Region:
    """Where random points are taken from."""
    return benchmark.region if benchmark.is_table else L2(1.0)


def hessian_norm(benchmark: BenchmarkConfig, model: nn.Module, x: Tensor) -> Tensor:
    """(B,) Frobenius norm of the scores' derivative by the input, a few rows at a time."""
    parts = []
    for part in torch.split(x, 64):
        scores = benchmark.explainer.at(model, part, create_graph=True)
        parts.append(score_jacobian(scores, part, constant=True).flatten(1).norm(dim=1))
    return torch.cat(parts)


@final
class SortedMagnitudes(Measurement):
    """Gradient magnitudes in descending order, mean over rows, the largest as 1 (Figure 8)."""

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        return {"explainer": benchmark.judged, "rows": options.get("rows") or benchmark.rows}

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        x = data.test.x[: self.settings(benchmark, **options)["rows"]]
        scores = benchmark.judged(model, x).abs().sort(1, descending=True).values
        shares = scores / scores[:, :1].clamp(min=torch.finfo(scores.dtype).tiny)
        means = rounded(shares.mean(0))
        return {"rows": len(x), "features": scores.shape[1], "sorted_rows": means}


@final
class SaliencyMaps(Measurement):
    """Scores of a few rows before and after ERAttack, to be drawn (Figures 3 and 5)."""

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        return {
            "attack": benchmark.attack("er", options.get("steps")),
            "explainer": benchmark.explainer,
            "k": benchmark.k,
            "rows": options.get("rows") or 2,
        }

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        settings = self.settings(benchmark, **options)
        x = data.test.x[: settings["rows"]]
        result = settings["attack"](model, benchmark.explainer, x, k=benchmark.k)
        scores = benchmark.explainer.at(model, x)
        shown = []
        for row, (before, after) in enumerate(zip(scores(x), scores(result.x_adv), strict=True)):
            entry = {"row": row, "precision": float(result.precision[row])}
            shown.append({**entry, "before": rounded(before, 4), "after": rounded(after, 4)})
        return {"shown": shown, "shape": list(x.shape[1:])}
