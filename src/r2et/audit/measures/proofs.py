"""What is proved: the radius within which no change can alter the top k."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from r2et.audit.measures.base import AuditedRows, Measure
from r2et.audit.measures.feasible_proofs import certified_moves
from r2et.audit.settings import AuditSettings
from r2et.audit.statistics import UNKNOWN, Columns, Estimate, Mean, Median, share_of
from r2et.certify import IntervalCertifier
from r2et.certify.base import Certificate
from r2et.models.output import undisturbed
from r2et.results import FIGURES

OUTWARD = 1e-6  # relative


def certified(rows: AuditedRows) -> Columns:
    """The radius within which nothing can change the top k, and P@k proved at the radius asked."""
    s = rows.settings
    if s.moves is not None:
        return certified_moves(rows, s.moves)
    proof = proved(rows.model, s, rows.x, rows.target, limit=1.001 * s.limit)
    return {
        "radius_certified": proof.radius.clamp(max=s.limit),
        # A hair more, for radii that were themselves rounded.
        "certified_precision": proof.precision_at(s.radius * (1 + OUTWARD)),
    }


def proved(
    model: nn.Module, settings: AuditSettings, x: Tensor, target: Tensor, *, limit: float
) -> Certificate:
    """A certificate in the region: radii are in its own units, up to the limit."""
    explainer = settings.explainer
    if explainer.reduce == "abs_sum" and x.ndim == 4 and x.shape[1] == 1:
        explainer = replace(explainer, reduce="abs")  # a sum over one channel
    # Branch and bound is most of a proof's work, and adds little to it in few seconds.
    splits = 0 if settings.budget == "fast" else None
    certifier = IntervalCertifier(region=settings.ball, limit=limit, splits=splits)
    with undisturbed(model):
        return certifier(model, explainer, x, k=settings.k, target=target.to(x.device))


def share_proved(columns: Columns, settings: AuditSettings) -> Estimate:
    """Rows proved at the radius; one without a certificate is none whose certificate fails."""
    if settings.moves is not None:
        precision = columns.get("certified_precision", torch.empty(0))
        return share_of(precision[~precision.isnan()] >= 1, settings.level)
    radius = columns.get("radius_certified")
    if radius is None:
        return UNKNOWN
    return share_of(radius[~radius.isnan()] >= settings.radius, settings.level)


CERTIFIED = Measure(
    "certified",
    certified,
    {
        FIGURES["certified_share"]: share_proved,
        FIGURES["certified_precision"]: Mean("certified_precision", (0.0, 1.0)),
        FIGURES["radius_certified_median"]: Median("radius_certified"),
    },
    ("radius_certified", "certified_precision", "feasible_points"),
)
