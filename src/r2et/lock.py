"""One process at a time: a lock that dies with its holder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from filelock import lock_descriptor


def take(handle: IO[bytes]) -> bool:
    """Lock an open file until it is closed, if nobody has it, and say whether."""
    return lock_descriptor(handle.fileno(), blocking=False)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that is the file `path`, made if missing, waiting for whoever has it.

    The operating system frees it when the holder ends, however it ends. The file stays: removing
    it would let a waiting and a new process hold two different locks of one name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(path) as handle:
        lock_descriptor(handle.fileno())
        yield


@contextmanager
def reserved(path: Path) -> Iterator[bool]:
    """Hold the same kind of lock if nobody has it, and say whether; without waiting."""
    with _opened(path) as handle:
        yield take(handle)


def _opened(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab")
    except PermissionError:
        return open(path, "rb")  # somebody else's folder: a reader may still wait
