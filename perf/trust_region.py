"""Does the trust region flip what can be flipped, and do its iterations follow thickness?

Writes perf/records/trust_region.json; some minutes on one core.
"""

from __future__ import annotations

from typing import Any

import torch
from scipy.stats import spearmanr

from r2et.attack import MinimumNorm, TrustRegionAttack
from r2et.data import load
from r2et.demo import train
from r2et.explain import Gradient
from r2et.rank import thickness
from r2et.region import L2
from recording import save

ROWS = 100


def measure(radius: float, epsilon: float, steps: int) -> dict[str, Any]:
    """One setting of Algorithm 2 on Adult's first test rows."""
    data = load("adult")
    model, x, region = train(data, seed=0), data.test.x[:ROWS], L2(radius)
    attack = TrustRegionAttack(region, epsilon=epsilon, steps=steps)
    trace = attack.trace(model, Gradient(), x, k=data.k)
    flipped = trace.result.precision < 1
    flippable = MinimumNorm(region)(model, Gradient(), x, k=data.k).radius.isfinite()
    # A row that does not flip counts as one that takes longer than any that does.
    took = torch.where(flipped, trace.iterations.double(), torch.inf)
    found: dict[str, Any] = {
        "radius": radius,
        "epsilon": epsilon,
        "flippable": float(flippable.double().mean()),
        "flipped_of_flippable": float(flipped[flippable].double().mean()),
        "mean_iterations": float(trace.iterations.double().mean()),
        "outcomes": {end.name: trace.outcome.count(end) for end in set(trace.outcome)},
    }
    for kind in ("gap", "probability"):
        thick = thickness(model, x, data.k, region=region, kind=kind)
        test = spearmanr(took.numpy(), thick.numpy())
        found[f"spearman_{kind}"] = {"rho": float(test.statistic), "p": float(test.pvalue)}
    return found


def main() -> None:
    """Measure, print, record."""
    torch.set_num_threads(1)
    cases = []
    for radius in (1.0, 0.3):
        for epsilon, steps in ((0.1, 50), (0.02, 150)):
            cases.append(measure(radius, epsilon, steps))
            print(cases[-1], flush=True)
    save("trust_region", {"what": "Adult, k = 8, Gradient", "rows": ROWS, "cases": cases})


if __name__ == "__main__":
    main()
