"""At most c columns of labels switched to another label: counted, listed, drawn, chosen exactly.

A switch is an offset: 0 stays, o in 1..size-1 is the o-th label after x's own, round and round. So
the same offsets mean a change of as many columns in every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import torch
from torch import Tensor

from r2et.region.table_layout import LabelColumn


def ways(sizes: Sequence[int], most: int) -> list[list[int]]:
    """ways[g][r]: how many ways to switch at most r of the columns g, g+1, ..., none included."""
    table = [[1] * (most + 1)]
    for size in reversed(sizes):
        after = table[0]
        here = [after[r] + (size - 1) * (after[r - 1] if r else 0) for r in range(most + 1)]
        table.insert(0, here)
    return table


def patterns(sizes: Sequence[int], most: int) -> Tensor:
    """All offsets (ways, G) with at most `most` columns switched; the first switches none."""
    rows = []
    for count in range(most + 1):
        for switched in combinations(range(len(sizes)), count):
            for offsets in product(*(range(1, sizes[g]) for g in switched)):
                row = [0] * len(sizes)
                for g, offset in zip(switched, offsets, strict=True):
                    row[g] = offset
                rows.append(row)
    return torch.tensor(rows, dtype=torch.long).view(len(rows), len(sizes))


def drawn(sizes: Sequence[int], most: int, share: Tensor) -> Tensor:
    """Offsets (m, B, G), uniform over all patterns if shares (m, B, G) are uniform in [0, 1).

    Column by column, the chance to stay is the share of the patterns left in which it does; what
    the share then lies above that chance, stretched to 0..1, says which label.
    """
    table = ways(sizes, most)
    left = torch.full(share.shape[:-1], most)
    offsets = torch.zeros(share.shape, dtype=torch.long)
    for g, size in enumerate(sizes):
        chances = [table[g + 1][r] / table[g][r] for r in range(most + 1)]
        stay = torch.tensor(chances, dtype=torch.float64)[left]
        above = share[..., g] - stay
        label = (above / (1 - stay).clamp(min=1e-300) * (size - 1)).long().clamp(0, size - 2) + 1
        offsets[..., g] = torch.where(above >= 0, label, 0)
        left = left - (above >= 0).long()
    return offsets


class LabelSwitches:
    """G columns of labels of B rows, of which at most `most` may be switched."""

    def __init__(self, choices: Sequence[LabelColumn], most: int, flat: Tensor) -> None:
        self.most = min(most, len(choices))
        self.sizes = [choice.size for choice in choices]
        self.spans = [choice.features for choice in choices]
        self.features = [feature for span in self.spans for feature in span]
        device = flat.device
        self.first = torch.tensor([s[0] for s in self.spans], dtype=torch.long, device=device)
        single = [len(span) == 1 for span in self.spans]
        self.single = torch.tensor(single, dtype=torch.bool, device=device)
        self.state = self._labels(flat)

    def write(self, out: Tensor, offsets: Tensor) -> Tensor:
        """Puts the labels that offsets (m, B, G) lead to into out (m, B, n), which it returns."""
        sizes = torch.tensor(self.sizes, dtype=torch.long, device=out.device)
        label = (self.state + offsets.to(out.device)) % sizes
        out[..., self.features] = 0.0
        where = self.first + torch.where(self.single, 0, label)
        value = torch.where(self.single, label, 1).to(out)
        return out.scatter(-1, where.expand_as(label), value)

    def offsets(self, points: Tensor) -> Tensor:
        """(B, G) what leads from x to points (B, n) of valid labels."""
        sizes = torch.tensor(self.sizes, dtype=torch.long, device=points.device)
        return (self._labels(points) - self.state) % sizes

    def nearest(self, wanted: Tensor) -> Tensor:
        """Offsets (B, G) to the labels nearest to wanted (B, n), by the region's distance.

        The distance is a sum over columns, so each column's best switch gains what it gains
        whatever the others do, and the `most` largest positive gains are the best there is.
        """
        gains, best = [], []
        for g, span in enumerate(self.spans):
            here = wanted[:, span].double()
            worth = here.abs() - (here - 1).abs()  # of a feature being 1 rather than 0
            worth = torch.cat([torch.zeros_like(worth), worth], 1) if len(span) == 1 else worth / 2
            top = worth.max(1)
            gains.append(top.values - worth.gather(1, self.state[:, g : g + 1])[:, 0])
            best.append((top.indices - self.state[:, g]) % self.sizes[g])
        if not gains:
            return self.state
        gain, offset = torch.stack(gains, 1), torch.stack(best, 1)
        place = gain.sort(dim=1, descending=True, stable=True).indices.argsort(dim=1)
        return torch.where((place < self.most) & (gain > 0), offset, 0)

    def swaps(self, points: Tensor, g: int, slot: int) -> Tensor:
        """Offsets (sizes[g], B, G) that give column g each label, all else as at points (B, n).

        Where no switch is left for it, the slot-th of the switched columns goes back to x's label.
        """
        now = self.offsets(points)
        now[:, g] = 0
        switched = now != 0
        full = switched.sum(1, keepdim=True) >= self.most
        back = switched & full & (switched.cumsum(1) == slot + 1)
        now = torch.where(back, 0, now).expand(self.sizes[g], -1, -1).clone()
        now[..., g] = torch.arange(self.sizes[g], device=points.device)[:, None]
        return now

    def _labels(self, flat: Tensor) -> Tensor:
        """(B, G) the number of each column's label."""
        labels = [
            (flat[:, s[0]] > 0.5).long() if len(s) == 1 else flat[:, s].argmax(1)
            for s in self.spans
        ]
        return torch.stack(labels, 1) if labels else flat[:, :0].long()
