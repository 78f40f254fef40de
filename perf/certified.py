"""Training against the proof: writes perf/records/certified.json.

`python perf/certified.py MODELS` trains `certified` beside `vanilla` and `linear` on Adult, Bank
and COMPAS, at radius 1 and 0.1 and with one to three hidden layers, and certifies test rows; about
half an hour on one core. MODELS keeps the networks: a second run trains nothing that is there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from r2et.certify import IntervalCertifier
from r2et.data import Data, load
from r2et.explain import Gradient
from r2et.rank import distinct_top_k, largest_top_k_share
from r2et.train import Fit, fit, recipe
from r2et.train.usual import usual_network
from r2et.train.validation import auc
from recording import save

K, ROWS = 8, 1000
# (hidden layers, radius): what is trained for and certified at.
CASES = [((32,), 1.0), ((32,), 0.1), ((32, 32), 0.1), ((32, 32, 32), 0.1)]
WEIGHTS = (0.03, 0.1, 0.3)
SLACK = 0.01


def share(model: nn.Module, x: torch.Tensor, radius: float) -> float:
    """Share of rows whose whole top k is proved at the radius."""
    certificate = IntervalCertifier(limit=2 * radius)(model, Gradient(), x, k=K)
    return float((certificate.radius >= radius).double().mean())


def measured(data: Data, model: nn.Module, radius: float) -> dict[str, Any]:
    """AUC, certified share and individuality on test rows."""
    scores = Gradient()(model, data.test.x)
    return {
        "auc": auc(model, data.test),
        "certified_share": share(model, data.test.x[:ROWS], radius),
        "distinct_top_k": distinct_top_k(scores, K),
        "largest_top_k_share": largest_top_k_share(scores, K),
    }


def train(data: Data, name: str, widths: tuple[int, ...], radius: float, models: Path) -> list[Fit]:
    """The candidates of a recipe."""
    weights = WEIGHTS if name == "certified" else (None,)
    found = []
    for weight in weights:
        chosen = recipe(name) if weight is None else recipe(name, weight=weight)
        depth = "x".join(map(str, widths)) if name != "linear" else "none"
        out = models / data.name / f"{name}-{depth}-r{radius}-w{weight}"
        network = usual_network(data, widths)
        found.append(fit(network, data, chosen, k=K, radius=radius, out=out, progress=False))
    return found


def chosen(data: Data, fits: list[Fit], threshold: float, radius: float) -> Fit:
    """On validation rows: of those that reach the AUC, the one with the most rows certified."""
    able = [f for f in fits if (auc(f.model, data.val) or 0.0) >= threshold] or fits
    return max(able, key=lambda f: share(f.model, data.val.x[:300], radius))


def main() -> None:
    """Train, certify, print, record."""
    torch.set_num_threads(1)
    models, found = Path(sys.argv[1]), []
    for widths, radius in CASES:
        for name in ("adult", "bank", "compas"):
            data = load(name)
            (vanilla,) = train(data, "vanilla", widths, 1.0, models)
            (linear,) = train(data, "linear", widths, 1.0, models)
            threshold = (auc(vanilla.model, data.val) or 0.0) - SLACK
            proved = chosen(
                data, train(data, "certified", widths, radius, models), threshold, radius
            )
            entry = {
                "data": name,
                "hidden": list(widths),
                "radius": radius,
                "rows": min(ROWS, len(data.test.y)),
                "recipe": proved.record["recipe"],
                "certified": measured(data, proved.model, radius),
                "vanilla": measured(data, vanilla.model, radius),
                "linear_auc": auc(linear.model, data.test),
            }
            found.append(entry)
            print({k: v for k, v in entry.items() if k != "recipe"}, flush=True)
            save("certified", {"k": K, "results": found})


if __name__ == "__main__":
    main()
