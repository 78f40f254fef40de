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
from r2et.certify.training_pairs import Candidates, PairChoice


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

    def lowest(self, weight: Tensor, box: Box, choice: PairChoice) -> tuple[Tensor, Tensor]:
        """(B, P) bounds with a graph, and (B, P, 2) columns, of P pairs with low bounds.

        weight: W (units, n). box: of u (B, units).
        """
        top, side = choice.top, choice.side
        matrix = torch.einsum("bn,hn,nc->bch", self.factor, weight, self.member)
        spread = torch.zeros_like(box.centre) if box.spread is None else box.spread
        middle, wide = box.centre @ weight, spread @ weight.abs()
        moved = self.reach * middle
        change = (moved.square() if self.norm == "l2" else moved.abs()) @ self.member
        rest = (self.reach * wide) @ self.member
        with torch.no_grad():
            i, j, sign = self._worst((matrix, box.centre, spread, change, rest), choice, top, side)
        own = side.gather(1, i)
        mine, rival = (_rows(matrix, place) for place in (i, j))
        apart = own[..., None] * mine - sign[..., None] * rival
        low = (apart * box.centre[:, None]).sum(2) - (apart.abs() * spread[:, None]).sum(2)
        low = low - self._joint(change.gather(1, i) + change.gather(1, j))
        return low - rest.gather(1, i) - rest.gather(1, j), torch.stack([i, j], 2)

    def _joint(self, change: Tensor) -> Tensor:
        # Kept above 0, where the root has no slope.
        return change.clamp(min=1e-30).sqrt() if self.norm == "l2" else change

    def _worst(
        self, parts: tuple[Tensor, ...], choice: PairChoice, top: Tensor, side: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, P) each: the columns of pairs with low bounds, and the rival's sign."""
        matrix, middle, spread, change, rest = parts
        centre = (matrix @ middle[..., None])[..., 0]
        wide = (matrix.abs() @ spread[..., None])[..., 0] + self._joint(change) + rest
        i, j = choice.candidates(centre, wide, side, top)
        own, units = side.gather(1, i), spread[:, None]
        joint = self._joint(change.gather(1, i)[:, :, None] + change.gather(1, j)[:, None])
        candidates = Candidates(
            i,
            j,
            own * centre.gather(1, i),
            centre.gather(1, j),
            (own[..., None] * units) * _rows(matrix, i),
            units * _rows(matrix, j),
            joint + rest.gather(1, i)[:, :, None] + rest.gather(1, j)[:, None],
        )
        return candidates.lowest(choice.pairs, choice.signed)


def _rows(matrix: Tensor, place: Tensor) -> Tensor:
    """(B, P, H) rows of matrices (B, C, H)."""
    return matrix.gather(1, place[..., None].expand(-1, -1, matrix.shape[2]))
