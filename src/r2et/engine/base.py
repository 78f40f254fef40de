"""What every engine promises: results as they are finished, each with the number of its item."""

from __future__ import annotations

import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from r2et.errors import InputError, R2ETError, first_line, require

Item = TypeVar("Item")
Result = TypeVar("Result")
Self = TypeVar("Self", bound="Engine")


@dataclass(frozen=True)
class Lost:
    """In place of a result: a worker died over this item, and so did a second one."""

    reason: str


class Later:
    """What `items` may give instead of an item: none yet, ask again after the next result."""


LATER = Later()


class Numbered:
    """Items with their numbers, one at a time; None at the end, LATER where there is none yet."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items, self._count = items, 0

    def take(self) -> tuple[int, Any] | Later | None:
        """The next item and its number."""
        for item in self._items:
            if isinstance(item, Later):
                return item
            self._count += 1
            return self._count - 1, item
        return None


class Engine(ABC):
    """Runs work(item) for each of many items; `with` keeps its workers between runs.

    An engine may be entered again while it is open; the outermost `with` ends its workers.
    """

    def __init__(self, workers: int | None = None) -> None:
        whole = isinstance(workers, int) and not isinstance(workers, bool)
        positive = workers is None or (whole and workers > 0)
        require(positive, "engine", "workers", "None or a positive whole number", workers)
        self.workers = usable_cores() if workers is None else workers
        self._depth = 0
        self._under_way: object | None = None  # the run, while there is one

    def __enter__(self: Self) -> Self:
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._under_way = None  # whoever still holds its results has lost interest
            self.close()

    def __call__(
        self, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[int, Result | Lost]]:
        """Pairs (number of the item, work(item)) in the order in which they are finished.

        Items are taken as they are needed, never all at once; where the next one hangs on results,
        LATER stands for it, and ends the run if nothing is under way. What work raises is raised
        here, and ends the run.
        """
        require(callable(work), "engine", "work", "callable", work)
        iterable = hasattr(items, "__iter__")
        require(iterable, "engine", "items", "something to iterate over", type(items).__name__)
        free = self._under_way is None
        require(free, "engine", "the run before", "at its end", "one under way")
        return self._guarded(work, iter(items))

    def _guarded(self, work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
        mine = self._under_way = object()
        # Not `with self`: the caller's own `with` must end the workers even while a traceback, or
        # somebody else, holds on to this generator.
        alone = self._depth == 0
        try:
            yield from self.run(work, items)
        finally:
            if self._under_way is mine:
                self._under_way = None
                if alone:
                    self.close()

    @abstractmethod
    def run(self, work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """The pairs of one run; a generator that is closed early leaves no work behind."""

    def count(self) -> int:
        """How many items are worked on at a time, as far as can be known before a run."""
        return self.workers

    @abstractmethod
    def close(self) -> None:
        """End the workers."""


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def packed(name: str, value: Any) -> bytes:
    """The value as bytes; what cannot be sent is named."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # __reduce__ and __getstate__ may raise anything
        expected = "picklable, to be sent to another process (a class or function of a module)"
        reason = f"{type(value).__name__}: {first_line(error)}"
        raise InputError(f"engine: {name} must be {expected}, got {reason}.") from error


class RemoteError(Exception):
    """The traceback of an error in another process, as the cause of that error here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class WorkError(R2ETError):
    """An error of the work's whose own type cannot be sent between processes."""
