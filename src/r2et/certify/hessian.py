"""Prop. 4.5 with a true supremum over the ball, and its sampled estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from r2et.certify.base import Certificate, Certifier, ReasonProof
from r2et.certify.bounds.hessian_bounds import hessian_box
from r2et.certify.bounds.interval_bounds import Ball, Norm
from r2et.certify.bounds.rounding import rounding, unit_of
from r2et.certify.problem import CertificationProblem
from r2et.certify.search.bisection import largest_radius
from r2et.errors import InputError, require
from r2et.explain import Explainer, Gradient
from r2et.rank.bounds import score_jacobian
from r2et.region import L2, Linf

SMOOTH = "twice differentiable (make one with r2et.models.smooth)"
PLAIN = "Gradient with reduce abs or signed, no groups and no part (IntervalCertifier takes more)"
BEND_NUMBERS = 2**22  # numbers of the Hessians held at once


@final
@dataclass(frozen=True, kw_only=True)
class HessianCertifier(Certifier):
    """The radius r = min over pairs of h(x, i, j) / max over the ball of ||H_i - H_j|| (Prop. 4.5).

    The maximum is bounded by intervals of all second derivatives over the very ball of radius r,
    so the result is a proof. Piecewise-linear networks are refused: there H is 0 wherever it
    exists, the quotient infinite, and the statement false, since gradients jump.

    norm: l2 or linf.
    limit: no radius above it is looked for.
    tolerance: how far, relative, the bisection may stop below what it could prove.
    samples: take the largest of this many random points instead of a bound; then the radius is an
        estimate, sound=False.
    seed: of these points.
    """

    norm: Norm = "l2"
    limit: float = 10.0
    tolerance: float = 2e-3
    samples: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        where = "HessianCertifier"
        require(self.norm in ("l2", "linf"), where, "norm", "l2 or linf", self.norm)
        for name in ("limit", "tolerance"):
            value = getattr(self, name)
            is_valid = isinstance(value, int | float) and 0 < value < math.inf
            require(is_valid, where, name, "positive and finite", value)
        is_valid = self.samples is None or (type(self.samples) is int and self.samples > 0)
        require(is_valid, where, "samples", "None or a positive whole number", self.samples)
        is_valid = type(self.seed) is int and 0 <= self.seed < 2**63
        require(is_valid, where, "seed", "a whole number, 0 or more", self.seed)

    def __call__(
        self,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
    ) -> Certificate:
        """Certify the top k of each row of x (B, ...); see IntervalCertifier for target."""
        plain = isinstance(explainer, Gradient) and explainer.groups is None
        require(plain, "HessianCertifier", "explainer", PLAIN, explainer)
        problem = CertificationProblem.from_model(
            "HessianCertifier", model, explainer, x, k, target
        )
        _check_smooth(problem)

        def proved(radius: Tensor, rows: Tensor) -> Tensor:
            part = problem.rows(rows)
            return self._above(part, radius, model, k)[1]

        with torch.inference_mode(False), torch.no_grad():
            rows = len(x)
            device = problem.x.device
            radii = largest_radius(proved, rows, self.limit, self.tolerance, device)
            certified = radii * (1 - 1e-6)

        def staying(radius: Tensor, rows: Tensor) -> Tensor:
            with torch.inference_mode(False), torch.no_grad():
                part = problem.rows(rows)
                above, _ = self._above(part, radius, model, k)
                stays = part.top & ((~above).sum(2) - 1 < k)
            return torch.where((certified[rows] >= radius)[:, None], part.top, stays)

        def precision(radius: float) -> Tensor:
            every = torch.arange(len(certified), device=certified.device)
            return staying(torch.full_like(certified, radius), every).sum(1).double() / k

        sound = self.samples is None
        how = "a twice differentiable network" if sound else "the largest of a few samples"
        assumptions = f"{how}; rounding by four times its size"
        reasons = ReasonProof(problem.ranked, staying, self.limit, self.tolerance)
        return Certificate(certified, sound, repr(self), assumptions, precision, reasons)

    def _above(
        self, part: CertificationProblem, radius: Tensor, model: nn.Module, k: int
    ) -> tuple[Tensor, Tensor]:
        """(B, n, n): i stays above j within the radius; (B,): all of the top k above the rest."""
        n = part.x[0].numel()
        size = max(1, BEND_NUMBERS // (n * n + part.graph.width * n))
        parts = []
        for start in range(0, len(radius), size):
            rows = torch.arange(start, min(start + size, len(radius)), device=radius.device)
            parts.append(self._gaps(part.rows(rows), radius[rows], model) > 0)
        above = torch.cat(parts)
        order = part.top.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        rows = torch.arange(len(radius), device=radius.device)[:, None, None]
        border = above[rows, order[:, :k, None], order[:, None, k:]]
        return above, border.flatten(1).all(1)

    def _gaps(self, part: CertificationProblem, radius: Tensor, model: nn.Module) -> Tensor:
        """(B, n, n) h(x, i, j) - radius * max ||H_i - H_j||, for the worse sign of score j."""
        clean, slack = part.clean, _slack(part, radius, self.norm)
        rows = clean if part.signed else part.side * clean
        lowest: Tensor | None = None
        for sign in (1.0,) if part.signed else (1.0, -1.0):
            factor = sign if part.signed else sign * part.side[:, :, None]
            gap = rows[:, :, None] - factor * clean[:, None]
            moved = radius[:, None, None] * self._steepest(part, radius, sign, model)
            low = gap - moved
            lowest = low if lowest is None else torch.minimum(lowest, low)
        assert lowest is not None
        return lowest - 2 * (slack[:, :, None] + slack[:, None])

    def _steepest(
        self, part: CertificationProblem, radius: Tensor, sign: float, model: nn.Module
    ) -> Tensor:
        """(B, n, n) the largest ||H_i - sign H_j|| over the ball, bounded or sampled."""
        if self.samples is None:
            box = hessian_box(part.graph, part.ball(radius, self.norm), part.target, part.of)
            most = _apart(box.centre, sign, self.norm)
            if box.spread is None:
                return most
            wide = _length(box.spread, self.norm)
            return most + wide[:, :, None] + wide[:, None]
        ball = (L2 if self.norm == "l2" else Linf)(1.0)
        generator = torch.Generator().manual_seed(self.seed)
        moves = ball.sample(torch.zeros_like(part.x), self.samples, generator=generator)
        explain = Gradient(reduce="signed", of="logit" if part.of == "logit" else "log_odds")
        kind = torch.float32 if part.unit > unit_of(torch.float64) else torch.float64
        largest: Tensor | None = None
        for move in (torch.zeros_like(part.x), *moves):
            there = (part.x + radius.view(-1, *[1] * (part.x.ndim - 1)) * move).to(kind)

            def scores(z: Tensor) -> Tensor:
                return explain(model, z, part.target, create_graph=True)

            with torch.enable_grad():
                rows = score_jacobian(scores, there, constant=True).double()
            here = _apart(rows, sign, self.norm)
            largest = here if largest is None else torch.maximum(largest, here)
        assert largest is not None
        return largest


def _check_smooth(problem: CertificationProblem) -> None:
    kinked = [operator.name for operator in problem.graph.operators() if operator.kinked]
    if kinked:
        why = "where gradients jump while H is 0 (use IntervalCertifier)"
        raise InputError(f"HessianCertifier: model must be {SMOOTH}, got {kinked[0]}, {why}.")


def _slack(part: CertificationProblem, radius: Tensor, norm: Norm) -> Tensor:
    """(B, n) twice what rounding adds to the interval of the gradient over the ball, and the gap
    below which features may tie.
    """
    rounded = part.gradient_box(Ball(part.x, radius, norm, part.unit))
    exact = part.gradient_box(Ball(part.x, radius, norm))
    wide = rounded.spread if rounded.spread is not None else torch.zeros_like(rounded.centre)
    wide = (wide + rounding(8, part.unit, rounded.size)).flatten(1)
    plain = 0.0 if exact.spread is None else exact.spread.flatten(1)
    centre = rounded.centre.flatten(1)
    noise = 2 * (wide - plain).clamp(min=0) + part.unit * wide
    return noise + part.visible(centre - wide, centre + wide)[:, None]


def _length(rows: Tensor, norm: Norm) -> Tensor:
    """(B, n, m) -> (B, n): what a unit change of x can make of each row's product with it."""
    return rows.square().sum(2).sqrt() if norm == "l2" else rows.abs().sum(2)


def _apart(rows: Tensor, sign: float, norm: Norm) -> Tensor:
    """(B, n, n) ||H_i - sign H_j||, one feature at a time."""
    return torch.stack(
        [_length(rows[:, i, None] - sign * rows, norm) for i in range(rows.shape[1])], 1
    )
