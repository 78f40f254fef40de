"""Which score is proved to stay above which: bounds of all pairs of scores over a ball.

Scores are S = centre + slope . e + N (U - centre of U) -+ rest. With U within its spread,

    s_i S_i - s_j S_j >= s_i centre_i - s_j centre_j - r ||s_i slope_i - s_j slope_j||
                         - |s_i N_i - s_j N_j| . spread - rest_i - rest_j

for each sign s_j, and the same with U's interval, which has no slope. The better of the two counts.
What two scores have in common cancels. Symbols are a size more to be lost; but those that are
products of linear functions of e make, with what is linear, one quadratic function of e, whose
least value is taken where nothing else proves the border of the top k.
"""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Norm
from r2et.certify.bounds.score_bounds import ScoreBounds
from r2et.certify.bounds.score_slopes import TABLE_NUMBERS
from r2et.certify.bounds.symbol_slopes import SymbolSlopes


class PairwiseBounds:
    """Bounds of s_i S_i - s_j S_j for pairs of scores, over a batch's balls."""

    def __init__(self, scores: ScoreBounds, radius: Tensor, norm: Norm, signed: bool) -> None:
        self.signed, self.noise, self.centres = signed, scores.noise, scores.centres
        self.radius, self.matrix, self.spreads = radius, scores.matrix, scores.spreads
        self.rest = torch.zeros_like(self.noise) if scores.rest is None else scores.rest
        self.slopes = scores.slopes(norm)
        size = self.matrix.abs()
        self.own = [_product(size, part) + self.rest for part in self.spreads]
        self.symbols: SymbolSlopes | None = None
        if scores.shared is not None:
            along = scores.shared @ self.matrix.transpose(-1, -2)
            dense = self.slopes[0].dense
            self.symbols = SymbolSlopes(along, dense, scores.products, radius, norm)
        ends: list[tuple[Tensor, Tensor]] = []
        for centre, wide, slope in zip(self.centres, self.own, self.slopes, strict=True):
            reach = wide + self.noise
            if slope is not None:
                reach = reach + radius[:, None] * slope.norms
            if self.symbols is not None and not ends:  # of the first way
                reach = reach + self.symbols.sizes()
            ends.append((centre - reach, centre + reach))
        low, high = torch.maximum(ends[0][0], ends[1][0]), torch.minimum(ends[0][1], ends[1][1])
        # Both hold, so they meet; rounding must not turn a point inside out.
        self.ends = torch.minimum(low, high), torch.maximum(low, high)

    def interval(self) -> tuple[Tensor, Tensor]:
        """(B, C) each: what the scores, with signs, lie between."""
        return self.ends

    def gaps(self, side: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """(B, p, q) lower bounds of the score of i (B, p) above that of j (B, q).

        side: (B, C) signs, of which any is right: |S_i| is no less than s_i S_i.
        """
        every = self._gaps(side, i)
        return every.gather(2, j[:, None].expand(-1, i.shape[1], -1))

    def border(self, top: Tensor, side: Tensor) -> Tensor:
        """(B,) lower bound of the smallest gap between the top k, (B, C) bool, and the rest."""
        k = int(top[0].sum())
        i = top.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :k]
        gaps = self._gaps(side, i, wanted=~top)
        return gaps.masked_fill(top[:, None], torch.inf).flatten(1).amin(1)

    def above(self, side: Tensor, least: Tensor) -> Tensor:
        """(B, C, C) bool: score i is proved to stay above score j, by more than least (B,)."""
        every = torch.arange(side.shape[1], device=side.device).expand(len(side), -1)
        return self._gaps(side, every) > least[:, None, None]

    def _gaps(self, side: Tensor, i: Tensor, wanted: Tensor | None = None) -> Tensor:
        """(B, p, C) the same of i (B, p) above every score.

        wanted: (B, C) bool, the scores whose border is in question, if one is.
        """
        own = torch.ones_like(i, dtype=side.dtype) if self.signed else side.gather(1, i)
        moves = [None if slope is None else slope.apart(i) for slope in self.slopes]
        shared = None if self.symbols is None else self.symbols.apart(i)
        noise = self.noise.gather(1, i)[..., None] + self.noise[:, None]
        gaps: list[Tensor] = []
        linear: list[Tensor] = []
        for turn, sign in enumerate((1.0,) if self.signed else (1.0, -1.0)):
            ways = []
            for way, loss in enumerate(self._losses(i, sign)):
                centre, move = self.centres[way], moves[way]
                gap = (own * centre.gather(1, i))[..., None] - (sign * own)[..., None] * centre[
                    :, None
                ]
                gap -= loss
                if move is not None:
                    gap -= self.radius[:, None, None] * move[turn]
                if shared is not None and way == 0:
                    gap -= shared[turn]
                ways.append(gap - noise)
            gaps.append(torch.maximum(ways[0], ways[1]))
            linear.append(ways[0])
        if self.symbols is not None:
            self.symbols.look_closer(gaps, linear, own, i, wanted=wanted)
        return gaps[0] if self.signed else torch.minimum(*gaps)

    def _losses(self, i: Tensor, sign: float) -> list[Tensor]:
        """|N_i - sign N_j| . spread and the rest of both, for either spread: (B, p, C) each."""
        if i.shape[1] * self.matrix.shape[-2] * self.matrix.shape[-1] > TABLE_NUMBERS:
            return [part.gather(1, i)[..., None] + part[:, None] for part in self.own]
        both = torch.stack(self.spreads, 2)  # (B, H, 2)
        # One score at a time: all pairs of all rows would be many.
        lines = [self._apart(place, sign) @ both for place in i.T]
        every = torch.stack(lines, 1)  # (B, p, C, 2)
        rest = self.rest.gather(1, i)[..., None] + self.rest[:, None]
        return [every[..., way] + rest for way in (0, 1)]

    def _apart(self, place: Tensor, sign: float) -> Tensor:
        """(B, C, H) |N_i - sign N_j| for a score i of each row (B,), all j; (1, C, H) if one i."""
        matrix = self.matrix
        if matrix.ndim == 3:
            mine = matrix[torch.arange(len(place), device=place.device), place]
        else:
            mine = matrix[place[:1] if place.stride(0) == 0 else place]
        return torch.sub(mine[:, None], matrix, alpha=sign).abs_()


def _product(matrix: Tensor, v: Tensor) -> Tensor:
    """N v of (B, H), N (C, H) for all rows or (B, C, H): (B, C)."""
    return v @ matrix.T if matrix.ndim == 2 else torch.einsum("bch,bh->bc", matrix, v)
