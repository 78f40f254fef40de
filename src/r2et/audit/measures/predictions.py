"""What is predicted, how surely, how well, and whether everybody gets the same reasons."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.audit.decision import own_logits
from r2et.audit.measures.base import AuditedRows, Measure
from r2et.audit.measures.ties import border_ties, count_of_ties
from r2et.audit.settings import AuditSettings
from r2et.audit.statistics import Auc, Columns, Estimate
from r2et.audit.subgroups import calibration_error
from r2et.models.output import log_odds
from r2et.rank import ranking
from r2et.results import FIGURES


def clean(rows: AuditedRows) -> Columns:
    """The rows as they are: class, probability, reasons."""
    logits = own_logits(rows.logits, rows.settings.cutoff)
    sure = log_odds(logits.double(), rows.target).sigmoid()
    top = ranking(rows.scores)[:, : rows.settings.k]
    columns = {"target": rows.target, "probability": sure, "top": top, "logits": logits}
    columns |= border_ties(rows.scores, rows.settings.k)
    return columns if rows.chunk.y is None else {**columns, "label": rows.chunk.y}


def distinct(columns: Columns, settings: AuditSettings) -> Estimate:  # noqa: ARG001
    """How many different sets the rows' top k are."""
    return Estimate(top_sets(columns["top"])[0], None, None, len(columns["top"]))


def largest_share(columns: Columns, settings: AuditSettings) -> Estimate:  # noqa: ARG001
    """The share of rows that have the commonest set.

    No interval: resampled rows repeat each other, so that their commonest set is ever larger.
    """
    commonest = top_sets(columns["top"])[1]
    return Estimate(float(commonest.mean()), None, None, len(commonest))


def top_sets(top: Tensor) -> tuple[int, Tensor]:
    """How many different sets the top k (B, k) are, and which rows (B,) have the commonest."""
    sets, which = torch.unique(top.sort(1).values, dim=0, return_inverse=True)
    return len(sets), (which == which.bincount().argmax()).double()


CLEAN = Measure(
    "clean",
    clean,
    {
        FIGURES["auc_clean"]: Auc("logits"),
        FIGURES["calibration_error"]: calibration_error,
        FIGURES["ties"]: count_of_ties,
        FIGURES["distinct_top_k"]: distinct,
        FIGURES["largest_top_k_share"]: largest_share,
    },
    ("index", "target", "label", "probability", "top", "tied"),
)
