"""Keeping predictions while an explanation is attacked: the weights of B.2.3, eq. (57) to (60)."""

from __future__ import annotations

from itertools import combinations
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from r2et.attack.problem import AttackProblem

Constraint: TypeAlias = Literal["none", "uniform", "gda", "hedge", "qp"]
CONSTRAINTS: tuple[Constraint, ...] = ("none", "uniform", "gda", "hedge", "qp")


class Multipliers:
    """gamma (B, S + 1) on the simplex: of the attack's objective g_0 and of S divergences g_s.

    Args:
        kind: "none", the objective alone. "uniform", 1 / (S + 1), never updated. "gda", gamma_s +=
            rate * g_s, then normalised (58). "hedge", gamma_s *= exp(rate * g_s) (59), for s >= 1:
            as printed g_0 has a factor too, but its scale is arbitrary and would decide everything.
            "qp", the shortest vector in the convex hull of the gradients (60); at x itself the
            divergences have no slope, and there the objective has weight 1, as otherwise no row
            would ever leave.
        rate: of "gda" and "hedge".
        problem: the rows under attack.
    """

    def __init__(self, kind: Constraint, rate: float, problem: AttackProblem) -> None:
        self.kind, self.rate, self.problem = kind, rate, problem
        self.clean = [] if kind == "none" else [p.detach() for p in predictions(problem, problem.x)]
        self.gamma = problem.scores.new_full(
            (len(problem.x), len(self.clean) + 1), 1 / (len(self.clean) + 1)
        )

    def rows(self, stay: Tensor, problem: AttackProblem) -> Multipliers:
        """For some of the rows."""
        part = object.__new__(Multipliers)
        part.kind, part.rate, part.problem = self.kind, self.rate, problem
        part.clean, part.gamma = [p[stay] for p in self.clean], self.gamma[stay]
        return part

    def combine(self, gradient: Tensor, x: Tensor) -> Tensor:
        """The descent direction's gradient: sum of gamma_s grad g_s; then gamma is updated."""
        if self.kind == "none":
            return gradient
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            now = predictions(self.problem, point)
            divergences = [divergence(a, b) for a, b in zip(self.clean, now, strict=True)]
            slopes = [
                torch.autograd.grad(g.sum(), point, retain_graph=True)[0] for g in divergences
            ]
        stacked = torch.stack([gradient, *slopes], 1)  # (B, S + 1, ...)
        values = torch.stack([g.detach() for g in divergences], 1)
        if self.kind == "qp":
            self.gamma = shortest_weights(stacked.flatten(2))
            flat = (stacked[:, 1:].flatten(2) == 0).all(2).any(1)
            alone = torch.zeros_like(self.gamma)
            alone[:, 0] = 1.0
            self.gamma = torch.where(flat[:, None], alone, self.gamma)
        mixed = (self.gamma.view(*self.gamma.shape, *[1] * (x.ndim - 1)) * stacked).sum(1)
        if self.kind == "gda":
            self.gamma = torch.cat([self.gamma[:, :1], self.gamma[:, 1:] + self.rate * values], 1)
        elif self.kind == "hedge":
            grown = self.gamma[:, 1:] * (self.rate * values).clamp(max=50).exp()
            self.gamma = torch.cat([self.gamma[:, :1], grown], 1)
        self.gamma = self.gamma / self.gamma.sum(1, keepdim=True)
        return mixed


def predictions(problem: AttackProblem, x: Tensor) -> list[Tensor]:
    """The S predictions that must stay, as log-probabilities: one, or a Siamese network's three."""
    several = getattr(problem.model, "predictions", None)
    # A copy: a model may begin with an operation in place.
    outs = several(x.clone()) if callable(several) else [problem.model(x.clone())]
    return [_log_probabilities(out) for out in outs]


def divergence(clean: Tensor, now: Tensor) -> Tensor:
    """KL(clean || now) of log-probabilities (B, C): (B,)."""
    return F.kl_div(now, clean, reduction="none", log_target=True).sum(1)


def _log_probabilities(out: Tensor) -> Tensor:
    out = out[:, None] if out.ndim == 1 else out
    if out.shape[1] == 1:
        out = torch.cat([torch.zeros_like(out), out], 1)
    return out.log_softmax(1)


def shortest_weights(vectors: Tensor) -> Tensor:
    """Weights on the simplex that make sum of gamma_s v_s shortest: (B, S, n) -> (B, S), exact.

    For the few vectors there are, every face of the simplex is tried: on it the shortest affine
    combination solves a linear system, and the best one with weights >= 0 is the answer.
    """
    rows, count, _ = vectors.shape
    v = vectors.double()
    scale = v.flatten(1).abs().amax(1).clamp(min=torch.finfo(torch.float64).tiny)
    v = v / scale[:, None, None]
    gram = v @ v.mT
    best = gram.diagonal(dim1=1, dim2=2).clone()  # the corners
    length, corner = best.min(1)
    weights = F.one_hot(corner, count).double()
    for size in range(2, count + 1):
        for face in combinations(range(count), size):
            index = list(face)
            part = gram[:, index][:, :, index]
            # Minimise g' G g with sum g = 1: bordered system, least squares where G is singular.
            system = torch.ones(rows, size + 1, size + 1, dtype=torch.float64, device=v.device)
            system[:, :size, :size] = part
            system[:, size, size] = 0
            right = torch.zeros(rows, size + 1, 1, dtype=torch.float64, device=v.device)
            right[:, size] = 1
            solved = (torch.linalg.pinv(system, hermitian=True) @ right)[:, :size, 0]
            share = solved / solved.sum(1, keepdim=True)
            here = (share[:, None] @ part @ share[:, :, None])[:, 0, 0]
            shorter = (share >= 0).all(1) & (here < length)
            length = torch.where(shorter, here, length)
            full = torch.zeros_like(weights)
            full[:, index] = share
            weights = torch.where(shorter[:, None], full, weights)
    return weights.to(vectors.dtype)
