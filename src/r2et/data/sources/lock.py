"""One process at a time: a lock that dies with its holder."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _take(handle: IO[bytes]) -> bool:
        try:
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(handle: IO[bytes]) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def key(name: str) -> str:
    """A file name for any address or path."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


@contextmanager
def locked(cache: Path, name: str) -> Iterator[None]:
    """Hold the lock called `name` in this cache, waiting for whoever has it.

    The operating system frees it when the holder ends, however it ends. The lock's file stays:
    removing it would let a waiting and a new process hold two different locks of one name.
    """
    folder = cache / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / key(name), "ab") as handle:
        # Polling, so that Ctrl-C is heard on every platform.
        while not _take(handle):
            time.sleep(0.05)
        yield
