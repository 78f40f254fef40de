"""The reference population that contributions are measured from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from r2et.errors import require
from r2et.models.output import batched_logits, classes, log_odds
from r2et.reason.columns import WHERE

NAMED = ("mean", "accepted", "border")
LARGEST = 1e9  # of a feature of a baseline
BORDER = 0.1  # of the rows are nearest to the cut-off
EXPECTED = "'mean', 'accepted', 'border', a row, or one number for all features"


@dataclass(frozen=True)
class Baseline:
    """A reference row (n,), and whom it stands for."""

    row: Tensor
    words: str


def baseline_of(
    choice: Any,
    decided: nn.Module,
    width: int,
    *,
    toward: int | None,
    mean: Tensor | None,
    reference: Tensor | None,
) -> Baseline:
    """The reference row that is asked for.

    choice: "mean" of the training rows, or of `reference` rows; "accepted", of reference rows that
    are decided otherwise than `toward`; "border", of the tenth of them nearest to the decision's
    edge; or a row of its own.
    decided: the model, which decides by its largest logit.
    """
    if not isinstance(choice, str):
        return Baseline(_row(choice, width), "the row given")
    require(choice in NAMED, WHERE, "baseline", EXPECTED, choice)
    if choice == "mean" and mean is not None:
        return Baseline(mean, "the average training row")
    expected = f"given as a row, or with `reference` rows to take {choice!r} of"
    require(reference is not None, WHERE, "baseline", expected, f"{choice!r} alone")
    assert reference is not None
    fits = reference.ndim == 2 and reference.shape[1] == width and len(reference) > 0
    require(fits, WHERE, "reference", f"rows of {width} features", reference)
    if choice == "mean":
        return Baseline(reference.double().mean(0), "the average reference row")
    logits = batched_logits(decided, reference, WHERE)
    if choice == "accepted":
        require(toward is not None, WHERE, "toward", "given for the baseline 'accepted'", toward)
        kept = reference[classes(logits) != toward]
        got = f"none of {len(reference)} rows"
        require(len(kept) > 0, WHERE, "baseline", "'accepted' where some rows are", got)
        return Baseline(kept.double().mean(0), "the average row that is decided otherwise")
    own = classes(logits)
    sure = log_odds(logits.double(), own).abs()
    nearest = sure.sort().indices[: max(1, round(BORDER * len(sure)))]
    words = "the average row near the decision's edge"
    return Baseline(reference[nearest].double().mean(0), words)


def _row(given: Any, width: int) -> Tensor:
    try:
        row = torch.as_tensor(given, dtype=torch.float64).detach().cpu().flatten()
    except (TypeError, ValueError, RuntimeError):
        row = torch.full((1,), torch.nan)
    # Beyond this a number means nothing in features from 0 to 1, and squares leave float32.
    finite = bool((row.abs() < LARGEST).all())
    require(finite, WHERE, "baseline", EXPECTED, given)
    require(len(row) in (1, width), WHERE, "baseline", f"a row of {width} features", len(row))
    return row.expand(width).clone()
