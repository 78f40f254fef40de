"""Proofs of a top k beside auto_LiRPA's bounds of Jacobians: writes perf/records/others.json.

`python perf/others.py` takes some minutes of one core; `--quick` one, unrecorded; `--units`
measures bounds of single units anew and leaves the rest. auto_LiRPA is no part of r2et and is
measured where it can be imported: take its source from
https://github.com/Verified-Intelligence/auto_LiRPA and put its folder, and `appdirs`, on
PYTHONPATH. Version 0.7.1 asks for torch below 2.9; the parts used here ran unchanged with 2.13.

Same weights, rows and bisection for all:
interval   features one by one by intervals alone, as Wicker et al. (2023) bound gradients
jacobian   auto_LiRPA's CROWN bounds of each entry of the Jacobian, compared the obvious way: the
           lowest |J_i| of the top k against the highest |J_j| of the others
pairs      the same bounds of s_i J_i -+ J_j, given to auto_LiRPA as a specification (its C): what
           one who knows the question could ask of it
r2et       IntervalCertifier() as it is
"""

from __future__ import annotations

import logging
import math
import sys
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from gap_training import K, fitted
from r2et.attack import MinimumNorm
from r2et.certify import IntervalCertifier
from r2et.certify.search.bisection import largest_radius
from r2et.data import load
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.rank import precision_at_k, ranking
from r2et.region import L2, Linf
from recording import load_record, save

ACTIVATIONS = ("relu", "tanh", "sigmoid")
LIMIT, TOLERANCE = 10.0, 2e-3
REGIONS = {"l2": L2(4.0), "linf": Linf(1.0)}
RADII = {"l2": (0.01, 0.03, 0.1), "linf": (0.002, 0.006, 0.02)}
POINTS = 2000


