"""R2ET: wide gaps between the top k and the rest, and an explanation that changes slowly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, final, get_args

import torch
from torch import Tensor

from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.penalty.base import RankingPenalty, check_positive
from r2et.penalty.curvature import (
    By,
    along,
    check_curvature,
    direction,
    draws_direction,
    safe_norm,
    unit,
    warn_if_flat,
)
from r2et.penalty.explained_batch import ExplainedBatch
from r2et.rank import pairs
from r2et.rank.pairs import PAIR_SETS, PairSet

Form: TypeAlias = Literal["gap", "exponential"]
Ends: TypeAlias = Literal["random", "worst"]
ASIDE = 0.25  # of the radius: where a step of an attack begins, since at x itself much is flat


@final
@dataclass(frozen=True, kw_only=True)
class R2ET(RankingPenalty):
    """-l1 * mean over pairs of h(x, i, j) + l2 * ||H(x) v||, eq. (6).

    The papers sum over pairs; the mean makes a weight mean the same for every n and k.

    Args:
        k: how many features are to stay above the rest.
        explainer: the explanation that is to hold still.
        pairs: "all", "closest" (R2ET-mm) or "anchor".
        count: k' of the last two, by default k.
        form: the "gap" h, or "exponential", which puts exp(-h) in place of -h.
        l1: weight of the gaps; 0 leaves them out.
        l2: weight of the curvature; 0 leaves it out.
        by: how the curvature is taken, as in EstimatedHessian.
        step: of its difference.
    """

    pairs: PairSet = "all"
    count: int | None = None
    form: Form = "gap"
    l1: float = 1.0
    l2: float = 1.0
    by: By = "difference"
    step: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pairs("R2ET", self.pairs, self.count, self.form)
        check_positive("R2ET", zero=True, l1=self.l1, l2=self.l2)
        check_curvature("R2ET", self.by, self.step)

    @property
    def random(self) -> bool:
        return self.l2 > 0 and draws_direction(self.explainer)

    def ranked_rows(self, batch: ExplainedBatch) -> Tensor:
        total = batch.scores.new_zeros(len(batch.x))
        if self.l1:
            total = self.l1 * gap_term(batch, batch.scores, self)
        if self.l2:
            bend = along(batch, direction(batch), self.by, self.step)
            warn_if_flat(batch.where, bend)
            total = total + self.l2 * bend
        return total


@final
@dataclass(frozen=True, kw_only=True)
class BallR2ET(RankingPenalty):
    """R2ET for a whole ball: scale-free scores I^ = I / mean |I|, and a difference across it.

    -l1 * mean over pairs of h^ + l2 * ||I^(x + radius v) - I^(x)||, v a random direction, at the
    ball's border. Neither term changes when a model merely scales its explanation, which is how
    eq. (6) is satisfied most cheaply; and a boundary of a piecewise-linear network anywhere in the
    ball is felt, not only one next to x.

    Args:
        k: how many features are to stay above the rest.
        explainer: by default the gradient of the log-odds.
        radius: of the ball.
        pairs: "all", "closest" or "anchor", as in R2ET.
        count: k' of the last two, by default k.
        form: "gap" or "exponential", as in R2ET.
        l1: weight of the gaps. A large one is dangerous: a network that has learned nothing can
            have the widest gaps.
        l2: weight of the difference across the ball.
        hinge: gaps wider than this are wide enough; None: none is.
        ends: where v points. "random": anywhere. "worst": one step of an attack, from a random
            quarter of the way against the mean gap, by the signs of its gradient; it costs one more
            second derivative. Where that gradient is 0, as in a piecewise-linear network, the
            random direction is taken: train a smooth one (`rho` of a recipe).
    """

    # Relative scores are the same for the probability and its log-odds, which never underflows.
    explainer: Explainer = field(default=Gradient())
    radius: float = 1.0
    pairs: PairSet = "closest"
    count: int | None = None
    form: Form = "gap"
    l1: float = 0.1
    l2: float = 1.0
    hinge: float | None = None
    ends: Ends = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pairs("BallR2ET", self.pairs, self.count, self.form)
        require(self.ends in get_args(Ends), "BallR2ET", "ends", "random or worst", self.ends)
        check_positive("BallR2ET", zero=True, l1=self.l1, l2=self.l2)
        check_positive("BallR2ET", radius=self.radius)
        if self.hinge is not None:
            check_positive("BallR2ET", hinge=self.hinge)
            alone = self.form == "gap"
            require(alone, "BallR2ET", "hinge", "None with form exponential", self.hinge)

    @property
    def random(self) -> bool:
        return self.l2 > 0

    def ranked_rows(self, batch: ExplainedBatch) -> Tensor:
        here = relative(batch.scores)
        total = here.new_zeros(len(here))
        if self.l1:
            total = self.l1 * gap_term(batch, here, self, self.hinge)
        if self.l2:
            there = relative(batch.explainer.reduced(batch.raw_at(self._end(batch))))
            total = total + self.l2 * safe_norm(there - here)
        return total

    def _end(self, batch: ExplainedBatch) -> Tensor:
        """The points (B, ...) across the ball, radius away from x or a little less."""
        if self.ends == "random":
            return batch.x.detach() + self.radius * unit(batch.noise)
        aside = unit(batch.noise.sign())
        start = (batch.x.detach() + ASIDE * self.radius * aside).requires_grad_()
        scores = relative(batch.explainer.reduced(batch.raw_at(start)))
        gap = mean_gap(scores, batch.top(self.k)).sum()
        (up,) = torch.autograd.grad(gap, start, allow_unused=True, materialize_grads=True)
        flat = (up.flatten(1) == 0).all(1).view(-1, *[1] * (up.ndim - 1))
        down = torch.where(flat, aside, -unit(up.sign()))
        return start.detach() + (1 - ASIDE) * self.radius * down


def gap_term(
    batch: ExplainedBatch, scores: Tensor, chosen: R2ET | BallR2ET, hinge: float | None = None
) -> Tensor:
    """Mean over the chosen pairs of -h, of exp(-h), or of max(hinge - h, 0): (B,)."""
    k, n = chosen.k, scores.shape[1]
    if chosen.pairs == "all" and hinge is None:
        top = batch.top(k)
        if chosen.form == "gap":
            return -mean_gap(scores, top)
        # The mean of exp(I_j - I_i) over all pairs is a product of two means.
        others = scores.scatter(1, top, -torch.inf).logsumexp(1)
        salient = (-scores.gather(1, top)).logsumexp(1)
        return (others + salient - math.log(k * (n - k))).exp()
    places = pairs(n, k, chosen.pairs, chosen.count).to(scores.device)
    first = batch.top(int(places.max()) + 1)
    ranked = scores.gather(1, first)
    gaps = ranked[:, places[:, 0]] - ranked[:, places[:, 1]]
    if hinge is not None:
        return (hinge - gaps).clamp(min=0).mean(1)
    return -gaps.mean(1) if chosen.form == "gap" else (-gaps).exp().mean(1)


def mean_gap(scores: Tensor, top: Tensor) -> Tensor:
    """Mean of all k (n - k) gaps h(x, i, j), in O(n): (B, n), (B, k) -> (B,)."""
    k, n = top.shape[1], scores.shape[1]
    salient = scores.gather(1, top).sum(1)
    return salient / k - (scores.sum(1) - salient) / (n - k)


def relative(scores: Tensor) -> Tensor:
    """Scores over their row's mean absolute score: (B, n), unchanged by scaling."""
    mean = scores.abs().mean(1, keepdim=True)
    return scores / mean.clamp(min=torch.finfo(scores.dtype).tiny ** 0.5)


def check_pairs(where: str, kind: str, count: int | None, form: str) -> None:
    """The settings of a gap term."""
    names = ", ".join(PAIR_SETS)
    require(kind in PAIR_SETS, where, "pairs", f"one of {names}", kind)
    is_valid = count is None or (type(count) is int and count > 0 and kind != "all")
    require(
        is_valid, where, "count", "None, or a positive whole number for closest or anchor", count
    )
    require(form in ("gap", "exponential"), where, "form", "gap or exponential", form)
