"""Adversarial training for rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from r2et.models.output import logits
from r2et.penalty.base import RankingPenalty, check_positive
from r2et.penalty.curvature import unit
from r2et.penalty.explained_batch import ExplainedBatch
from r2et.penalty.ranking import mean_gap


@final
@dataclass(frozen=True, kw_only=True)
class AdversarialTraining(RankingPenalty):
    """AT: the loss at x + d, d one step of length `radius` against the sum of gaps (Sec. 6.1).

    The gaps are those of the predicted class's explanation; target: the classes of the loss (by
    default the predicted ones too). Stands in the place of the loss at x, not beside it.

    Args:
        k: how many features are to stay above the rest.
        explainer: the explanation that is to hold still.
        radius: the length of d.
    """

    radius: float = 1.0

    of_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("AdversarialTraining", radius=self.radius)

    def ranked_rows(self, batch: ExplainedBatch) -> Tensor:
        gaps = mean_gap(batch.scores, batch.top(self.k))
        (slope,) = torch.autograd.grad(
            gaps.sum(), batch.x, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        worse = batch.x.detach() - self.radius * unit(slope)
        return row_losses(logits(batch.model, worse, batch.where), batch.labels)


def row_losses(out: Tensor, y: Tensor, reduction: str = "none") -> Tensor:
    """Cross-entropy (B,) of logits (B, C); a single logit, or (B,), is the log-odds of class 1.

    reduction: "none", or "mean" or "sum" for one number.
    """
    out = out[:, 0] if out.ndim == 2 and out.shape[1] == 1 else out
    if out.ndim == 1:
        return binary_cross_entropy_with_logits(out, y.to(out.dtype), reduction=reduction)
    return cross_entropy(out, y, reduction=reduction)
