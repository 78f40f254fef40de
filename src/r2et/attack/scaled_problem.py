"""What attacks by linear models see of a batch: gaps, predictions, and how both change with x.

Units make every row alike: steps are in units of the region's radius, gaps in units of the row's
mean absolute clean score, changes of the prediction in units of the largest that surely keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from r2et.attack.problem import AttackProblem
from r2et.attack.socp import Array, Room
from r2et.models.output import logits
from r2et.rank import pair_gap, ranking
from r2et.rank.pairs import PairSet, pairs
from r2et.region import L2, Linf

# Slopes held at a time: 340 rows of a table of 28 features.
SLOPE_NUMBERS = 2**18


class Slopes(NamedTuple):
    """Derivatives by a step (B, free): of ranked scores (B, n, free), predictions (B, C, free)."""

    scores: Tensor
    prediction: Tensor


@dataclass(frozen=True)
class ScaledProblem:
    """B rows of a problem, in units. All numbers it gives are float64 on the CPU.

    Attributes:
        problem: the rows as they are.
        source: the network whose explanation is looked at, often a smooth copy; predictions are the
            real one's.
        order: (B, n) clean ranking.
        places: (m, 2) the pairs, as places in it.
        size: (B,) what a gap is divided by.
        clean: (B, C) probabilities at x.
        margin: (B,) how far they may move.
        free: inputs that are not frozen.
    """

    problem: AttackProblem
    source: nn.Module
    order: Tensor
    places: Tensor
    size: Tensor
    clean: Tensor
    margin: Tensor
    free: Tensor

    @staticmethod
    def of(problem: AttackProblem, source: nn.Module, kind: PairSet, unit: float) -> ScaledProblem:
        """The problem with gaps in units of `unit` mean absolute scores."""
        n, x = problem.scores.shape[1], problem.x
        with torch.no_grad():
            clean = probabilities(problem, x)
        size = problem.explain(x, model=source).double().abs().mean(1) * unit
        held = torch.zeros(x[0].numel(), dtype=torch.bool)
        held[list(problem.ball.frozen)] = True
        return ScaledProblem(
            problem=problem,
            source=source,
            order=ranking(problem.scores),
            places=pairs(n, problem.k, kind),
            size=size.cpu().clamp(min=torch.finfo(torch.float32).tiny),
            clean=clean.double().cpu(),
            margin=largest_change(clean.double().cpu()),
            free=(~held).nonzero().flatten(),
        )

    def rows(self, index: Tensor) -> ScaledProblem:
        """The same problem for some rows; index is on the CPU."""
        names = ("order", "size", "clean", "margin")
        chosen = {name: getattr(self, name)[index.to(getattr(self, name).device)] for name in names}
        return replace(self, problem=self.problem.rows(index.to(self.problem.x.device)), **chosen)

    def gaps(self, x: Tensor) -> Tensor:
        """(B, m) h_l(x)."""
        scores = self.problem.explain(x, model=self.source).detach()
        return pair_gap(scores.double(), self.order, self.places).cpu() / self.size[:, None]

    def away(self, x: Tensor) -> Tensor:
        """(B, C + N) f~(x) - f~(x0), f~ = [prediction, input] of (27), (28)."""
        with torch.no_grad():
            now = probabilities(self.problem, x).double().cpu()
        return torch.cat([(now - self.clean) / self.margin[:, None], self.moved(x)], 1)

    def moved(self, x: Tensor) -> Tensor:
        """(B, N) x - x0."""
        here, start = x.flatten(1).double(), self.problem.x.flatten(1).double()
        return ((here - start) / self.unit).cpu()

    def slopes(self, x: Tensor) -> Slopes:
        """One backward pass for each score and each class."""
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            scores = self.problem.explain(point, model=self.source, graph=True)
            ranked = scores.gather(1, self.order)
            by_score = _jacobian(ranked, point) * self.unit
            by_class = _jacobian(probabilities(self.problem, point), point) * self.unit
        free = self.free.to(x.device)
        return Slopes(
            by_score[..., free].cpu() / self.size[:, None, None],
            by_class[..., free].cpu() / self.margin[:, None, None],
        )

    def room(self, x: Tensor) -> list[Room]:
        """Where each row's step may go, as far as boxes and balls can say."""
        region, flat = self.problem.ball, x.flatten(1).double()
        z = self.moved(x)
        low, high = torch.full_like(z, -torch.inf), torch.full_like(z, torch.inf)
        if region.bounds is not None:
            lowest, highest = (torch.as_tensor(b).to(flat) for b in region.bounds)
            low = ((lowest - flat) / self.unit).cpu().clamp(max=0)
            high = ((highest - flat) / self.unit).cpu().clamp(min=0)
        if isinstance(region, Linf):
            low, high = low.clamp(min=-1 - z).clamp(max=0), high.clamp(max=1 - z).clamp(min=0)
        free, ball = self.free, isinstance(region, L2)
        low, high, z = low[:, free], high[:, free], z[:, free]
        rows = zip(low.numpy(), high.numpy(), z, strict=True)
        return [Room(a, b, _center(row, ball)) for a, b, row in rows]

    def step(self, x: Tensor, steps: Tensor) -> Tensor:
        """x moved by steps (B, free) and put back into the region."""
        full = torch.zeros(len(x), x[0].numel(), dtype=torch.float64)
        full[:, self.free] = steps
        there = x.flatten(1).double() + full.to(x.device) * self.unit
        return self.problem.region.project(there.to(x.dtype).view_as(x), self.problem.x)

    def split(self, rows: Tensor) -> list[Tensor]:
        """Rows (A,) in parts whose slopes are held together."""
        size = max(1, SLOPE_NUMBERS // (self.order.shape[1] * len(self.free)))
        return [rows[i : i + size] for i in range(0, len(rows), size)]

    @property
    def unit(self) -> Tensor:
        """What a step of 1 is in the input: a number, or one per feature."""
        region = self.problem.ball
        scale = torch.as_tensor(1.0 if region.scale is None else region.scale)
        return scale.double().to(self.problem.x.device) * region.radius


def probabilities(problem: AttackProblem, x: Tensor) -> Tensor:
    """The real model's prediction vector at x, (B, C); two classes from a single logit."""
    out = logits(problem.model, x, problem.where)
    if out.shape[1] == 1:
        out = torch.cat([torch.zeros_like(out), out], 1)
    return out.softmax(1)


def largest_change(clean: Tensor) -> Tensor:
    """(B,) how far probabilities (B, C) may move in l2 before another class can lead.

    The lead p_1 - p_2 changes by at most sqrt(2) times the length of the move.
    """
    best = clean.topk(min(2, clean.shape[1]), dim=1).values
    lead = best[:, 0] - best[:, 1] if clean.shape[1] > 1 else torch.ones_like(best[:, 0])
    return (lead / 2**0.5).clamp(min=1e-9)


def _center(z: Tensor, ball: bool) -> Array | None:
    if not ball:
        return None
    # Rounding may leave x an ulp outside; then 0 would not be a step that is allowed.
    center: Array = np.asarray((z / z.norm().clamp(min=1)).numpy(), dtype=np.float64)
    return center


def _jacobian(values: Tensor, x: Tensor) -> Tensor:
    """(B, S) by (B, ...): (B, S, N) in float64; zeros where x is not part of the graph."""
    rows = []
    for value in values.unbind(1):
        (row,) = (
            torch.autograd.grad(value.sum(), x, retain_graph=True, materialize_grads=True)
            if value.requires_grad
            else (torch.zeros_like(x),)
        )
        # Zeros that older torch fills in ask for a gradient of their own.
        rows.append(row.detach().flatten(1).double())
    return torch.stack(rows, 1)
