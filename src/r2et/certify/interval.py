"""The sound certificate: bounds of the gradient over a ball, and bisection on its radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import torch
from torch import Tensor, nn

from r2et.certify.base import Certificate, Certifier
from r2et.certify.boxes import Norm
from r2et.certify.features import Features, check_gradient, gradient_box
from r2et.certify.pairs import Pairs, scores_over
from r2et.certify.question import Question
from r2et.certify.search import largest_radius
from r2et.certify.splitting import proved_in_parts
from r2et.certify.steps import Program
from r2et.errors import require
from r2et.explain import Explainer
from r2et.progress import bar

Relaxation: TypeAlias = Literal["auto", "linear", "interval"]

# Numbers held at once, and the most that the linear forms of one row may take.
CHUNK_NUMBERS = 2**20
FORM_NUMBERS = 2**23
DEEP_SPLITS = 4
ASSUMPTIONS = (
    "IEEE arithmetic in the model's precision, sums in any order, elementary functions good to 8 "
    "units in the last place; no TF32 or other reduced precision"
)


@final
@dataclass(frozen=True, kw_only=True)
class IntervalCertifier(Certifier):
    """A radius within which the top k of the gradient cannot change: a proof (SPEC 5).

    norm: l2 or linf. limit: no radius above it is looked for. tolerance: how far, relative, the
    bisection may stop below what it could prove. relaxation: "linear" follows every unit as a
    linear function of the change of x; "interval" as an interval, which is cheaper and looser;
    "auto" takes the first where the network is small enough for it. splits: how often a unit of a
    piecewise-linear network that may switch is looked at on either side of its kink; each may
    double the work where the rest of the proof fails; by default 4, and 0 for one hidden layer,
    which rarely gains by it. chunk: rows at once.
    """

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
            good = isinstance(value, int | float) and 0 < value < math.inf
            require(good, where, name, "positive and finite", value)
        known = self.relaxation in ("auto", "linear", "interval")
        require(known, where, "relaxation", "auto, linear or interval", self.relaxation)
        good = self.splits is None or (type(self.splits) is int and 0 <= self.splits <= 12)
        require(good, where, "splits", "None or a whole number in 0..12", self.splits)
        good = self.chunk is None or (type(self.chunk) is int and self.chunk > 0)
        require(good, where, "chunk", "None or a positive whole number", self.chunk)

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
        question = Question.pose("IntervalCertifier", model, explainer, x, k, target)
        with torch.inference_mode(False), torch.no_grad():
            check_gradient("IntervalCertifier", question)

            def proved(radius: Tensor, rows: Tensor) -> Tensor:
                def border(part: Question, at: Tensor) -> Tensor:
                    bounds = self._bounds(part, at)
                    return bounds.border(part.top, part.side) > part.visible(*bounds.interval())

                return self._in_chunks(question.rows(rows), radius, border)

            with bar("certify", total=None, show=self.progress):
                found = largest_radius(
                    proved, len(x), self.limit, self.tolerance, question.x.device
                )
                splits = self._splits(question.program)
                if splits and self._linear(question):
                    found = self._split_further(question, found, splits)
        # A hair less, so that a copy in float32 is not above what was proved.
        found = found * (1 - 1e-6)

        def precision(radius: float) -> Tensor:
            with torch.inference_mode(False), torch.no_grad():
                return self._precision(question, found, radius, k)

        return Certificate(found, True, repr(self), ASSUMPTIONS, precision)

    def _splits(self, program: Program) -> int:
        layers = program.piecewise_linear()
        if self.splits is None:
            return DEEP_SPLITS if layers > 1 else 0
        return self.splits if layers else 0

    def _split_further(self, question: Question, found: Tensor, splits: int) -> Tensor:
        """Larger radii, up to four times as large, that hold when units are split."""

        def proved(radius: Tensor, rows: Tensor) -> Tensor:
            def parts(part: Question, at: Tensor) -> Tensor:
                return proved_in_parts(part, at, self.norm, splits)

            return self._in_chunks(question.rows(rows), radius, parts)

        # Most rows cannot be helped: a little more is tried first.
        more = (1 + 5 * self.tolerance) * found
        rows = ((found > 0) & (more < self.limit)).nonzero().flatten()
        rows = rows[proved(more[rows], rows)] if len(rows) else rows
        low, high = found.clone(), found.clone()
        low[rows], high[rows] = more[rows], (4 * found[rows]).clamp(max=self.limit)
        span = (low, high)
        return largest_radius(
            proved, len(found), self.limit, self.tolerance, found.device, between=span
        )

    def _bounds(self, part: Question, radius: Tensor) -> Pairs | Features:
        """What is known about the gradient over these balls."""
        ball = part.ball(radius, self.norm)
        if self._linear(part):
            scores = scores_over(part.program, ball, part.target, part.of)
            return Pairs(scores, radius, self.norm, part.signed)
        return Features(gradient_box(part, ball), part.unit, part.signed)

    def _linear(self, part: Question) -> bool:
        if self.relaxation != "auto":
            return self.relaxation == "linear"
        return part.x[0].numel() * part.program.width <= FORM_NUMBERS

    def _in_chunks(
        self, part: Question, radius: Tensor, function: Callable[[Question, Tensor], Tensor]
    ) -> Tensor:
        n = part.x[0].numel()
        numbers = part.program.width
        if self._linear(part):
            numbers = n * numbers + 8 * n * n
        size = self.chunk or max(1, CHUNK_NUMBERS // max(1, numbers))
        rows = torch.arange(len(part.x), device=part.x.device)
        parts = []
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            parts.append(function(part.rows(some), radius[some]))
        return torch.cat(parts)

    def _precision(self, question: Question, found: Tensor, radius: float, k: int) -> Tensor:
        at = torch.full_like(found, radius)

        def share(part: Question, radii: Tensor) -> Tensor:
            bounds = self._bounds(part, radii)
            low, high = bounds.interval()
            finite = bool(((high - low).isfinite()).all())
            require(finite, "precision_at", "radius", "small enough not to overflow", radius)
            above = bounds.above(part.side, part.visible(low, high))
            # i stays if fewer than k others may come above it; j stays out if k are above it.
            stays = (part.top & ((~above).sum(2) - 1 < k)).sum(1)
            enters = (~part.top & (above.sum(1) < k)).sum(1)
            return torch.maximum(stays, k - enters).double() / k

        proved = self._in_chunks(question, at, share)
        return torch.where(found >= radius, 1.0, proved.clamp(0, 1))
