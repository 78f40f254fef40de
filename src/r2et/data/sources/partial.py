"""What has come of a download so far, for the next attempt to go on from."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import requests

SLOWEST = 2**13  # bytes a second, below which a server is given up
PATIENCE = 60.0  # seconds that every download has at least


class Partial:
    """The bytes of a file that have come, and the ETag by which its server knows them again.

    Only bytes that are under an ETag are kept: without one nobody could tell whether those still to
    come belong to the same file.
    """

    def __init__(self, to: Path) -> None:
        self.bytes, self.tag = (to.with_name(f".{to.name}.{end}") for end in ("part", "etag"))

    def headers(self) -> dict[str, str]:
        """What asks a server for the rest: all of it, should the file have changed."""
        try:
            size, tag = self.bytes.stat().st_size, self.tag.read_text(encoding="latin-1")
        except OSError:
            return {}
        return {"Range": f"bytes={size}-", "If-Range": tag} if size and tag else {}

    def opened(self, response: requests.Response) -> tuple[IO[bytes], int]:
        """The file that an answer goes on in, and how much of it is there."""
        start = self.bytes.stat().st_size if self.bytes.exists() else 0
        span = response.headers.get("Content-Range", "")
        if response.status_code == 206 and span.startswith(f"bytes {start}-"):
            return self.bytes.open("ab"), start
        tag = response.headers.get("ETag", "")
        self.drop()
        if tag and not tag.startswith("W/"):  # a weak one is also that of other bytes
            self.tag.write_text(tag, encoding="latin-1")
        return self.bytes.open("wb"), 0

    def finish(self, path: str) -> None:
        """All has come: give it its place."""
        os.replace(self.bytes, path)
        self.drop()

    def drop(self) -> None:
        """Forget it, so that the next attempt begins anew."""
        self.bytes.unlink(missing_ok=True)
        self.tag.unlink(missing_ok=True)

    def keep_or_drop(self) -> None:
        """After an attempt that failed: keep what can be gone on from."""
        if not self.headers():
            self.drop()


class Deadline:
    """When a download has had its time: a server that drips a byte a second is never silent."""

    def __init__(self, size: int) -> None:
        self.seconds = max(PATIENCE, size / SLOWEST)
        self.is_over = False

    @contextmanager
    def watch(self, response: requests.Response) -> Iterator[None]:
        """End the answer when its time is over, though its bytes are being waited for."""

        def end() -> None:
            self.is_over = True
            getattr(response.raw, "shutdown", response.close)()

        timer = threading.Timer(self.seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
