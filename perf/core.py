"""Speed of the core, as ratios within one run: `make perf` writes perf/records/core.json."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from r2et.attack import ERAttack
from r2et.explain import Gradient, IntegratedGradients, SmoothGrad
from r2et.models import MLP
from r2et.rank import gap, gap_sum, ranking, thickness
from recording import save

REPEATS = 9


def seconds(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median time of one call, after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def explanations() -> dict[str, float]:
    """256 rows of 28 features: batched against one row at a time, and against a forward pass."""
    model, x = MLP(28), torch.rand(256, 28)
    found = {}
    with torch.no_grad():
        forward = seconds(lambda: model(x))
    for name, explainer in {
        "gradient": Gradient(),
        "smoothgrad": SmoothGrad(),
        "integrated_gradients": IntegratedGradients(),
    }.items():
        batched = seconds(lambda e=explainer: e(model, x))
        looped = seconds(lambda e=explainer: [e(model, row[None]) for row in x[:64]]) * 4
        found[f"{name}: row by row / batched"] = looped / batched
        found[f"{name}: batched / forward pass"] = batched / forward
    return found


def pair_sums() -> dict[str, float]:
    """The sum over all pairs by weights against the same sum over a (B, k, n - k) tensor."""
    found = {}
    for n, k in ((28, 8), (784, 50), (6670, 50)):
        scores = torch.rand(64, n)
        order = ranking(scores)
        pairs = seconds(lambda s=scores, o=order, k=k: gap(s, o, k).sum((1, 2)))
        weights = seconds(lambda s=scores, o=order, k=k: gap_sum(s, o, k))
        found[f"n = {n}, k = {k}: pairs / weights"] = pairs / weights
    return found


def growth() -> dict[str, float]:
    """Thickness: how its time grows when n, k or B is four times as large (4 is linear)."""

    def at(n: int, k: int, rows: int, kind: str) -> float:
        weight = torch.rand(n, n)

        def scores(x: Tensor) -> Tensor:
            return x @ weight

        x = torch.rand(rows, n)
        return seconds(lambda: thickness(scores, x, k, kind=kind, samples=4))  # type: ignore[arg-type]

    found = {}
    for kind in ("gap", "probability"):
        base = at(128, 16, 256, kind)
        found[f"{kind}: k x 4"] = at(128, 64, 256, kind) / base
        found[f"{kind}: B x 4"] = at(128, 16, 1024, kind) / base
        found[f"{kind}: n x 4 (scores are a matrix product)"] = at(512, 16, 256, kind) / base
    return found


def attacks() -> dict[str, float]:
    """ERAttack, 28 features, 50 steps: 256 rows one at a time against together; and 7000 rows."""
    model, x = MLP(28), torch.rand(7000, 28)
    attack, explainer = ERAttack(steps=50, step_size=0.02), Gradient(of="probability")
    batched = seconds(lambda: attack(model, explainer, x[:256], k=8), 3)
    one = seconds(lambda: [attack(model, explainer, row[None], k=8) for row in x[:16]], 1) / 16
    many = seconds(lambda: attack(model, explainer, x, k=8), 3)
    return {
        "256 rows: one by one / together": 256 * one / batched,
        "7000 rows / 256 rows (27 is linear)": many / batched,
        "seconds for 7000 rows x 1000 steps": 20 * many,
    }


def main() -> None:
    """Measure, print, record."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    measured = (explanations, pair_sums, growth, attacks)
    ratios = {part.__name__.replace("_", " "): part() for part in measured}
    for title, some in ratios.items():
        print(title)
        for name, ratio in some.items():
            print(f"  {ratio:8.2f}  {name}")
    save("core", {"repeats": REPEATS, "ratios": ratios})


if __name__ == "__main__":
    main()
