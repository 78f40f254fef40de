"""Several processes on this machine, one item each at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from typing import Any, final

from r2et.engine.base import Engine, Later, Lost, Numbered, packed
from r2et.engine.outcome import unpack
from r2et.engine.worker import Worker
from r2et.errors import R2ETError

TRIES = 2  # how many workers an item may cost


@final
class ProcessEngine(Engine):
    """A pool that knows which worker has which item, so that a dead one costs that item alone.

    Workers start as they are needed, and stay until the engine is closed.
    """

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers)
        self._pool: list[Worker] = []

    def run(self, work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """One item per worker is under way; the next is taken when a worker is free."""
        blob = packed("work", work)
        numbered = Numbered(items)
        again: deque[tuple[int, bytes]] = deque()
        tries: dict[int, int] = {}
        try:
            while True:
                self._fill(blob, numbered, again)
                busy = {worker.pipe: worker for worker in self._pool if worker.index is not None}
                if not busy:
                    return
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]
                    message = worker.receive()
                    if message is None:
                        yield from self._died(worker, tries, again)
                    elif not worker.ready:
                        worker.ready = True
                        worker.send()
                    else:
                        index, worker.index = worker.index, None
                        assert index is not None
                        tries.pop(index, None)
                        yield index, unpack(message)
        finally:
            busy_here = [w for w in self._pool if w.index is not None and w.work is blob]
            for worker in busy_here:
                self._pool.remove(worker)
                worker.end()

    def _fill(
        self,
        work: bytes,
        numbered: Numbered,
        again: deque[tuple[int, bytes]],
    ) -> None:
        """Give an item to every worker that has none, and to new ones up to the limit."""
        while sum(worker.index is not None for worker in self._pool) < self.workers:
            if again:
                index, blob = again.popleft()
            else:
                taken = numbered.take()
                if taken is None or isinstance(taken, Later):
                    return
                index, item = taken
                blob = packed("items", item)
            self._free().take(work, index, blob)

    def _free(self) -> Worker:
        """A worker without an item; one that died idle is replaced."""
        for worker in list(self._pool):
            if worker.index is None:
                if worker.process.is_alive():
                    return worker
                self._pool.remove(worker)
                worker.end()
        self._pool.append(Worker())
        return self._pool[-1]

    def _died(
        self, worker: Worker, tries: dict[int, int], again: deque[tuple[int, bytes]]
    ) -> Iterator[tuple[int, Lost]]:
        """Another try for the item of a dead worker; after the last, it is lost."""
        self._pool.remove(worker)
        index, blob, started = worker.index, worker.blob, worker.ready
        assert index is not None
        worker.index = None
        how = worker.end()
        if not started and how.startswith("exit"):  # its own doing: it would end so each time
            expected = "able to start (a script needs `if __name__ == '__main__':`)"
            raise R2ETError(f"engine: workers must be {expected}, got {how}.")
        tries[index] = tries.get(index, 0) + 1
        if tries[index] < TRIES:
            again.append((index, blob))
        else:
            yield index, Lost(f"its worker ended with {how}, {TRIES} times")

    def close(self) -> None:
        """End all workers."""
        while self._pool:
            self._pool.pop().end()
