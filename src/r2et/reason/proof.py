"""Which reasons are proved to stay, for every change of a region."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


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
