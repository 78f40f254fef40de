"""Which pairs of scores training looks at: those whose gaps are proved worst.

Of few features all pairs are bounded (`lowest_of_hands`). Of many that would be too much: each
score alone lies in centre -+ wide; the weakest of the top k by their lower ends, and the strongest
of the others by their upper ends, are few and had in O(n), and only between these are pairs bounded
together, where what two scores have in common cancels (`Candidates`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from r2et.rank.order import mask_of


class PairChoice(NamedTuple):
    """Which pairs are to be bounded: `pairs` of those of the top k and the others."""

    scores: Tensor  # (B, n) signed, at x
    k: int
    pairs: int
    signed: bool
    given: Tensor | None  # (B, k)

    @property
    def top(self) -> Tensor:
        """(B, n) bool."""
        size = self.scores if self.signed else self.scores.abs()
        if self.given is None:
            return mask_of(size, self.k)  # of equal scores the first, as in every ranking
        return torch.zeros_like(size, dtype=torch.bool).scatter(1, self.given, True)

    @property
    def side(self) -> Tensor:
        """(B, n) signs; all 1 where they count themselves."""
        if self.signed:
            return torch.ones_like(self.scores)
        return 1.0 - 2.0 * (self.scores < 0).to(self.scores)

    def candidates(
        self, centre: Tensor, wide: Tensor, side: Tensor, top: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(B, a) the weakest of the top k and (B, b) the strongest others, each in this order."""
        size = centre if self.signed else centre.abs()
        others = top.shape[1] - self.k
        low = (side * centre - wide).masked_fill(~top, torch.inf)
        high = (size + wide).masked_fill(top, -torch.inf)
        i = low.topk(min(self.pairs, self.k), dim=1, largest=False).indices
        return i, high.topk(min(self.pairs, others), dim=1).indices


class Candidates(NamedTuple):
    """Scores i (B, a) and j (B, b) with all that is needed to bound pairs of them.

    own: (B, a) s_i times the centres of i. rival: (B, b) the centres of j.
    mine, theirs: (B, a, H) s_i N_i spread, and (B, b, H) N_j spread: the spread of a difference is
        the sum of the sizes of their difference.
    rest: (B, a, b) what else a gap loses; None for 0.
    """

    i: Tensor
    j: Tensor
    own: Tensor
    rival: Tensor
    mine: Tensor
    theirs: Tensor
    rest: Tensor | None = None

    def lowest(self, count: int, signed: bool) -> tuple[Tensor, Tensor, Tensor]:
        """(B, P) each: features i and j, and the rival's sign, of the pairs with low bounds.

        Each of the strongest others with the one of the top k that it is closest to; where these
        are fewer than wanted, the pairs with the lowest bounds.
        """
        own, rival = self.own[:, :, None], self.rival[:, None]
        low = own - rival - torch.cdist(self.mine, self.theirs, p=1.0)
        opposite = torch.zeros_like(low, dtype=torch.bool)
        if not signed:
            other = own + rival - torch.cdist(self.mine, -self.theirs, p=1.0)
            opposite, low = other < low, torch.minimum(low, other)
        low = low if self.rest is None else low - self.rest
        rows, many, others = low.shape
        flat, opposite = low.flatten(1), opposite.flatten(1)
        if many * others <= count:
            place = torch.arange(many * others, device=low.device).expand(rows, -1)
        elif others >= count:
            place = low.argmin(1) * others + torch.arange(others, device=low.device)
        else:
            place = flat.topk(count, dim=1, largest=False).indices
        sign = 1.0 - 2.0 * opposite.gather(1, place).to(low)
        place_i = place.div(others, rounding_mode="floor")
        return self.i.gather(1, place_i), self.j.gather(1, place - place_i * others), sign


def lowest_of_hands(
    weight: Tensor, centre: Tensor, spread: Tensor, choice: PairChoice
) -> tuple[Tensor, Tensor, Tensor]:
    """Of all pairs, dealt out into hands, the one of each hand with the lowest bound.

    weight: W (H, n), the same for all rows. centre, spread: (B, H). Returns the features i and j
    and the rival's sign, each (B, P). The pairs of different hands have little in common, which the
    lowest of all have: trained on those, fewer rows are proved in the end.
    """
    top, side, n = choice.top, choice.side, weight.shape[1]
    p, q = torch.triu_indices(n, n, offset=1, device=weight.device)
    # Features first: a pair is then a copy of two contiguous rows.
    columns, signs = weight.T, side.T.contiguous()
    value = signs * (columns @ centre.T)
    inside = top.T.contiguous()
    first, second = inside[p], inside[q]
    a, b = value[p], value[q]
    own, other = torch.where(first, a, b), torch.where(first, b, a)
    other *= signs[p] * signs[q]
    own.masked_fill_(first == second, torch.inf)
    count, most = min(choice.pairs, len(p)), len(p) * (1 if choice.signed else 2)
    size = -(-most // count)
    low = value.new_full((size * count, len(top)), torch.inf)
    for turn, sign in enumerate((1.0,) if choice.signed else (1.0, -1.0)):
        gap = low[turn * len(p) : (turn + 1) * len(p)]
        torch.sub(own, other, alpha=sign, out=gap)
        gap -= torch.sub(columns[p], columns[q], alpha=sign).abs_() @ spread.T
    worst, place = low.T.contiguous().view(-1, count, size).min(2)
    place = place + size * torch.arange(count, device=place.device)
    # A hand without a pair of a top and another feature takes the lowest of all.
    lowest = place.gather(1, worst.argmin(1, keepdim=True))
    place = torch.where(worst.isinf(), lowest, place)
    rival = 1.0 - 2.0 * (place >= len(p)).to(value)
    place = place % len(p)
    i, j = p[place], q[place]
    swap = ~top.gather(1, i)
    i, j = torch.where(swap, j, i), torch.where(swap, i, j)
    return i, j, rival * side.gather(1, i)


def width_apart(
    columns: Tensor, spread: Tensor, i: Tensor, j: Tensor, own: Tensor, sign: Tensor
) -> Tensor:
    """(B, P) |s_i W_i - s_j W_j| . spread, differentiable in columns W (n, H) and spread (B, H).

    i, j: (B, P). own, sign: (B, P) the signs s_i and s_j.
    """
    width: Tensor = _WidthApart.apply(columns, spread, i, j, own, sign)  # type: ignore[no-untyped-call]
    return width


class _WidthApart(torch.autograd.Function):
    """Gathered, subtracted and summed in one step: a tenth of the operations of a graph of them."""

    @staticmethod
    def forward(
        ctx: Any, columns: Tensor, spread: Tensor, i: Tensor, j: Tensor, own: Tensor, sign: Tensor
    ) -> Tensor:
        apart = own[..., None] * F.embedding(i, columns)
        apart.addcmul_(sign[..., None], F.embedding(j, columns), value=-1.0)
        ctx.save_for_backward(apart, spread, i, j, own, sign)
        ctx.count = len(columns)
        return (apart.abs() * spread[:, None]).sum(2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        apart, spread, i, j, own, sign = ctx.saved_tensors
        by_spread = (apart.abs() * gradient[..., None]).sum(1)
        towards = apart.sign().mul_(spread[:, None])
        both = torch.stack([own, -sign]).mul_(gradient)[..., None] * towards  # (2, B, P, H)
        by_columns = spread.new_zeros(ctx.count, spread.shape[1])
        by_columns.index_add_(0, torch.stack([i, j]).flatten(), both.flatten(0, 2))
        return by_columns, by_spread, None, None, None, None
