"""How scores move with symbols: what pairs of them lose, and what products and slope share."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Norm
from r2et.certify.bounds.quadratic_bounds import gained_by_products
from r2et.certify.bounds.symbols import Products


class SymbolSlopes:
    """G, the slopes of scores along symbols: (B, symbols, C).

    slope: G.
    along: (B, n, C) the slopes by the change of x.
    products: the symbols that are products of linear functions of it, if any.
    """

    def __init__(
        self, slope: Tensor, along: Tensor, products: Products | None, radius: Tensor, norm: Norm
    ) -> None:
        self.slope, self.along, self.products = slope, along, products
        self.radius, self.norm = radius, norm
        # A hair more, for what sums of this length lose to rounding.
        self.hair = 1 + 1e-13 + 1e-15 * slope.shape[1]

    def sizes(self) -> Tensor:
        """(B, C) how far symbols move each score."""
        return self.slope.abs().sum(1) * self.hair

    def apart(self, i: Tensor) -> tuple[Tensor, Tensor]:
        """(B, p, C) each: how far they move S_i - S_j, and S_i + S_j; i (B, p), all j."""
        return self._distances(self.slope, i)

    def products_apart(self, i: Tensor) -> tuple[Tensor, Tensor]:
        """The same by products alone."""
        assert self.products is not None
        return self._distances(self.slope[:, self.products.place], i)

    def _distances(self, slope: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        by_score = slope.transpose(1, 2).contiguous()
        mine = by_score.gather(1, i[..., None].expand(-1, -1, by_score.shape[2]))
        near, far = (torch.cdist(mine, sign * by_score, p=1.0) for sign in (1.0, -1.0))
        return near * self.hair, far * self.hair

    def look_closer(
        self,
        gaps: list[Tensor],
        linear: list[Tensor],
        side: Tensor,
        i: Tensor,
        *,
        wanted: Tensor | None,
    ) -> None:
        """Raise gaps (B, p, C), one for each sign of S_j, that are not above 0.

        linear: the same by linear bounds alone. side: (B, p) signs of the S_i.
        wanted: (B, C) bool, which j count: where one of these cannot be raised above 0 the row is
        lost, and its others are let be; None for all j, of which none is raised.
        """
        if self.products is None or wanted is None:
            return
        most = self.products_apart(i)
        below = [(gap <= 0) & wanted[:, None] for gap in gaps]
        # A symbol is at least -1 and at most 1.
        hopeless = [b & ~(v + 2 * m > 0) for b, v, m in zip(below, linear, most, strict=False)]
        lost = torch.stack(hopeless).any(0).flatten(1).any(1)
        for turn, (gap, value) in enumerate(zip(gaps, linear, strict=True)):
            row, p, j = (below[turn] & ~lost[:, None, None]).nonzero(as_tuple=True)
            if not len(row):
                continue
            whole = torch.cat([self.along, self.slope], 1).transpose(1, 2)
            slope = whole[row, i[row, p]] - (1.0, -1.0)[turn] * whole[row, j]
            slope = side[row, p][:, None] * slope
            gained = gained_by_products(slope, self.products, row, self.radius, self.norm)
            gap[row, p, j] = torch.maximum(gap[row, p, j], value[row, p, j] + gained)
