"""What the tables measure of a trained network on test rows, and the registry of measurements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from r2et.attack import AttackResult, StrongAttack
from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.bench.figure_measurements import SaliencyMaps, SortedMagnitudes, Thickness
from r2et.bench.measurement import Measurement, mean, rounded
from r2et.certify import IntervalCertifier
from r2et.data import Data
from r2et.metrics import auc, distinct_top_k, faithfulness, largest_top_k_share


@final
class Clean(Measurement):
    """Accuracy and individuality without an attack."""

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        rows = {} if benchmark.is_table else {"rows": benchmark.rows}
        return {"explainer": benchmark.judged, "k": benchmark.k, **rows, **options}

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        del options
        x = data.test.x if benchmark.is_table else data.test.x[: benchmark.rows]
        scores = benchmark.judged(model, x)
        return {
            "auc": auc(model, data.test.x, data.test.y),
            "rows": len(x),
            "distinct_top_k": distinct_top_k(scores, benchmark.k),
            "largest_top_k_share": largest_top_k_share(scores, benchmark.k),
        }


def count_ties(scores: Tensor, k: int) -> int:
    """Rows whose k-th and next score are equal: there P@k says which index comes first."""
    ranked = scores.sort(1, descending=True).values
    return int((ranked[:, k - 1] == ranked[:, k]).sum())


def _summary(
    result: AttackResult, model: nn.Module, x: Tensor, y: Tensor, ties: int
) -> dict[str, Any]:
    return {
        "precision": mean(result.precision),
        "rows": len(x),
        "tied_rows": ties,
        "auc_clean": auc(model, x, y),
        "auc_attacked": auc(model, result.x_adv, y),
        "sensitivity": mean((~result.kept).float()),
        "precision_rows": rounded(result.precision),
    }


@final
class PaperAttackPrecision(Measurement):
    """P@k under the papers' ERAttack or MSE attack.

    validation: on validation rows, for the selection of a model. Options:
    explainer: Table 2's.
    keep: "last" for the attack's last point in place of its best.
    constraint, share: Figure 6's, whose attacks keep their last point.
    radius: of the region, in place of the benchmark's.
    """

    def __init__(self, attack: str, validation: bool = False) -> None:
        self.attack, self.validation = attack, validation

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        name = options.get("explainer", "gradient")
        if "radius" in options:
            ball: Any = benchmark.region
            benchmark = replace(benchmark, region=replace(ball, radius=options["radius"]))
        more: dict[str, Any] = {"keep": options["keep"]} if "keep" in options else {}
        if "constraint" in options:
            size = options["share"] * benchmark.region.radius / 5  # type: ignore[attr-defined]
            more = {"constraint": options["constraint"], "keep": "last", "step_size": size}
        through = name != "gradient"
        attack = benchmark.attack(self.attack, options.get("steps"), through=through, **more)
        few = min(benchmark.validation_rows, benchmark.rows)
        usual = few if self.validation else benchmark.rows
        return {
            "attack": attack,
            "explainer": benchmark.explained_by(name),
            "k": options.get("k", benchmark.k),
            "rows": options.get("rows") or usual,
            "part": "validation" if self.validation else "test",
        }

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        settings = self.settings(benchmark, **options)
        attack, explainer, k = (settings[name] for name in ("attack", "explainer", "k"))
        part = data.val if self.validation else data.test
        x, y = part.x[: settings["rows"]], part.y[: settings["rows"]]
        result = attack(model, explainer, x, k=k)
        measured = _summary(result, model, x, y, count_ties(explainer(model, x), k))
        if "constraint" in options:  # such an attack may lose predictions: they are no success
            kept = result.precision[result.kept]
            measured["precision"] = mean(kept) if len(kept) else None
        if self.validation:
            return {"auc_validation": auc(model, *data.val), "precision": measured["precision"]}
        return measured


@final
class StrongAttackPrecision(Measurement):
    """P@k under the attack to judge by; with a small budget where a row has many features."""

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        budget = "standard" if benchmark.is_table else "fast"
        return {
            "attack": StrongAttack(benchmark.region, budget=budget),  # type: ignore[arg-type]
            "explainer": benchmark.judged,
            "k": options.get("k", benchmark.k),
            "rows": options.get("rows") or benchmark.strong_rows,
        }

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        settings = self.settings(benchmark, **options)
        rows, k, explainer = settings["rows"], settings["k"], benchmark.judged
        x, y = data.test.x[:rows], data.test.y[:rows]
        result = settings["attack"](model, explainer, x, k=k)
        return _summary(result, model, x, y, count_ties(explainer(model, x), k))


@final
class CertifiedShare(Measurement):
    """The proved radius of each row, and the share of rows proved at the benchmark's radius."""

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        return {
            "certifier": IntervalCertifier(limit=3 * benchmark.radius),
            "explainer": benchmark.judged,
            "k": benchmark.k,
            "rows": options.get("rows") or benchmark.certified_rows,
            "radius": benchmark.radius,
        }

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        settings = self.settings(benchmark, **options)
        x = data.test.x[: settings["rows"]]
        certificate = settings["certifier"](model, settings["explainer"], x, k=settings["k"])
        return {
            "share": mean((certificate.radius >= benchmark.radius).float()),
            "precision": mean(certificate.precision_at(benchmark.radius)),
            "radius_median": mean(certificate.radius.median()),
            "rows": len(x),
            "sound": certificate.sound,
            "assumptions": certificate.assumptions,
            "radius_rows": rounded(certificate.radius),
        }


