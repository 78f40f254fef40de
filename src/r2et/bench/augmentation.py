"""Pictures beside themselves: flipped, and shifted by a few pixels."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from r2et.data import Data, Split
from r2et.errors import require

MOST_SHIFT = 4  # pixels; of 32 across, as is usual


def augmented(data: Data, copies: int, seed: int = 0) -> Data:
    """The data with so many changed copies of every training picture after the pictures."""
    x, y = data.train
    is_valid = x.ndim == 4
    require(is_valid, "bench", "augment", "0 where x is no picture", tuple(x.shape[1:]))
    numbers = torch.Generator().manual_seed(seed)
    every = [x, *(flipped_and_shifted(x, numbers) for _ in range(copies))]
    return replace(data, train=Split(torch.cat(every), y.repeat(copies + 1)))


def flipped_and_shifted(x: Tensor, numbers: torch.Generator) -> Tensor:
    """(B, C, H, W): half of the pictures from right to left, each moved up to MOST_SHIFT pixels.

    What moves in is what the border was.
    """
    count, _, high, wide = x.shape
    mirrored = torch.rand(count, generator=numbers) < 0.5
    x = torch.where(mirrored[:, None, None, None], x.flip(3), x)
    wider = pad(x, [MOST_SHIFT] * 4, mode="replicate")
    down, right = torch.randint(0, 2 * MOST_SHIFT + 1, (2, count, 1), generator=numbers)
    rows = (down + torch.arange(high))[:, None, :, None]
    columns = (right + torch.arange(wide))[:, None, None, :]
    channels = torch.arange(x.shape[1])[None, :, None, None]
    return wider[torch.arange(count)[:, None, None, None], channels, rows, columns]
