"""The sound certificate: bounds of scores over a region, and bisection on its radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, final

import torch
from torch import Tensor, nn

from r2et.certify.base import Certificate, Certifier, ReasonProof, ScoreIntervals
from r2et.certify.bounds.domain import Domain
from r2et.certify.bounds.interval_bounds import Ball, Norm
from r2et.certify.bounds.pairwise_bounds import PairwiseBounds
from r2et.certify.bounds.per_feature_bounds import PerFeatureBounds
from r2et.certify.feasible import FeasibleProof
from r2et.certify.problem import CertificationProblem
from r2et.certify.search.bisection import largest_radius
from r2et.certify.search.branch_and_bound import proved_in_parts
from r2et.errors import require
from r2et.explain import Explainer
from r2et.progress import bar
from r2et.region import L2, Feasible, Linf, Region

Proof: TypeAlias = Callable[[CertificationProblem, Tensor], Tensor]
Relaxation: TypeAlias = Literal["auto", "linear", "interval"]

# Numbers held at once, and the most that the linear bounds of one row may take.
CHUNK_NUMBERS = 2**20
LINEAR_NUMBERS = 2**24
SYMBOL_NUMBERS = 2**22
DEEP_SPLITS = 4
ASSUMPTIONS = (
    "IEEE arithmetic in the model's precision, sums in any order, elementary functions good to 8 "
    "units in the last place; no TF32 or other reduced precision"
)


@final
@dataclass(frozen=True, kw_only=True)
class IntervalCertifier(Certifier):
    """A radius within which the top k of an explanation cannot change: a proof.

    By linear bounds and branch and bound where the network is small enough, else by intervals.

    norm: l2 or linf.
    region: an L2 or Linf with its bounds, frozen features and scale, in place of a norm. The radius
        is then in the region's own measure of distance, whatever its own radius is: a row is proved
        in the region where its radius is no less than the region's. Or a Feasible: the radius is 1
        where no change that it allows alters the top k, else 0.
    limit: no radius above it is looked for.
    tolerance: how far, relative, the bisection may stop below what it could prove.
    relaxation: "linear" follows every unit as a linear function of the change of x (linear bounds);
        "interval" as an interval (IBP), which is cheaper and looser; "auto" takes the first where
        the network is small enough for it.
    splits: how often a unit of a piecewise-linear network that may switch is looked at on either
        side of its kink (branch and bound); each may double the work where the rest of the proof
        fails; by default 4, and 0 for one hidden layer, which rarely gains by it.
    symbols: look again, where the gradient at x is explained, with what units leave open kept as
        symbols that cancel, and the change of scores as a quadratic function of that of x: larger
        radii for several times the work. Of use, and done, in networks that are smooth somewhere.
    patterns: of a Feasible, the most ways to switch labels that are certified, one by one; with
        more of them nothing is proved.
    chunk: rows at once.
    progress: show a bar.
    """

    config_excluded: ClassVar[tuple[str, ...]] = ("chunk", "progress")

    norm: Norm = "l2"
    limit: float = 10.0
    tolerance: float = 2e-3
    relaxation: Relaxation = "auto"
    splits: int | None = None
    region: Region | None = None
    symbols: bool = True
    patterns: int = 1024
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
        is_valid = self.region is None or type(self.region) in (L2, Linf, Feasible)
        require(is_valid, where, "region", "None, an L2, a Linf or a Feasible", self.region)
        require(type(self.symbols) is bool, where, "symbols", "True or False", self.symbols)
        is_valid = type(self.patterns) is int and self.patterns > 0
        require(is_valid, where, "patterns", "a positive whole number", self.patterns)
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

        target: the class explained, at x and everywhere in the region, by default the one predicted
        at x; nothing is said about what is predicted elsewhere. The radius holds for the scores as
        the model's own arithmetic computes them, ties and all.
        """
        where = "IntervalCertifier"
        problem = CertificationProblem.from_model(where, model, explainer, x, k, target)
        if self.region is not None:
            self.region.check(x)
        if isinstance(self.region, Feasible):
            return self._feasible(problem, self.region, x)
        if self.region is not None:
            domain = Domain.of_region(self.region, x)  # type: ignore[arg-type]
            problem = replace(problem, domain=domain)
        with torch.inference_mode(False), torch.no_grad():

            def proved(radius: Tensor, rows: Tensor) -> Tensor:
                return self._in_chunks(problem.rows(rows), radius, self._border)

            with bar("certify", total=None, show=self.progress):
                radius = largest_radius(
                    proved, len(x), self.limit, self.tolerance, problem.x.device
                )
                splits = self._splits(problem)
                if splits and self._linear(problem):
                    radius = self._further(problem, radius, self._in_parts(splits))
                if self._takes_symbols(problem):
                    radius = self._further(problem, radius, self._with_symbols, times=16)
        # A hair less, so that a copy in float32 is not above what was proved.
        certified = radius * (1 - 1e-6)

        def precision(radius: float) -> Tensor:
            with torch.inference_mode(False), torch.no_grad():
                return self._precision(problem, certified, radius, k)

        def staying(radius: Tensor, rows: Tensor) -> Tensor:
            with torch.inference_mode(False), torch.no_grad():
                part = problem.rows(rows)
                stays = self._in_chunks(part, radius, self._staying)
            return torch.where((certified[rows] >= radius)[:, None], part.top, stays)

        reasons = ReasonProof(problem.ranked, staying, self.limit, self.tolerance)
        return Certificate(certified, True, repr(self), ASSUMPTIONS, precision, reasons)

    def score_intervals(
        self,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        *,
        target: Tensor | int | None = None,
    ) -> ScoreIntervals:
        """What each signed score of each row of x (B, ...) lies between, throughout the region.

        The certifier must have a region, and the explainer signs.
        """
        where = "IntervalCertifier"
        region = self.region
        require(region is not None, where, "region", "given for score_intervals", region)
        problem = CertificationProblem.from_model(where, model, explainer, x, 1, target)
        require(problem.signed, where, "explainer", "one with reduce='signed'", explainer)
        assert region is not None
        region.check(x)
        with torch.inference_mode(False), torch.no_grad():
            if isinstance(region, Feasible):
                expected = f"such that labels switch in at most {self.patterns} ways (patterns=)"
                few = region.ways <= self.patterns
                require(few, where, "region", expected, f"one with {region.ways}")
                proof = FeasibleProof(
                    problem, region, x, self.patterns, self._over, self._rows_at_once
                )
                return proof.intervals()
            assert isinstance(region, L2 | Linf)
            problem = replace(problem, domain=Domain.of_region(region, x))
            # A hair more: a point of the region in float32 may lie a few ulps outside.
            radius = torch.full((len(x),), region.radius * (1 + 1e-6), dtype=torch.float64)
            parts = []
            for some in torch.split(torch.arange(len(x)), self._rows_at_once(problem)):
                part = problem.rows(some.to(problem.x.device))
                ball, bounds = self._bounds(part, radius[some].to(problem.x.device))
                low, high = bounds.interval()
                above = bounds.above(part.side, part.visible(low, high, ball.reach))
                parts.append(ScoreIntervals(low, high, above))
            return ScoreIntervals(*(torch.cat(column) for column in zip(*parts, strict=True)))

    @property
    def _norm(self) -> Norm:
        if self.region is None:
            return self.norm
        return "l2" if isinstance(self.region, L2) else "linf"

    def _feasible(self, problem: CertificationProblem, region: Feasible, x: Tensor) -> Certificate:
        proof = FeasibleProof(problem, region, x, self.patterns, self._over, self._rows_at_once)
        shown = bar("certify", total=None, show=self.progress)
        with torch.inference_mode(False), torch.no_grad(), shown:
            radius = proof.radius()
        return Certificate(
            radius,
            True,
            repr(self),
            ASSUMPTIONS,
            proof.precision,
            ReasonProof(problem.ranked, proof.stays, None, self.tolerance),
            proof.notes,
        )

    def _border(self, part: CertificationProblem, radius: Tensor) -> Tensor:
        """(B,) bool: the top k is proved within the radius."""
        ball, bounds = self._bounds(part, radius)
        return bounds.border(part.top, part.side) > part.visible(*bounds.interval(), ball.reach)

    def _staying(self, part: CertificationProblem, radius: Tensor) -> Tensor:
        """(B, n) bool: which of the top k are proved to stay in it within the radius."""
        ball, bounds = self._bounds(part, radius)
        return part.stays(bounds.above(part.side, part.visible(*bounds.interval(), ball.reach)))

    def _splits(self, problem: CertificationProblem) -> int:
        graph = problem.graph
        if not problem.scores.sum.at_x_alone:  # a unit has as many inputs as there are points
            return 0
        layers = len({graph.nodes[v].inputs[-1] for v in graph.piecewise_linear_layers})
        if self.splits is None:
            return DEEP_SPLITS if layers > 1 else 0
        return self.splits if layers else 0

    def _in_parts(self, splits: int) -> Proof:
        def proved(part: CertificationProblem, radius: Tensor) -> Tensor:
            return proved_in_parts(part, radius, self._norm, splits)

        return proved

    def _takes_symbols(self, problem: CertificationProblem) -> bool:
        alone, smooth = problem.scores.sum.at_x_alone, problem.graph.is_smooth_somewhere
        if not (self.symbols and alone and smooth and self._linear(problem)):
            return False
        return self.relaxation == "linear" or self._symbol_numbers(problem) <= LINEAR_NUMBERS

    def _symbol_numbers(self, problem: CertificationProblem) -> int:
        """At most, of a row: each unit of a nonlinear operator may be two or three symbols."""
        graph = problem.graph
        return (problem.x[0].numel() + 2 * graph.nonlinear_width) * graph.width

    def _with_symbols(self, part: CertificationProblem, radius: Tensor) -> Tensor:
        """(B,) bool: the top k is proved within the radius, by bounds with symbols."""
        size = max(1, SYMBOL_NUMBERS // self._symbol_numbers(part))
        proved = []
        for rows in torch.split(torch.arange(len(radius), device=radius.device), size):
            some = part.rows(rows)
            there = some.ball(some.outer_radius(radius[rows]), self._norm)
            bounds, _ = some.pairwise_bounds(there, symbols=True)
            least = some.visible(*bounds.interval(), there.reach)
            proved.append(bounds.border(some.top, some.side) > least)
        return torch.cat(proved)

    def _further(
        self, problem: CertificationProblem, known: Tensor, function: Proof, times: float = 4
    ) -> Tensor:
        """Larger radii, up to so many times as large, that a closer look proves."""

        def proved(radius: Tensor, rows: Tensor) -> Tensor:
            return self._in_chunks(problem.rows(rows), radius, function)

        # Most rows cannot be helped: a little more is tried first.
        more = (1 + 5 * self.tolerance) * known
        rows = ((known > 0) & (more < self.limit)).nonzero().flatten()
        rows = rows[proved(more[rows], rows)] if len(rows) else rows
        low, high = known.clone(), known.clone()
        low[rows], high[rows] = more[rows], (times * known[rows]).clamp(max=self.limit)
        return largest_radius(
            proved, len(known), self.limit, self.tolerance, known.device, between=(low, high)
        )

    def _bounds(
        self, part: CertificationProblem, radius: Tensor
    ) -> tuple[Ball, PairwiseBounds | PerFeatureBounds]:
        """Balls, and what is known about the scores over them."""
        ball = part.ball(part.outer_radius(radius), self._norm)
        return ball, self._over(part, ball)

    def _over(self, part: CertificationProblem, ball: Ball) -> PairwiseBounds | PerFeatureBounds:
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
        size = self._rows_at_once(part)
        rows = torch.arange(len(part.x), device=part.x.device)
        parts = []
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            parts.append(function(part.rows(some), radius[some]))
        return torch.cat(parts)

    def _rows_at_once(self, part: CertificationProblem) -> int:
        n = part.x[0].numel()
        numbers = part.graph.width
        if self._linear(part):
            alike = part.domain is None or part.domain.low is None or self._norm == "l2"
            numbers = n * numbers + 8 * n * n
            if alike and not isinstance(self.region, Feasible):
                # What is affine in x has one slope for all rows.
                units = sum(math.prod(part.graph.shapes[v]) for v in part.graph.linear_suffix[0])
                few = self._norm == "l2" and units < part.top.shape[1]
                pairs = part.top.shape[1] * (2 * units + (0 if few else n))
                numbers = n * part.graph.bent_width + pairs
        return self.chunk or max(1, CHUNK_NUMBERS // max(1, numbers))

    def _precision(
        self, problem: CertificationProblem, certified: Tensor, radius: float, k: int
    ) -> Tensor:
        at = torch.full_like(certified, radius)

        def share(part: CertificationProblem, radii: Tensor) -> Tensor:
            ball, bounds = self._bounds(part, radii)
            low, high = bounds.interval()
            share = part.share(bounds.above(part.side, part.visible(low, high, ball.reach)), k)
            # Bounds that overflow prove nothing of their row.
            return torch.where((high - low).isfinite().all(1), share, torch.zeros_like(share))

        proved = self._in_chunks(problem, at, share)
        return torch.where(certified >= radius, 1.0, proved.clamp(0, 1))
