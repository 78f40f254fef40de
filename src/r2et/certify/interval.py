"""The sound certificate: bounds of the gradient over a ball, and bisection on its radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, final

import torch
from torch import Tensor, nn

from r2et.certify.base import Certificate, Certifier
from r2et.certify.bounds.interval_bounds import Norm
from r2et.certify.bounds.pairwise_bounds import PairwiseBounds
from r2et.certify.bounds.per_feature_bounds import PerFeatureBounds
from r2et.certify.graph import Graph
from r2et.certify.problem import CertificationProblem
from r2et.certify.search.bisection import largest_radius
from r2et.certify.search.branch_and_bound import proved_in_parts
from r2et.errors import require
from r2et.explain import Explainer
from r2et.progress import bar

Relaxation: TypeAlias = Literal["auto", "linear", "interval"]

# Numbers held at once, and the most that the linear bounds of one row may take.
CHUNK_NUMBERS = 2**20
LINEAR_NUMBERS = 2**24
DEEP_SPLITS = 4
ASSUMPTIONS = (
    "IEEE arithmetic in the model's precision, sums in any order, elementary functions good to 8 "
    "units in the last place; no TF32 or other reduced precision"
)


@final
@dataclass(frozen=True, kw_only=True)
class IntervalCertifier(Certifier):
    """A radius within which the top k of the gradient cannot change: a proof.

    By linear bounds and branch and bound where the network is small enough, else by intervals.

    norm: l2 or linf.
    limit: no radius above it is looked for.
    tolerance: how far, relative, the bisection may stop below what it could prove.
    relaxation: "linear" follows every unit as a linear function of the change of x (linear bounds);
        "interval" as an interval (IBP), which is cheaper and looser; "auto" takes the first where
        the network is small enough for it.
    splits: how often a unit of a piecewise-linear network that may switch is looked at on either
        side of its kink (branch and bound); each may double the work where the rest of the proof
        fails; by default 4, and 0 for one hidden layer, which rarely gains by it.
    chunk: rows at once.
    progress: show a bar.
    """

    config_excluded: ClassVar[tuple[str, ...]] = ("chunk", "progress")

    norm: Norm = "l2"
    limit: float = 10.0
    tolerance: float = 2e-3
    relaxation: Relaxation = "auto"
    splits: int | None = None
    chunk: int | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        where = "IntervalCertifier"
        require(self.norm in ("l2", "linf"), where, "norm", "l2 or linf", self.norm)
        for name in ("limit", "tolerance"):
            value = getattr(self, name)
            is_valid = isinstance(value, int | float) and 0 < value < math.inf
            require(is_valid, where, name, "positive and finite", value)
        known = self.relaxation in ("auto", "linear", "interval")
        require(known, where, "relaxation", "auto, linear or interval", self.relaxation)
        is_valid = self.splits is None or (type(self.splits) is int and 0 <= self.splits <= 12)
        require(is_valid, where, "splits", "None or a whole number in 0..12", self.splits)
        is_valid = self.chunk is None or (type(self.chunk) is int and self.chunk > 0)
        require(is_valid, where, "chunk", "None or a positive whole number", self.chunk)

    def __call__(
        self,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
    ) -> Certificate:
        """Certify the top k of each row of x (B, ...).

        target: the class explained, at x and everywhere in the ball, by default the one predicted
        at x; nothing is said about what is predicted elsewhere. The radius holds for the gradient
        as the model's own arithmetic computes it, ties and all.
        """
        problem = CertificationProblem.from_model(
            "IntervalCertifier", model, explainer, x, k, target
        )
        with torch.inference_mode(False), torch.no_grad():

            def proved(radius: Tensor, rows: Tensor) -> Tensor:
                def border(part: CertificationProblem, at: Tensor) -> Tensor:
                    bounds = self._bounds(part, at)
                    return bounds.border(part.top, part.side) > part.visible(*bounds.interval())

                return self._in_chunks(problem.rows(rows), radius, border)

            with bar("certify", total=None, show=self.progress):
                radius = largest_radius(
                    proved, len(x), self.limit, self.tolerance, problem.x.device
                )
                splits = self._splits(problem.graph)
                if splits and self._linear(problem):
                    radius = self._split_further(problem, radius, splits)
        # A hair less, so that a copy in float32 is not above what was proved.
        certified = radius * (1 - 1e-6)

        def precision(radius: float) -> Tensor:
            with torch.inference_mode(False), torch.no_grad():
                return self._precision(problem, certified, radius, k)

        return Certificate(certified, True, repr(self), ASSUMPTIONS, precision)

    def _splits(self, graph: Graph) -> int:
        layers = len({graph.nodes[v].inputs[-1] for v in graph.piecewise_linear_layers})
        if self.splits is None:
            return DEEP_SPLITS if layers > 1 else 0
        return self.splits if layers else 0

    def _split_further(self, problem: CertificationProblem, known: Tensor, splits: int) -> Tensor:
        """Larger radii, up to four times as large, that hold when units are split."""

        def proved(radius: Tensor, rows: Tensor) -> Tensor:
            def parts(part: CertificationProblem, at: Tensor) -> Tensor:
                return proved_in_parts(part, at, self.norm, splits)

            return self._in_chunks(problem.rows(rows), radius, parts)

        # Most rows cannot be helped: a little more is tried first.
        more = (1 + 5 * self.tolerance) * known
        rows = ((known > 0) & (more < self.limit)).nonzero().flatten()
        rows = rows[proved(more[rows], rows)] if len(rows) else rows
        low, high = known.clone(), known.clone()
        low[rows], high[rows] = more[rows], (4 * known[rows]).clamp(max=self.limit)
        return largest_radius(
            proved, len(known), self.limit, self.tolerance, known.device, between=(low, high)
        )

    def _bounds(
        self, part: CertificationProblem, radius: Tensor
    ) -> PairwiseBounds | PerFeatureBounds:
        """What is known about the gradient over these balls."""
        ball = part.ball(radius, self.norm)
        if not self._linear(part):
            return PerFeatureBounds(part.gradient_box(ball), part.unit, part.signed)
        return part.pairwise_bounds(ball)[0]

    def _linear(self, part: CertificationProblem) -> bool:
        if self.relaxation != "auto":
            return self.relaxation == "linear"
        return part.x[0].numel() * part.graph.width <= LINEAR_NUMBERS

    def _in_chunks(
        self,
        part: CertificationProblem,
        radius: Tensor,
        function: Callable[[CertificationProblem, Tensor], Tensor],
    ) -> Tensor:
        n = part.x[0].numel()
        numbers = part.graph.width
        if self._linear(part):
            numbers = n * numbers + 8 * n * n
        size = self.chunk or max(1, CHUNK_NUMBERS // max(1, numbers))
        rows = torch.arange(len(part.x), device=part.x.device)
        parts = []
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            parts.append(function(part.rows(some), radius[some]))
        return torch.cat(parts)

    def _precision(
        self, problem: CertificationProblem, certified: Tensor, radius: float, k: int
    ) -> Tensor:
        at = torch.full_like(certified, radius)

        def share(part: CertificationProblem, radii: Tensor) -> Tensor:
            bounds = self._bounds(part, radii)
            low, high = bounds.interval()
            finite = bool(((high - low).isfinite()).all())
            require(finite, "precision_at", "radius", "small enough not to overflow", radius)
            above = bounds.above(part.side, part.visible(low, high))
            # i stays if fewer than k others may come above it; j stays out if k are above it.
            stays = (part.top & ((~above).sum(2) - 1 < k)).sum(1)
            enters = (~part.top & (above.sum(1) < k)).sum(1)
            return torch.maximum(stays, k - enters).double() / k

        proved = self._in_chunks(problem, at, share)
        return torch.where(certified >= radius, 1.0, proved.clamp(0, 1))