class JacobianBounds:
    """auto_LiRPA's bounds of the gradient of a one-logit network around rows x (B, n).

    With ReLU it must be asked row by row: for more, version 0.7.1 adds the rows of a batch up.
    """

    def __init__(self, model: nn.Module, x: Tensor, norm: str, alone: bool) -> None:
        from auto_LiRPA import BoundedModule
        from auto_LiRPA.jacobian import JacobianOP

        class Jacobian(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = deepcopy(model)

            def forward(self, x: Tensor) -> Tensor:
                return JacobianOP.apply(self.model(x), x).flatten(1)

        self.x, self.alone = x, alone
        self.norm = 2.0 if norm == "l2" else math.inf
        self.module = BoundedModule(Jacobian().eval(), x[:1] if alone else x, device="cpu")

    def __call__(
        self, radius: Tensor, rows: Tensor, *, matrix: Tensor | None = None, alpha: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Bounds (A, n) of the gradients, or (A, P) of matrix (A, P, n) times these, of rows (A,).

        alpha: with slopes of intermediate bounds optimised (its compute_jacobian_bounds).
        """
        batches = [[i] for i in range(len(rows))] if self.alone else [list(range(len(rows)))]
        parts = []
        for batch in batches:
            there = rows[batch]
            part = None if matrix is None else matrix[batch]
            low, high = self._bounds(self.x[there], radius[batch].float()[:, None], part, alpha)
            parts.append((low.detach().flatten(1), high.detach().flatten(1)))
        low, high = (torch.cat(side) for side in zip(*parts, strict=True))
        return low, high

    def _bounds(
        self, x: Tensor, radius: Tensor, matrix: Tensor | None, alpha: bool
    ) -> tuple[Tensor, Tensor]:
        from auto_LiRPA import BoundedTensor
        from auto_LiRPA.perturbations import PerturbationLpNorm

        ball = PerturbationLpNorm(norm=self.norm, eps=radius)
        moved = BoundedTensor(x, ball)
        found: tuple[Tensor, Tensor]
        if alpha:
            found = self.module.compute_jacobian_bounds(moved)
            return found
        with torch.no_grad():
            found = self.module.compute_bounds(x=(moved,), method="CROWN", C=matrix)
        return found


def top_k_proved(low: Tensor, high: Tensor, top: Tensor) -> Tensor:
    """(A,) bool: by bounds (A, n) of gradients, the lowest of the top k is above all others."""
    least = torch.maximum(low, -high).clamp(min=0)
    most = torch.maximum(high, -low)
    return least.masked_fill(~top, math.inf).amin(1) > most.masked_fill(top, -1.0).amax(1)


def pair_matrix(gradient: Tensor, order: Tensor) -> Tensor:
    """(B, 2 k (n - k), n): rows s_i e_i -+ e_j for i of the top k, j of the others."""
    unit = torch.eye(gradient.shape[1])
    signed = unit[order[:, :K]] * gradient.gather(1, order[:, :K]).sign()[..., None]
    others = unit[order[:, K:]]
    pairs = [signed[:, :, None] - s * others[:, None] for s in (1.0, -1.0)]
    return torch.cat([p.flatten(1, 2) for p in pairs], 1)


def gradients(model: nn.Module, x: Tensor) -> Tensor:
    """Of the logit, as the model's own arithmetic has them."""
    moving = x.detach().requires_grad_(True)
    return torch.autograd.grad(model(moving).sum(), moving)[0]


def searched(proved: Callable[[Tensor, Tensor], Tensor], rows: int) -> Tensor:
    """Radii by the bisection that all ways share."""
    return largest_radius(proved, rows, LIMIT, TOLERANCE)


def radii(model: nn.Module, x: Tensor, norm: str, bounds: JacobianBounds | None) -> dict[str, Any]:
    """For each way its radii (B,) and seconds of processor time."""
    gradient = gradients(model, x)
    order = ranking(gradient.abs())
    top = torch.zeros_like(gradient, dtype=torch.bool).scatter_(1, order[:, :K], True)
    found: dict[str, Any] = {}

    def timed(title: str, way: Callable[[], Tensor]) -> None:
        start = time.process_time()
        found[title] = (way(), time.process_time() - start)

    intervals = IntervalCertifier(norm=norm, relaxation="interval")
    timed("interval", lambda: intervals(model, Gradient(), x, k=K).radius)
    if bounds is not None:
        matrix = pair_matrix(gradient, order)

        def jacobian(radius: Tensor, rows: Tensor) -> Tensor:
            return top_k_proved(*bounds(radius, rows), top[rows])

        def pairs(radius: Tensor, rows: Tensor) -> Tensor:
            return (bounds(radius, rows, matrix=matrix[rows])[0] > 0).all(1)

        timed("jacobian", lambda: searched(jacobian, len(x)))
        timed("pairs", lambda: searched(pairs, len(x)))
    timed("r2et", lambda: IntervalCertifier(norm=norm)(model, Gradient(), x, k=K).radius)
    return found


def outside(
    model: nn.Module, x: Tensor, norm: str, radius: float, low: Tensor, high: Tensor
) -> dict[str, Any]:
    """How many rows have a gradient outside its bounds (B, n), at random points of the ball.

    As float32 computes it, and in float64; excess: the largest, by the row's largest score.
    """
    region = (L2 if norm == "l2" else Linf)(radius * (1 - 1e-5))
    points = region.sample(x, POINTS, generator=torch.Generator().manual_seed(0))
    found: dict[str, Any] = {}
    wide = deepcopy(model).double()
    for title, network, where in (("float32", model, points), ("float64", wide, points.double())):
        values = gradients(network, where.flatten(0, 1)).view(where.shape)
        excess = torch.maximum(low - values, values - high).amax((0, 2))
        relative = excess / values.abs().amax((0, 2))
        found[f"rows_{title}"] = int((excess > 0).sum())
        found[f"excess_{title}"] = float(f"{float(relative.clamp(min=0).max()):.3g}")
    return found


def broken(model: nn.Module, x: Tensor, norm: str, radius: Tensor) -> int:
    """Rows whose top k is another one at some random point of the ball that was claimed."""
    region = (L2 if norm == "l2" else Linf)(1.0)
    unit = region.sample(torch.zeros_like(x), POINTS, generator=torch.Generator().manual_seed(1))
    points = x + unit * (radius * (1 - 1e-5)).float()[:, None]
    clean = gradients(model, x).abs().repeat(POINTS, 1)
    scores = gradients(model, points.flatten(0, 1)).abs()
    kept = precision_at_k(clean, scores, K).view(POINTS, -1)
    return int((kept < 1).any(0).sum())


def network(activation: str, depth: int) -> tuple[nn.Sequential, Tensor]:
    """Adult's 28 - 32 - ... - 2, its two logits folded into their difference; and test rows."""
    data = load("adult")
    torch.manual_seed(0)
    model = MLP(len(data.names), (32,) * depth, activation=activation)
    fitted(model, data.train.x, data.train.y, 0.0, 5)
    *body, last = model.layers
    log_odds = nn.Linear(last.in_features, 1)
    log_odds.weight.data = last.weight.data[1:] - last.weight.data[:1]
    log_odds.bias.data = last.bias.data[1:] - last.bias.data[:1]
    return nn.Sequential(*body, log_odds).eval().requires_grad_(False), data.test.x


def compared(activation: str, depth: int, norm: str, rows: int, theirs: bool) -> dict[str, Any]:
    """One network in one norm."""
    model, test = network(activation, depth)
    x = test[:rows]
    alone = activation == "relu"
    bounds = JacobianBounds(model, x, norm, alone) if theirs else None
    found = radii(model, x, norm, bounds)
    attacked = MinimumNorm(REGIONS[norm])(model, Gradient(), x, k=K).radius
    entry: dict[str, Any] = {"activation": activation, "layers": depth, "norm": norm}
    entry |= {"rows": len(x), "attacked": round(float(attacked.median()), 5), "ways": {}}
    for title, (radius, taken) in found.items():
        entry["ways"][title] = {
            "ratio": round(float((radius / attacked).median()), 4),
            "shares": [round(float((radius >= r).double().mean()), 3) for r in RADII[norm]],
            "ms_per_row": round(1e3 * taken / len(x), 1),
            "broken": broken(model, x, norm, radius) + int((radius >= attacked).sum()),
        }
    radius = float(found["jacobian" if theirs else "r2et"][0].median())
    region = (L2 if norm == "l2" else Linf)(radius)
    certifier = IntervalCertifier(region=region)
    ours = certifier.score_intervals(model, Gradient(reduce="signed"), x, target=1)
    entry["outside"] = {"r2et": outside(model, x, norm, radius, ours.low, ours.high)}
    if bounds is not None:
        every = torch.arange(len(x))
        low, high = bounds(torch.full((len(x),), radius), every)
        entry["outside"]["jacobian"] = outside(model, x, norm, radius, low, high)
        some = every[: 5 if alone else len(x)]
        more = 1.05 * found["jacobian"][0][some].clamp(min=1e-6)
        order = ranking(gradients(model, x[some]).abs())
        top = torch.zeros(len(some), x.shape[1], dtype=torch.bool).scatter_(1, order[:, :K], True)
        if norm == "l2":
            start = time.process_time()
            proved = top_k_proved(*bounds(more, some, alpha=True), top)
            taken = time.process_time() - start
            entry["alpha"] = {
                "rows": len(some),
                "proved_5_percent_further": int(proved.sum()),
                "ms_per_row_and_radius": round(1e3 * taken / len(some), 1),
            }
    return entry


def single_units(count: int = 4000) -> dict[str, Any]:
    """Bounds of the derivative of one unit, for intervals that end near its inflection point.

    auto_LiRPA takes tangents of a bell-shaped derivative from a table in steps of 0.01.
    """
    found = {}
    for title, unit, inflection in (
        ("tanh", nn.Tanh(), 0.65848),
        ("sigmoid", nn.Sigmoid(), 1.31696),
    ):
        layers = nn.Linear(1, 1), nn.Linear(1, 1)
        for layer in layers:
            layer.weight.data.fill_(1.0)
            layer.bias.data.fill_(0.0)
        model = nn.Sequential(layers[0], unit, layers[1]).eval().requires_grad_(False)
        generator = torch.Generator().manual_seed(0)
        radius = 0.001 + 0.05 * torch.rand(count, generator=generator)
        end = 0.06 * torch.rand(count, generator=generator) - 0.03
        x = (end - inflection - radius)[:, None]
        low, high = JacobianBounds(model, x, "linf", False)(radius, torch.arange(count))
        steps = torch.linspace(-1, 1, 1001, dtype=torch.float64) * (1 - 1e-6)
        points = x.double() + radius.double()[:, None] * steps
        wide = deepcopy(model).double()
        values = gradients(wide, points.view(-1, 1)).view(points.shape)
        excess = torch.maximum(low - values, values - high).amax(1)
        missed = excess > 1e-6
        found[title] = {
            "intervals": count,
            "missed": int(missed.sum()),
            "empty": int((low > high + 1e-6).sum()),
            "ends_past_inflection": [
                round(float(f(end[missed])), 4) for f in (torch.amin, torch.amax)
            ],
            "excess": round(float(excess.max()), 5),
        }
    return found


def main() -> None:
    """Measure, print, record."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    quick = "--quick" in sys.argv[1:]
    try:
        import auto_LiRPA

        version = auto_LiRPA.__version__
        logging.getLogger("auto_LiRPA").setLevel(logging.WARNING)
    except ImportError:
        version = None
        print("auto_LiRPA: not importable; see the first lines of perf/others.py. Ours alone:")
    if "--units" in sys.argv[1:]:
        units = single_units()
        print(units)
        save("others", load_record("others") | {"units": units})
        return
    cases = []
    for activation in ACTIVATIONS:
        for depth in (1, 2, 3):
            for norm in REGIONS:
                rows = 2 if quick else 20
                cases.append(compared(activation, depth, norm, rows, version is not None))
                print(cases[-1], flush=True)
    if not quick and version is not None:
        found = {"k": K, "auto_LiRPA": version, "points": POINTS, "radii": RADII, "cases": cases}
        found["units"] = single_units()
        save("others", found)


if __name__ == "__main__":
    main()
