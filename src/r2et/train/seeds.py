"""Random numbers that depend on a seed and a step alone, so that training can go on anywhere."""

from __future__ import annotations

import torch


def seed_everything(seed: int, device: torch.device) -> None:
    """As torch.manual_seed, which takes a millisecond to note down who called it."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        place = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[place].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def mixed(seed: int, count: int, stream: int) -> int:
    """One seed from three numbers, far apart for near ones."""
    found = (
        (seed + 1) * 0x9E3779B97F4A7C15 + count * 0xBF58476D1CE4E5B9 + stream * 0x94D049BB133111EB
    )
    found ^= found >> 31
    return found * 0xD6E8FEB86659FD93 % (2**63)
