"""Rows at whose border of the top k nothing but the order of features decides."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.audit.settings import AuditSettings
from r2et.audit.statistics import UNKNOWN, Columns, Estimate
from r2et.wording import rows_text

ROUNDING = 32  # units in the last place of a row's largest score


def border_ties(scores: Tensor, k: int) -> Columns:
    """tied (B,): scores k and k + 1 of (B, n) are equal, or within rounding; flat (B,): all are."""
    ordered = scores.detach().cpu().sort(1, descending=True).values
    slack = ROUNDING * torch.finfo(ordered.dtype).eps * ordered.abs().amax(1)
    tied = ordered[:, k - 1] - ordered[:, k] <= slack
    return {"tied": tied, "flat": ordered[:, 0] - ordered[:, -1] <= slack}


def count_of_ties(columns: Columns, settings: AuditSettings) -> Estimate:  # noqa: ARG001
    """How many rows are tied."""
    if "tied" not in columns:
        return UNKNOWN
    return Estimate(_number(columns["tied"]), None, None, len(columns["tied"]))


def tie_notes(columns: Columns, settings: AuditSettings) -> list[str]:
    """What a reader must know where rows are tied; empty where none is."""
    tied, flat = (_number(columns.get(name, torch.empty(0))) for name in ("tied", "flat"))
    if not tied:
        return []
    rows, k = len(columns["tied"]), settings.k
    note = (
        f"ties at the border decide for {tied} of {rows_text(rows)}: their scores of rank {k} and"
        f" {k + 1} are equal or differ by rounding alone, so that the order of the features and not"
        " the model chooses between them; the smallest change breaks such a row, and no proof can"
        " hold it"
    )
    if flat:
        note += f". Of these, {rows_text(flat)} have the same score for every feature"
    return [f"{note}."]


def _number(column: Tensor) -> int:
    """How many rows of (B,) are true; NaN, of rows that lack the column, is not."""
    return int((column == 1).sum())
