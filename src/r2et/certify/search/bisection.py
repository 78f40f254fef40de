"""The largest radius that a test passes, for many rows at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Proved = Callable[[Tensor, Tensor], Tensor]

# Rows not proved at this share of the limit, or of 10 if that is less, are left at 0.
SMALLEST = 1e-9


def largest_radius(
    proved: Proved,
    rows: int,
    limit: float,
    tolerance: float,
    device: torch.device | None = None,
    between: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """(B,) radii, each proved itself, at most 1 + tolerance below one that was not.

    proved(radius (A,), rows (A,)) -> (A,) bool. First downwards in quarters, then by bisection of
    the ratio; rows that are done are not asked again. between: radii already proved, and others
    above which nothing is looked for.
    """
    low = torch.zeros(rows, dtype=torch.float64, device=device)
    high = torch.full_like(low, limit)
    open_rows = torch.arange(rows, device=device)
    radius = high.clone()
    if between is not None:
        low, high = between[0].clone(), between[1].clone()
        open_rows = (high > (1 + tolerance) * low).nonzero().flatten()
        radius = (low.sqrt() * high.sqrt())[open_rows]
    while len(open_rows):
        ok = proved(radius, open_rows)
        low[open_rows] = torch.where(ok, radius, low[open_rows])
        high[open_rows] = torch.where(ok, high[open_rows], radius)
        a, b = low[open_rows], high[open_rows]
        undecided = (b > (1 + tolerance) * a) & (b > SMALLEST * min(limit, 10.0))
        open_rows = open_rows[undecided]
        a, b = a[undecided], b[undecided]
        radius = torch.where(a > 0, a.sqrt() * b.sqrt(), b / 4)
    return low
