"""Ctrl-C that waits for the step it falls into."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


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
