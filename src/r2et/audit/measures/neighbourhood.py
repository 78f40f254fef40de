"""What holds near a row without anybody's ill will: noise, thickness, curvature."""

from __future__ import annotations

import warnings
from typing import Literal

import torch
from torch import Tensor

from r2et.audit.measures.base import AuditedRows, Measure, of_probability
from r2et.audit.settings import WHERE
from r2et.audit.statistics import Columns, Mean
from r2et.models.output import CHUNK_NUMBERS, batched_logits, classes
from r2et.penalty import EstimatedHessian, ExactHessian
from r2et.rank import precision_at_k
from r2et.rank import thickness as thickness_of
from r2et.results import FIGURES

NOISE = 100  # random points per row
MANY_FEATURES = 128  # beyond, the Hessian is estimated


def noise(rows: AuditedRows) -> Columns:
    """Mean P@k over random points of the region that keep the prediction: what chance does."""
    s, x = rows.settings, rows.x
    scores_at = s.explainer.at(rows.model, x, rows.target.to(x.device))
    generator = rows.generator("noise")
    total = torch.zeros(len(x), dtype=torch.float64)
    count = torch.zeros(len(x), dtype=torch.float64)
    left = NOISE
    while left > 0:
        some = min(left, max(1, CHUNK_NUMBERS // x.numel()))
        points = s.region.sample(x, some, generator=generator).flatten(0, 1)
        kept = classes(batched_logits(rows.model, points, WHERE)) == rows.target.repeat(some)
        clean_scores = rows.scores.repeat(some, 1)
        right = precision_at_k(clean_scores, scores_at(points), s.k).double().cpu()
        total += torch.where(kept, right, 0.0).view(some, -1).sum(0)
        count += kept.view(some, -1).sum(0)
        left -= some
    return {"precision_noise": torch.where(count > 0, total / count.clamp(min=1), torch.nan)}


def thickness(rows: AuditedRows) -> Columns:
    """Thickness in the region, as a gap and as a probability (Sec. 4.1)."""
    s = rows.settings

    def in_region(kind: Literal["gap", "probability"]) -> Tensor:
        return thickness_of(
            rows.model,
            rows.x,
            s.k,
            explainer=s.explainer,
            region=s.ball,
            kind=kind,
            generator=rows.generator("thickness"),
        )

    return {"thickness": in_region("gap"), "thickness_probability": in_region("probability")}


def curvature(rows: AuditedRows) -> Columns:
    """||H(x)|| of the probability's explanation, beside thickness in Fig. 2."""
    of = rows.settings.explainer
    if of.differentiable:
        of = of_probability(of) or of
    many = rows.x[0].numel() > MANY_FEATURES
    penalty = EstimatedHessian(explainer=of) if many else ExactHessian(explainer=of)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a curvature of zero is a finding here, not a mistake
        norm = penalty(rows.model, rows.x, rows.target.to(rows.x.device))
    return {"hessian_norm": norm.detach()}


NOISE_FLOOR = Measure(
    "noise",
    noise,
    {FIGURES["precision_noise"]: Mean("precision_noise", (0.0, 1.0))},
    ("precision_noise",),
)
THICKNESS = Measure(
    "thickness",
    thickness,
    {
        FIGURES["thickness"]: Mean("thickness"),
        FIGURES["thickness_probability"]: Mean("thickness_probability", (0.0, 1.0)),
    },
    ("thickness", "thickness_probability"),
)
CURVATURE = Measure("curvature", curvature, {}, ("hessian_norm",))
