"""Which reasons are proved to stay, for every change of a region."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify import IntervalCertifier
from r2et.certify.base import ScoreIntervals
from r2et.errors import InputError
from r2et.explain import Explainer
from r2et.models.output import undisturbed
from r2et.reason.columns import reason_sets
from r2et.reason.decided_rows import DecidedRows
from r2et.region.base import Region

TIMES = (1.0, 2.0, 4.0)  # the region, one after another as long as something is proved


class RowProofs(NamedTuple):
    """What is proved of the reasons of B rows of C columns.

    whole: (B,) bool, exactly these stay the reasons.
    stays: (B, C) bool, this one stays a reason.
    radius: (B, C) float64, up to how many times the region it does; 0 where it is not proved.
    notes: what could not be proved, and why.
    """

    whole: Tensor
    stays: Tensor
    radius: Tensor
    notes: tuple[str, ...] = ()

    @staticmethod
    def none(rows: int, columns: int) -> RowProofs:
        """Nothing is proved."""
        stays = torch.zeros(rows, columns, dtype=torch.bool)
        return RowProofs(stays.any(1), stays, stays.double())

    def placed(self, rows: Tensor, own: RowProofs) -> RowProofs:
        """This, with what is known of some rows in their places."""
        whole, stays, radius = self.whole.clone(), self.stays.clone(), self.radius.clone()
        whole[rows], stays[rows], radius[rows] = own.whole, own.stays, own.radius
        return RowProofs(whole, stays, radius, tuple(dict.fromkeys((*self.notes, *own.notes))))


def prove(
    rows: DecidedRows, method: Explainer, allowed: Tensor, k: int, region: Region
) -> RowProofs:
    """Bound the contributions over the region, and twice and four times it.

    A reason stays one where its contribution stays above 0 and all but k - 1 of the others stay
    below it. Where there are fewer reasons than k, the others must also stay at 0 or below.
    """
    mine = reason_sets(method(rows.decided, rows.x, rows.target), allowed, k)
    whole, stays, radius, _ = RowProofs.none(len(rows), len(rows.columns))
    open_rows = torch.arange(len(rows))
    for times in TIMES:
        certifier = IntervalCertifier(region=region if times == 1 else region.scaled(times))
        part = rows.some(open_rows)
        try:
            with undisturbed(part.decided):
                bounds = certifier.score_intervals(part.decided, method, part.x, target=part.target)
        except InputError as error:
            if times == 1:
                return RowProofs(whole, stays, radius, (f"not proved: {error}",))
            break  # a region so many times as large is none
        kept = staying(bounds, mine[open_rows], allowed, k)
        radius[open_rows] = torch.where(kept, times, radius[open_rows])
        if times == 1:
            stays = kept
            whole = unchanged(bounds, mine, kept, allowed, k)
        open_rows = open_rows[kept.any(1)]
        if not len(open_rows):
            break
    return RowProofs(whole, stays, radius)


def staying(bounds: ScoreIntervals, mine: Tensor, allowed: Tensor, k: int) -> Tensor:
    """(B, C) bool: reasons that are proved to stay among them."""
    rivals = (~bounds.above & allowed).sum(2) - 1  # that may come above it; itself is none
    return mine & (bounds.low > 0) & (rivals < k)


def unchanged(
    bounds: ScoreIntervals, mine: Tensor, kept: Tensor, allowed: Tensor, k: int
) -> Tensor:
    """(B,) bool: all reasons stay, and no other comes."""
    others = allowed & ~mine
    full = mine.sum(1) == k
    return (kept | ~mine).all(1) & (full | ((bounds.high <= 0) | ~others).all(1))
