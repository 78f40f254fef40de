"""One item after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import torch

from r2et.engine.base import Engine, Later, Numbered


@final
class SerialEngine(Engine):
    """No other process: for debugging, and where work is small."""

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers)
        self.workers = 1

    def run(self, work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """In order; with one thread, as workers have."""
        numbered = Numbered(items)
        while True:
            taken = numbered.take()
            if taken is None or isinstance(taken, Later):
                return
            index, item = taken
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                result = work(item)
            finally:
                torch.set_num_threads(before)
            yield index, result

    def close(self) -> None:
        """Nothing was opened."""
