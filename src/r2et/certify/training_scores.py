"""Contributions and columns over a ball, for training: pairs that one matrix for each row tells.

S_c = sum over the features i of column c of (f_i + d_i) W_i . u, f = x - baseline. Over the box of
u = centre -+ spread, with m_i = W_i . centre, and N_c the sum of the f_i W_i,

    s_a S_a - s_b S_b >= (s_a N_a - s_b N_b) . centre - |s_a N_a - s_b N_b| . spread
                         - (largest change of the sum of d_i m_i) - sum of |d_i| |W_i| . spread

columns have no feature in common, so that the change of d meets each once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Box, Norm


class Contributions(NamedTuple):
    """What is needed to bound contributions by column.

    factor: (B, n) x - baseline.
    reach: (B, n) or (1, n) how far each feature may move.
    norm: of the change in units of reach.
    member: (n, C) 1 where a feature is of a column.
    """

    factor: Tensor
    reach: Tensor
    norm: Norm
    member: Tensor

    def at_x(self, gradient: Tensor) -> Tensor:
        """(B, C) scores at x."""
        return (self.factor * gradient) @ self.member

    def box(self, gradient: Box) -> Box:
        """(B, C) the box of the scores over that of the gradient (B, ...)."""
        centre = gradient.centre.flatten(1)
        wide = torch.zeros_like(centre) if gradient.spread is None else gradient.spread.flatten(1)
        spread = self.factor.abs() * wide + self.reach * (centre.abs() + wide)
        return Box(self.at_x(centre), spread @ self.member)

    def lowest(
        self, weight: Tensor, box: Box, top: Tensor, side: Tensor, count: int, signed: bool
    ) -> tuple[Tensor, Tensor]:
        """(B, P) bounds with a graph, and (B, P, 2) columns, of the P pairs with the lowest.

        weight: W (units, n). box: of u (B, units). top: (B, C) bool. side: (B, C) signs.
        """
        matrix = torch.einsum("bn,hn,nc->bch", self.factor, weight, self.member)
        spread = torch.zeros_like(box.centre) if box.spread is None else box.spread
        middle, wide = box.centre @ weight, spread @ weight.abs()
        moved = self.reach * middle
        change = (moved.square() if self.norm == "l2" else moved.abs()) @ self.member
        parts = (matrix, box.centre, spread, change, (self.reach * wide) @ self.member)
        with torch.no_grad():
            i, j, sign = self._worst(parts, top, side, count, signed)
        own = side.gather(1, i)
        mine, rival = (_rows(matrix, place) for place in (i, j))
        apart = own[..., None] * mine - sign[..., None] * rival
        low = (apart * box.centre[:, None]).sum(2) - (apart.abs() * spread[:, None]).sum(2)
        low = low - self._joint(change.gather(1, i) + change.gather(1, j))
        return low - parts[4].gather(1, i) - parts[4].gather(1, j), torch.stack([i, j], 2)

    def _joint(self, change: Tensor) -> Tensor:
        # Kept above 0, where the root has no slope.
        return change.clamp(min=1e-30).sqrt() if self.norm == "l2" else change

    def _worst(
        self, parts: tuple[Tensor, ...], top: Tensor, side: Tensor, count: int, signed: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, P) each: the columns of the pairs with the lowest bounds, and the rival's sign."""
        matrix, centre, spread, change, rest = parts
        columns = matrix.shape[1]
        tables = []
        for sign in (1.0,) if signed else (1.0, -1.0):
            lines = []
            for a in range(columns):  # one column at a time: all pairs of all rows would be many
                own = side[:, a, None]
                apart = own[..., None] * matrix[:, a : a + 1] - sign * matrix
                low = (apart @ centre[..., None])[..., 0] - (apart.abs() @ spread[..., None])[
                    ..., 0
                ]
                joint = self._joint(change[:, a, None] + change)
                lines.append(low - joint - rest[:, a, None] - rest)
            tables.append(torch.stack(lines, 1))
        inside = top[:, :, None] & ~top[:, None]
        table = torch.stack(tables, 1).masked_fill(~inside[:, None], torch.inf).flatten(1)
        most = int(inside[0].sum()) * len(tables)
        place = table.topk(min(count, most), dim=1, largest=False).indices
        rival = 1.0 - 2.0 * (place >= columns * columns).to(side)
        place = place % (columns * columns)
        return place // columns, place % columns, rival


def _rows(matrix: Tensor, place: Tensor) -> Tensor:
    """(B, P, H) rows of matrices (B, C, H)."""
    return matrix.gather(1, place[..., None].expand(-1, -1, matrix.shape[2]))