@final
class FaithfulnessMeans(Measurement):
    """DFFOT, COMP, SUFF of absolute differences, as the papers print them (Table 9)."""

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        rows = options.get("rows") or benchmark.rows
        return {
            "explainer": benchmark.explainer,
            "baseline": 0.0,
            "absolute": True,
            "rows": rows,
        }

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        x = data.test.x[: self.settings(benchmark, **options)["rows"]]
        values = faithfulness(model, benchmark.explainer, x, absolute=True)._asdict()
        return {"rows": len(x), **{name: mean(value) for name, value in values.items()}}


@final
class EdgeBaseline(Measurement):
    """Logistic regression on the edges of the same pairs: |a - b| and a b of each, no network."""

    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        del benchmark, options
        return {"strengths": list(STRENGTHS)}

    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        del benchmark, model, options
        reached = []
        for strength in STRENGTHS:
            line = LogisticRegression(C=strength, max_iter=300)
            line.fit(pair_features(data.train.x), data.train.y.numpy())
            aucs = [
                float(roc_auc_score(part.y.numpy(), line.decision_function(pair_features(part.x))))
                for part in (data.val, data.test)
            ]
            reached.append((aucs[0], aucs[1], strength))
        validation, test, strength = max(reached)
        return {"auc": test, "auc_validation": validation, "strength": strength}


STRENGTHS = (0.001, 0.01, 0.1)  # C: chosen by validation pairs


def pair_features(x: Tensor) -> Any:
    """(B, 2, edges) pairs as rows that are the same whichever comes first."""
    return torch.cat([(x[:, 0] - x[:, 1]).abs(), x[:, 0] * x[:, 1]], 1).numpy()


MEASUREMENTS: dict[str, Measurement] = {
    "clean": Clean(),
    "validation": PaperAttackPrecision("er", validation=True),
    "er": PaperAttackPrecision("er"),
    "mse": PaperAttackPrecision("mse"),
    "strong": StrongAttackPrecision(),
    "certified": CertifiedShare(),
    "thickness": Thickness(),
    "faithfulness": FaithfulnessMeans(),
    "edges": EdgeBaseline(),
    "sorted": SortedMagnitudes(),
    "saliency": SaliencyMaps(),
}
