"""What the numbers of a table's rows may become: so many steps down or up, or any value between."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from r2et.region.table_layout import NumberColumn

# x in float32 is known up to this, whatever type it was turned into since.
ROUNDING = 2.0**-23


class NumberMoves:
    """M numbers of B rows; all of its results have x's type, and 0 steps means exactly x.

    Values are computed as the schema encodes raw ones, (value - low) / (high - low) in float64, so
    an integer or a day moved here equals, bit for bit, the same one read from a table.
    """

    def __init__(self, numbers: Sequence[NumberColumn], flat: Tensor) -> None:
        def column(name: str) -> Tensor:
            values = [float(getattr(number, name)) for number in numbers]
            return torch.tensor(values, dtype=torch.float64, device=flat.device)

        self.features = [number.feature for number in numbers]
        low, step, reach, integer = (column(name) for name in ("low", "step", "reach", "integer"))
        self.any = step == 0
        self.step = torch.where(self.any, 1.0, step)
        self.span = column("high") - low
        self.start = flat[:, self.features]
        raw = self.start.double() * self.span
        rounded = (low + raw).round() - low
        # x may have been rounded by others too; only an integer is whole all the same.
        whole = (raw - rounded).abs() <= 0.05 * integer + 4 * ROUNDING * self.span
        self.raw = torch.where(whole & (step % 1 == 0) & ~self.any, rounded, raw)
        # An integer that is not whole stands for no real value (a median filled in): it stays.
        fixed = (integer > 0) & ~whole
        for i, number in enumerate(numbers):
            if number.flag is not None:
                fixed[:, i] |= flat[:, number.flag] > 0.5
        slack = (ROUNDING * self.span / self.step).clamp(max=0.125)
        most = torch.where(self.any, 0.0, (reach / self.step).round())
        self.down = torch.minimum(most, (self.raw / self.step + slack).floor())
        self.up = torch.minimum(most, ((self.span - self.raw) / self.step + slack).floor())
        self.down, self.up = (steps.masked_fill(fixed, 0.0) for steps in (self.down, self.up))
        room = (reach / self.span).expand_as(raw).masked_fill(fixed, 0.0)
        self.least = (self.start.double() - room).clamp(min=0).to(flat)
        self.greatest = (self.start.double() + room).clamp(max=1).to(flat)

    @property
    def count(self) -> Tensor:
        """(B, M) how many values each may take; infinity where any is possible."""
        endless = self.any & (self.greatest > self.least)
        return (self.down + self.up + 1).masked_fill(endless, torch.inf)

    def ends(self) -> tuple[Tensor, Tensor]:
        """(B, M) each: the lowest and the highest allowed value."""
        return self._values(-self.down, self.least), self._values(self.up, self.greatest)

    def reach(self) -> Tensor:
        """(B, M) float64: how far from x the farthest allowed value is, exactly."""
        ends = self.ends()
        away = [(end.double() - self.start.double()).abs() for end in ends]
        return torch.maximum(*away)

    def nearest(self, wanted: Tensor) -> Tensor:
        """The allowed value nearest to each of (B, M)."""
        steps = ((wanted.double() * self.span - self.raw) / self.step).round()
        between = torch.minimum(torch.maximum(wanted, self.least), self.greatest)
        return self._values(torch.minimum(torch.maximum(steps, -self.down), self.up), between)

    def drawn(self, share: Tensor) -> Tensor:
        """Values (m, B, M), uniform if the shares (m, B, M) are uniform in [0, 1)."""
        count = self.down + self.up + 1
        steps = torch.minimum((share * count).floor(), count - 1) - self.down
        return self._values(steps, self._between(self.least, self.greatest, share))

    def nth(self, index: Tensor) -> Tensor:
        """The index-th combination of values of each row, (m, B) -> (m, B, M); 0 is x itself."""
        digits, count = [], (self.down + self.up + 1).long()
        for i in range(len(self.features)):
            digits.append(index % count[:, i])
            index = index // count[:, i]
        if not digits:
            return self.start.expand(len(index), -1, -1)
        steps = (torch.stack(digits, -1) + self.down.long()) % count - self.down.long()
        return self._values(steps.double(), self.start)

    def spread(self, i: int, at: Tensor, count: int, share: float) -> Tensor:
        """(count, B) values of number i, evenly over all it may take within `share` of the whole
        range of values around `at` (B,); repeated where there are fewer."""
        way = torch.linspace(0, 1, count, dtype=torch.float64, device=at.device)[:, None]
        down, up, least, greatest = (
            limit[:, i] for limit in (self.down, self.up, self.least, self.greatest)
        )
        now = ((at.double() * self.span[i] - self.raw[:, i]) / self.step[i]).round()
        width = (share * (down + up)).ceil()
        first, last = torch.maximum(-down, now - width), torch.minimum(up, now + width)
        steps = (first + way * (last - first)).round()
        width = share * (greatest - least)
        least, greatest = torch.maximum(least, at - width), torch.minimum(greatest, at + width)
        between = self._between(least, greatest, way)
        return self._values(steps[..., None], between[..., None], i)[..., 0]

    def _between(self, least: Tensor, greatest: Tensor, share: Tensor) -> Tensor:
        value = (least.double() + share * (greatest.double() - least.double())).to(least)
        return torch.minimum(torch.maximum(value, least), greatest)

    def _values(self, steps: Tensor, between: Tensor, i: int | None = None) -> Tensor:
        """x moved by whole steps (..., B, M), or the value `between` for those that take any."""
        pick = slice(None) if i is None else slice(i, i + 1)
        start, step, span = self.start[:, pick], self.step[pick], self.span[pick]
        moved = ((self.raw[:, pick] + steps * step) / span).clamp(0, 1).to(start)
        moved = torch.where(steps == 0, start, moved)
        return torch.where(self.any[pick], between, moved)
