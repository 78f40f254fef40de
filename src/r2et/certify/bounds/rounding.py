"""What a float evaluation may add to the exact value, and where it overflows."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def unit_of(dtype: torch.dtype) -> float:
    """The spacing of numbers around 1; four times that of float64, whose bounds are rounded too."""
    return torch.finfo(dtype).eps * (4 if dtype == torch.float64 else 1)


@cache
def limits(unit: float) -> tuple[float, float]:
    """The smallest normal and the largest number of the precision with this unit."""
    kind = torch.finfo(torch.float64 if unit < 1e-12 else torch.float32)
    return kind.tiny, kind.max


def rounding(terms: float, unit: float, size: Tensor) -> Tensor:
    """terms * unit * size, for a sum or product whose terms' sizes add up to `size`.

    Where they are so small that they leave the normal numbers, each term may be off by the
    smallest of these; where they are so large that part of a sum may overflow, by anything.
    """
    tiny, huge = limits(unit)
    noise = terms * unit * (size + tiny / unit)
    return torch.where(size <= huge, noise, torch.inf)
