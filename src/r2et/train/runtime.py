"""What a training asks of its process: threads, random numbers, and a Ctrl-C that waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

SMALL = 100_000  # weights


@contextmanager
def patient_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is heard after the step it falls into, when the state is whole; twice, at once."""
    heard: list[int] = []

    def note(number: int, frame: Any) -> None:
        if heard:
            signal.default_int_handler(number, frame)
        heard.append(number)

    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # nohup and the like
    if ignored or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(heard)
    finally:
        signal.signal(signal.SIGINT, before)


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
    product = (
        (seed + 1) * 0x9E3779B97F4A7C15 + count * 0xBF58476D1CE4E5B9 + stream * 0x94D049BB133111EB
    )
    product ^= product >> 31
    return product * 0xD6E8FEB86659FD93 % (2**63)


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
