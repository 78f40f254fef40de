"""The papers' protocol of selection (B.1.2): accurate enough first, then the most stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SLACK = 0.01  # how far below that of the model compared with a validation AUC may lie


def reaches(auc: float | None, threshold: float | None) -> bool:
    """Whether a validation AUC is high enough; one of a single class, which is None, always is."""
    return auc is None or threshold is None or auc >= threshold


def best_candidate(
    candidates: Sequence[Mapping[str, Any]], preferred: Sequence[bool] | None = None
) -> tuple[int, bool]:
    """Place of the choice among entries with auc, precision and met; and whether any is met.

    Of those that reach the threshold the highest precision, where none does the highest AUC; ties
    go to the first. preferred: those to take before others that reach it too.
    """
    met = [i for i, entry in enumerate(candidates) if entry["met"]]
    if not met:
        return max(range(len(candidates)), key=lambda i: candidates[i]["auc"]), False
    first = [i for i in met if preferred is None or preferred[i]]
    return max(first or met, key=lambda i: candidates[i]["precision"]), True
