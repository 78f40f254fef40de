"""Training beyond tables, at a size for two cores: writes perf/records/others.json.

`python perf/others.py` trains pairs of digits (vanilla and r2et), pictures (the first batch of
CIFAR-10, retinal OCT by concepts) and brain networks, and attacks them; about half an hour.
`--only mnist,cifar10-10k` measures some anew and leaves the others in the record. Data come from
R2ET_DATA, the cache or their sources (see `r2et data`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from r2et.attack import ERAttack, StrongAttack
from r2et.data import Split, load
from r2et.explain import Concept, Explainer, Gradient, GradientTimesInput
from r2et.models import ResNet18, SiameseCNN, SiameseGCN
from r2et.region import Linf
from r2et.train import fit, recipe
from r2et.train.validation import auc
from recording import RECORDS, load_record, save


@dataclass(frozen=True)
class Case:
    """One data set: its network, its explanation, the papers' attack on it, and two trainings."""

    data: str
    network: Callable[[], nn.Module]
    explainer: Explainer
    region: Linf
    k: int
    epochs: int
    recipes: dict[str, dict[str, Any]]
    rows: int
    reported: dict[str, float]
    batch: int = 64
    lr: float = 0.001
    strong: int = 0
    slack: float = 0.01  # below Vanilla's validation AUC; the last epoch above it is kept
    most: int | None = None  # rows of the training and the validation part


SECOND_DIGIT = range(784, 1568)
CASES = {
    "mnist": Case(
        data="mnist",
        network=SiameseCNN,
        # The first digit of a pair is explained and attacked, the second is the one it is
        # compared with. 5 of 255 grey levels, as in the papers.
        explainer=Gradient(of="probability", part=0),
        region=Linf(5 / 255, bounds=(0, 1), frozen=SECOND_DIGIT),
        k=50,
        epochs=25,
        recipes={
            "vanilla": {},
            "r2et": {"weight": 0.3, "warm_up": 1.0},
            "r2et-nh": {"weight": 0.3, "warm_up": 1.0},
            "est-h": {"weight": 0.3, "warm_up": 1.0, "every": 4},
        },
        rows=200,
        strong=30,
        slack=0.015,
        reported={"vanilla": 59.0, "r2et": 85.7, "r2et-nh": 82.8, "est-h": 85.2},
    ),
    "cifar10-10k": Case(
        data="cifar10-10k",
        network=lambda: ResNet18(width=8),
        explainer=Gradient(of="probability", reduce="abs_sum"),
        region=Linf(5 / 255, bounds=(0, 1)),
        k=100,
        epochs=4,
        recipes={"vanilla": {}, "r2et": {"weight": 0.01, "every": 8}},
        rows=30,
        reported={"vanilla": 66.5, "r2et": 75.0},
        most=2000,
    ),
    "oct-kermany-64": Case(
        data="oct-kermany-64",
        network=lambda: ResNet18(channels=1, classes=4, width=8, stem="large"),
        explainer=Concept(),
        region=Linf(5 / 255, bounds=(0, 1)),
        k=5,
        epochs=5,
        recipes={"vanilla": {}, "r2et": {"weight": 0.01, "every": 8}},
        rows=30,
        reported={},
        most=2000,
    ),
    "adhd-frontal": Case(
        data="adhd-frontal",
        network=lambda: SiameseGCN(28),
        explainer=GradientTimesInput(of="probability"),
        region=Linf(0.2),
        k=50,
        epochs=10,
        recipes={"vanilla": {}, "r2et": {"weight": 0.1}},
        rows=100,
        reported={},
    ),
}


def run(case: Case) -> list[dict[str, Any]]:
    """Train each recipe from the same weights, attack the same test rows."""
    data = load(case.data)
    if case.most is not None:
        first = {p: Split(*(t[: case.most] for t in getattr(data, p))) for p in ("train", "val")}
        data = replace(data, **first)
    found: list[dict[str, Any]] = []
    threshold = None
    for name, changes in case.recipes.items():
        torch.manual_seed(0)
        began = time.perf_counter()
        done = fit(
            case.network(),
            data,
            recipe(name, batch=case.batch, lr=case.lr, **changes),
            k=case.k,
            epochs=case.epochs,
            explainer=None if name == "vanilla" else case.explainer,
            keep="last" if threshold is None else "above",
            threshold=threshold,
        )
        if threshold is None:
            threshold = (auc(done.model, data.val) or 0.0) - case.slack
        x = data.test.x[: case.rows]
        er = ERAttack(case.region, steps=100, step_size=case.region.radius / 5, norm="linf")
        entry = {
            "data": case.data,
            "recipe": name,
            "changes": changes,
            "training_rows": len(data.train.y),
            "epoch_kept": done.record["epoch_kept"],
            "epochs": case.epochs,
            "auc": auc(done.model, data.test),
            "rows": len(x),
            "precision_er": float(er(done.model, case.explainer, x, k=case.k).precision.mean()),
            "reported": case.reported.get(name),
        }
        if case.strong:
            strong = StrongAttack(case.region, budget="fast")
            rows = x[: case.strong]
            result = strong(done.model, case.explainer, rows, k=case.k)
            entry |= {"strong_rows": len(rows), "precision_strong": float(result.precision.mean())}
        found.append({**entry, "seconds": round(time.perf_counter() - began, 1)})
        print(found[-1], flush=True)
    return found


def main() -> None:
    """Read the command line, run, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(CASES))
    told = parser.parse_args()
    torch.set_num_threads(1)
    there = (RECORDS / "others.json").exists()
    results = load_record("others")["results"] if there else {}
    for name in told.only.split(","):
        results[name] = run(CASES[name])
        save("others", {"results": results})


if __name__ == "__main__":
    main()
