"""How cost grows with rows, features, k and depth; captum: writes perf/records/growth.json.

`python perf/growth.py` takes some minutes on one core. Times are processor times of one run and are
recorded only as ratios to the smallest case; an exponent is the slope of their logarithms over the
three largest sizes, where what a call costs at any size counts less.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from captum.attr import IntegratedGradients as CaptumIntegratedGradients
from captum.attr import NoiseTunnel, Saliency
from torch import nn

from r2et.certify import IntervalCertifier
from r2et.explain import Gradient, IntegratedGradients, SmoothGrad
from r2et.models import MLP
from r2et.penalty import R2ET, CertifiedRanking
from r2et.rank import thickness
from r2et.region import L2
from recording import save

REPEATS, POINTS = 5, 32
USUAL = {"rows": 64, "features": 28, "k": 8, "depth": 1}
WIDE = {**USUAL, "features": 512}


def seconds(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median processor time of one call, after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times)


def gradient(model: nn.Module, x: torch.Tensor, k: int) -> Any:
    del k
    return Gradient()(model, x)


def gap_penalty(model: nn.Module, x: torch.Tensor, k: int) -> Any:
    R2ET(k=k, l2=0.0)(model, x).mean().backward()


def gap_thickness(model: nn.Module, x: torch.Tensor, k: int) -> Any:
    return thickness(model, x, k, region=L2(0.1), samples=4, points=2)


def certified_penalty(model: nn.Module, x: torch.Tensor, k: int) -> Any:
    CertifiedRanking(k=k, radius=0.1)(model, x).mean().backward()


def certificate(model: nn.Module, x: torch.Tensor, k: int) -> Any:
    return IntervalCertifier()(model, Gradient(), x, k=k)


LONG = (100, 1000, 10_000, 100_000)
# What is measured, by what, at which sizes, and what is fixed meanwhile.
SWEEPS: list[tuple[Callable[..., Any], str, tuple[int, ...], dict[str, int]]] = [
    (gradient, "rows", (256, 1024, 4096, 16_384), USUAL),
    (gradient, "features", LONG, USUAL),
    (gradient, "depth", (1, 2, 4, 8), USUAL),
    (gap_penalty, "rows", (256, 1024, 4096, 16_384), USUAL),
    (gap_penalty, "features", LONG, USUAL),
    (gap_penalty, "k", (4, 16, 64, 256), WIDE),
    (gap_penalty, "depth", (1, 2, 4, 8), USUAL),
    (gap_thickness, "rows", (64, 256, 1024, 4096), USUAL),
    (gap_thickness, "features", LONG, {**USUAL, "rows": 8}),
    (gap_thickness, "k", (4, 16, 64, 256), WIDE),
    (certified_penalty, "rows", (64, 256, 1024, 4096), USUAL),
    (certified_penalty, "features", (28, 107, 448, 1792), {**USUAL, "rows": 256}),
    (certified_penalty, "k", (4, 16, 64), WIDE),
    (certified_penalty, "depth", (1, 2, 4), USUAL),
    (certificate, "rows", (16, 64, 256), USUAL),
    (certificate, "features", (28, 107, 300, 784), {**USUAL, "rows": 4}),
    (certificate, "k", (4, 16, 64), {**USUAL, "features": 128, "rows": 4}),
    (certificate, "depth", (1, 2, 3), {**USUAL, "rows": 4}),
]


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """The slope of log time by log size, least squares over the three largest sizes."""
    a = torch.tensor([math.log(s) for s in sizes[-3:]])
    b = torch.tensor([math.log(t) for t in times[-3:]])
    return float(((a - a.mean()) * (b - b.mean())).sum() / (a - a.mean()).square().sum())


def swept(work: Callable[..., Any], by: str, sizes: tuple[int, ...], fixed: dict[str, int]) -> Any:
    """One row of the growth table."""
    times = []
    for size in sizes:
        now = {**fixed, by: size}
        torch.manual_seed(0)
        model = MLP(now["features"], (32,) * now["depth"], activation="softplus").eval()
        x = torch.rand(now["rows"], now["features"])
        repeats = 1 if work is certificate else REPEATS
        times.append(seconds(lambda m=model, z=x, k=now["k"]: work(m, z, k), repeats))
    others = {name: value for name, value in fixed.items() if name != by}
    entry = {
        "what": work.__name__,
        "by": by,
        "sizes": list(sizes),
        "fixed": others,
        "ratios": [t / times[0] for t in times],
        "exponent": exponent(sizes, times),
    }
    if work is certificate and by == "features":
        entry["gradients"] = [
            t / seconds_of_gradient(n, fixed["rows"]) for n, t in zip(sizes, times, strict=True)
        ]
    print(entry, flush=True)
    return entry


def seconds_of_gradient(features: int, rows: int) -> float:
    """For scale: the gradient of the same rows."""
    model, x = MLP(features, (32,), activation="softplus").eval(), torch.rand(rows, features)
    return seconds(lambda: Gradient()(model, x), 21)


def beside_captum() -> list[dict[str, Any]]:
    """Time of captum over ours, for as many points; eager, no graph kept."""
    told = []
    for features, rows in ((28, 256), (784, 64)):
        torch.manual_seed(0)
        model, x = MLP(features, (32,)).eval(), torch.rand(rows, features)
        target = model(x).argmax(1)
        theirs = CaptumIntegratedGradients(model)
        noisy = NoiseTunnel(Saliency(model))
        ours = IntegratedGradients(points=POINTS), SmoothGrad(samples=POINTS, sigma=0.1)
        pairs = {
            "integrated gradients": (
                lambda o=ours[0], m=model, z=x, t=target: o(m, z, t),
                lambda a=theirs, z=x, t=target: a.attribute(z, target=t, n_steps=POINTS),
            ),
            "smoothgrad": (
                lambda o=ours[1], m=model, z=x, t=target: o(m, z, t),
                lambda a=noisy, z=x, t=target: a.attribute(
                    z, target=t, nt_samples=POINTS, stdevs=0.1, abs=False
                ),
            ),
        }
        for name, (mine, other) in pairs.items():
            entry = {"what": name, "features": features, "rows": rows, "points": POINTS}
            told.append({**entry, "captum_over_ours": seconds(other) / seconds(mine)})
            print(told[-1], flush=True)
    return told


def main() -> None:
    """Measure, print, record."""
    torch.set_num_threads(1)
    captum = beside_captum()
    growth = [swept(*sweep) for sweep in SWEEPS]
    save("growth", {"repeats": REPEATS, "captum": captum, "growth": growth})


if __name__ == "__main__":
    main()
