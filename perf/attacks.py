"""How strong the attacks are: writes perf/records/attacks.json.

`python perf/attacks.py` takes about half an hour on one core; `--quick` a few minutes, unrecorded;
`--only NAME,NAME` measures some attacks anew and leaves the others' figures in the record.
Bank and COMPAS come from R2ET_DATA, the cache or their sources (see `r2et data`).
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from gap_training import K, fitted
from r2et.attack import (
    Attack,
    ERAttack,
    MSEAttack,
    ParetoAttack,
    RandomSearch,
    StrongAttack,
    SwapAttack,
    TopMassAttack,
    TrustRegionAttack,
)
from r2et.data import Data, load
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.region import L2
from recording import load_record, save

RADII = (1.0, 0.3)
# A network that maximises its gaps, as R2ET\H does: weight of the mean scale-free gap.
KINDS = {"leaky": ("leaky_relu", 0.0), "softplus": ("softplus", 0.0), "gap": ("leaky_relu", 0.1)}


def train(data: Data, activation: str, weight: float, epochs: int = 5) -> nn.Module:
    """The papers' network; with a weight, also trained for large gaps between its scores."""
    torch.manual_seed(0)
    model = MLP(len(data.names), activation=activation)
    return fitted(model, *data.train, weight, epochs)


def attacks(radius: float) -> dict[str, Attack]:
    """Everything that is compared, each with its own budget."""
    region, steps = L2(radius), {"steps": 1000, "step_size": radius / 1000}
    return {
        "ERAttack": ERAttack(region, **steps),
        "ERAttack on a copy": ERAttack(region, **steps, rho=10.0),
        "MSEAttack on a copy": MSEAttack(region, **steps, rho=10.0),
        "TopMassAttack on a copy": TopMassAttack(region, **steps, rho=10.0),
        "SwapAttack on a copy": SwapAttack(region, **steps, rho=10.0),
        "RandomSearch": RandomSearch(region, points=2000),
        "TrustRegionAttack": TrustRegionAttack(region, steps=30),
        "ParetoAttack": ParetoAttack(region),
        "StrongAttack fast": StrongAttack(region, budget="fast"),
        "StrongAttack": StrongAttack(region),
    }


def strength(rows: int, names: tuple[str, ...], only: set[str]) -> list[dict[str, Any]]:
    """Mean P@8 of every attack on every network."""
    before = load_record("attacks")["strength"] if only else []
    found = []
    for name in names:
        data = load(name)
        x, y = data.test.x[:rows], data.test.y
        for kind, (activation, weight) in KINDS.items():
            model = train(data, activation, weight)
            auc = float(roc_auc_score(y.numpy(), model(data.test.x).diff(dim=1)[:, 0].numpy()))
            for radius in RADII:
                entry: dict[str, Any] = {"data": name, "network": kind, "auc": auc}
                entry |= {"radius": radius, "rows": len(x), "precision": {}, "seconds": {}}
                for title, attack in attacks(radius).items():
                    if only and title not in only:
                        for part in ("precision", "seconds"):
                            entry[part][title] = before[len(found)][part][title]
                        continue
                    start = time.perf_counter()
                    result = attack(model, Gradient(), x, k=K)
                    entry["seconds"][title] = round(time.perf_counter() - start, 2)
                    entry["precision"][title] = round(float(result.precision.mean()), 4)
                found.append(entry)
                best = min(v for t, v in entry["precision"].items() if "Strong" not in t)
                strong = entry["precision"]["StrongAttack"]
                print(f"{name:7} {kind:9} {radius:3} {auc:.3f} {strong:.4f} {best:.4f}", flush=True)
    return found


def main() -> None:
    """Measure, print, record."""
    torch.set_num_threads(1)
    quick = "--quick" in sys.argv[1:]
    rows, names = (30, ("adult",)) if quick else (300, ("adult", "bank", "compas"))
    only = set(sys.argv[sys.argv.index("--only") + 1].split(",")) if "--only" in sys.argv else set()
    found = strength(rows, names, only)
    if not quick:
        save("attacks", {"k": K, "strength": found})


if __name__ == "__main__":
    main()
