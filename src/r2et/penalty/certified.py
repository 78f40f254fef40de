"""Training against the proof itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from r2et.certify.boxes import Norm
from r2et.certify.margin import margins
from r2et.checks import check_k
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.penalty.base import RankingPenalty, check_positive
from r2et.penalty.view import View


@final
@dataclass(frozen=True, kw_only=True)
class CertifiedRanking(RankingPenalty):
    """Hinge on the proved gaps: mean over pairs of max(0, margin - low / mean score).

    low: a lower bound, over the whole ball of radius * reach, on how far a top-k feature's score is
    above another's (see r2et.certify.margin). Where the penalty is 0, the pairs looked at cannot
    change places in the ball: the `pairs` around the border; the certificate looks at all, which
    is why training reaches a little farther. Warm the radius up over the first half of training.
    """

    explainer: Explainer = field(default=Gradient())
    radius: float = 1.0
    reach: float = 1.1
    norm: Norm = "l2"
    pairs: int = 8
    margin: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        where = "CertifiedRanking"
        check_positive(where, radius=self.radius, reach=self.reach)
        check_positive(where, zero=True, margin=self.margin)
        require(self.norm in ("l2", "linf"), where, "norm", "l2 or linf", self.norm)
        good = type(self.pairs) is int and self.pairs > 0
        require(good, where, "pairs", "a positive whole number", self.pairs)
        plain = isinstance(self.explainer, Gradient) and self.explainer.reduce in ("abs", "signed")
        what = "Gradient with reduce abs or signed"
        require(plain, where, "explainer", what, self.explainer)

    def rows(self, view: View) -> Tensor:
        check_k("CertifiedRanking", self.k, view.x[0].numel())
        return self.ranked_rows(view)

    def ranked_rows(self, view: View) -> Tensor:
        assert isinstance(self.explainer, Gradient)
        low, scores, _ = margins(
            view.model,
            view.x.detach(),
            self.radius * self.reach,
            k=self.k,
            norm=self.norm,
            pairs=self.pairs,
            target=view.given_target,
            of=self.explainer.of,
            signed=self.explainer.reduce == "signed",
        )
        scale = scores.abs().mean(1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
        return (self.margin - low / scale).clamp(min=0).mean(1)
