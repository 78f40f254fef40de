"""Training against the proof itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Norm
from r2et.certify.training_bounds import margins
from r2et.checks import check_k
from r2et.errors import require
from r2et.explain import Explainer, Gradient, GradientTimesInput
from r2et.explain.grouping import column_of
from r2et.penalty.base import RankingPenalty, check_positive
from r2et.penalty.explained_batch import ExplainedBatch
from r2et.region import L2, Linf, NormBall

EXPECTED = (
    "Gradient or GradientTimesInput with reduce abs or signed (explanations of several points are"
    " certified, but not cheaply enough to train against: take R2ET or ReasonGaps)"
)

# How far from the border, in mean scores, a feature is clearly inside or outside of the top k.
SOFTNESS = 0.1
# Sets that differ by one feature are 2 apart: e^(-2 / WIDTH) of a row.
WIDTH = 0.5


@final
@dataclass(frozen=True, kw_only=True)
class CertifiedRanking(RankingPenalty):
    """Hinge on the proved gaps: mean over pairs of max(0, margin - low / mean score).

    low: a lower bound, over the whole ball of radius * reach, on how far a top-k feature's score is
    above another's (see r2et.certify.training_bounds). Where the penalty is 0, the pairs looked at
    cannot change places in the ball; the certificate looks at all pairs, which is why training
    reaches a little farther. Warm the radius up over the first half of training.

    explainer: a Gradient or GradientTimesInput, of features or columns, whose ranking is to be
        proved.
    radius: of the ball.
    reach: how much farther than the radius training looks.
    norm: of the ball, l2 or linf.
    region: an L2 or Linf whose norm, scale and frozen features make the ball, in place of `norm`;
        `radius` is then in its units.
    toward: the class whose explanation is to be proved; None for the one predicted.
    pairs: how many gaps of a row are bounded, the lowest among them.
    margin: a gap of this many mean scores is enough.
    individuality: the factor of a second term, the log of how many rows of the batch have a row's
        top-k set, see `rows_alike`. Without it the cheapest proof is one set for everybody; with it
        rows are no longer apart, and each process of several sees its own.
    """

    explainer: Explainer = field(default=Gradient())
    radius: float = 1.0
    reach: float = 1.1
    norm: Norm = "l2"
    pairs: int = 8
    margin: float = 0.02
    individuality: float = 0.0
    region: NormBall | None = None
    toward: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        where = "CertifiedRanking"
        check_positive(where, radius=self.radius, reach=self.reach)
        check_positive(where, zero=True, margin=self.margin, individuality=self.individuality)
        require(self.norm in ("l2", "linf"), where, "norm", "l2 or linf", self.norm)
        is_count = type(self.pairs) is int and self.pairs > 0
        require(is_count, where, "pairs", "a positive whole number", self.pairs)
        local = isinstance(self.explainer, Gradient | GradientTimesInput)
        plain = local and self.explainer.reduce in ("abs", "signed")
        require(plain, where, "explainer", EXPECTED, self.explainer)
        is_valid = self.region is None or type(self.region) in (L2, Linf)
        require(is_valid, where, "region", "None, an L2 or a Linf", self.region)
        is_valid = self.toward is None or (type(self.toward) is int and self.toward >= 0)
        require(is_valid, where, "toward", "None or the number of a class", self.toward)

    @property
    def of_reasons(self) -> bool:
        """Contributions are what people are given; their ball is in units of a table's moves."""
        return isinstance(self.explainer, GradientTimesInput)

    @property
    def usual_weight(self) -> float:
        """A larger ball has worse bounds and bears less weight: 0.1 at radius 1, 1 at 0.1."""
        return min(0.1 / self.radius, 3.0)

    def rows(self, batch: ExplainedBatch) -> Tensor:
        check_k("CertifiedRanking", self.k, self._count(batch))
        if self.toward is not None and batch.given_target is None:
            batch.given_target = torch.full((len(batch.x),), self.toward, device=batch.x.device)
        return self.ranked_rows(batch)

    def _count(self, batch: ExplainedBatch) -> int:
        """How many scores a row has."""
        n = batch.x[0].numel()
        return int(column_of(self.explainer.groups, n).max()) + 1

    def ranked_rows(self, batch: ExplainedBatch) -> Tensor:
        assert isinstance(self.explainer, Gradient | GradientTimesInput)
        like = batch.x.new_empty(()).expand(len(batch.x), self._count(batch))
        low, scores, _ = margins(
            batch.model,
            batch.x.detach(),
            self.radius * self.reach,
            k=self.k,
            norm=self.norm,
            pairs=self.pairs,
            target=batch.known_target,
            explainer=self.explainer,
            region=self.region,
            top=batch.given_top(self.k, like),
        )
        scale = scores.abs().mean(1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
        penalty = (self.margin - low / scale).clamp(min=0).mean(1)
        if self.individuality:
            near = 2 * self.radius * self.reach
            x = batch.x.detach().flatten(1)
            shared = rows_alike(scores / scale, x, self.k, near, self.norm)
            penalty = penalty + self.individuality * shared
        return penalty


def rows_alike(scores: Tensor, x: Tensor, k: int, near: float, norm: Norm = "l2") -> Tensor:
    """Log of how many rows have a row's top-k set, softly: (B,), from 0 to log B.

    m = sigmoid((scores - border) / SOFTNESS), the border halfway between places k and k + 1, tells
    the sets apart: log of the sum over rows b of exp(-||m_a - m_b||^2 / WIDTH). Rows up to `near`
    from a, other than a itself, do not count: balls that meet have one set, if both are proved.
    scores: (B, n), of mean size 1. x: (B, features).
    """
    places = scores.detach().topk(k + 1, dim=1).values
    border = (places[:, k - 1 : k] + places[:, k:]) / 2
    inside = torch.sigmoid((scores - border) / SOFTNESS)
    size = inside.square().sum(1)
    apart = size[:, None] + size - 2 * inside @ inside.T
    close = torch.cdist(x, x, p=2.0 if norm == "l2" else torch.inf) <= near
    # A row is like itself: 1, and no gradient.
    same = torch.exp(apart * (-1 / WIDTH)).masked_fill(close.fill_diagonal_(True), 0.0)
    return same.sum(1).log1p()
