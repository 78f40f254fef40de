"""Threads, where they are worth their trouble."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

SMALL = 100_000  # weights


@contextmanager
def threads_for(network: nn.Module) -> Iterator[None]:
    """One thread for a small network, where more make a step many times slower."""
    before = torch.get_num_threads()
    small = sum(p.numel() for p in network.parameters()) < SMALL
    torch.set_num_threads(1 if small else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
