"""A download with pooch: whole or not at all, tried again and gone on with, and within limits.

pooch writes to another name and renames; what has come of an interrupted download is kept beside
it, and the next attempt asks for the rest alone. The checksum is that of the contents, which
whoever calls this compares.
"""

from __future__ import annotations

import http.client
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

import pooch
import requests

from r2et.data.sources.entry import PlaceError, UnreachableError
from r2et.data.sources.partial import Deadline, Partial
from r2et.progress import Advance, bar
from r2et.version import __version__

ATTEMPTS = 4
CONNECTIONS = 2  # attempts where no connection comes about at all
PAUSE = 0.5  # seconds before the second attempt; doubled each time
REDIRECTS = 5
BLOCK = 2**14
HEADERS = {"User-Agent": f"r2et/{__version__}", "Accept-Encoding": "identity"}


class _PassingError(Exception):
    """A failure that another attempt may not meet."""


class _ConnectionError(_PassingError):
    """There is no way to the server, or nobody there."""


def download(url: str, to: Path, *, label: str, timeout: float, limit: int) -> None:
    """Put what is at `url` into the file `to`, which appears only when it is whole.

    limit: the most bytes it may have, whatever the server announces.

    Whoever calls this holds the lock of `to`.
    """
    if urlsplit(url).scheme not in {"http", "https"}:
        raise PlaceError("only http and https are fetched")
    reason, unconnected = "", 0
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            _attempt(url, to, label, timeout, limit)
        except _PassingError as error:
            reason = str(error)
            unconnected += isinstance(error, _ConnectionError)
            if unconnected == CONNECTIONS:
                raise UnreachableError(f"{reason}, {CONNECTIONS} times") from error
        else:
            return
    raise PlaceError(f"{reason}, {ATTEMPTS} times")


def redirect_allowed(old: str, new: str) -> bool:
    """Whether a redirect may be followed: the same host without losing TLS, or https to https."""
    a, b = urlsplit(old), urlsplit(new)
    if b.scheme == "https":
        return a.scheme == "https" or a.hostname == b.hostname
    return b.scheme == "http" and a.scheme == "http" and a.netloc == b.netloc


class _Transfer:
    """One answer of a server on its way into a file: a limit on redirects, bytes and time."""

    def __init__(self, limit: int, partial: Partial) -> None:
        self.limit, self.redirects, self.done = limit, 0, 0
        self.announced: int | None = None
        self.partial, self.deadline = partial, Deadline(limit)
        self._out: IO[bytes] | None = None
        self._advance: Advance | None = None
        self._open = ExitStack()

    def check(self, response: requests.Response, **_: Any) -> None:
        """Look at each answer before it is followed or read."""
        if response.is_redirect:
            target = urljoin(response.url, response.headers["Location"])
            self.redirects += 1
            if self.redirects > REDIRECTS:
                raise PlaceError(f"HTTP {response.status_code}, more than {REDIRECTS} times")
            if not redirect_allowed(response.url, target):
                raise PlaceError(f"it redirects to {target}, which is not followed")
            return
        if not response.ok:
            return
        self._out, self.done = self.partial.opened(response)
        self._open.enter_context(self._out)
        self._open.enter_context(self.deadline.watch(response))
        length = response.headers.get("Content-Length", "")
        self.announced = self.done + int(length) if length.isdigit() else None
        if self.announced is not None and self.announced > self.limit:
            raise PlaceError(
                f"it announces {self.announced} bytes, more than the {self.limit} expected"
            )

    @contextmanager
    def shown(self, label: str) -> Iterator[_Transfer]:
        """What is written to this goes into the file, and moves a bar."""
        with self._open, bar(label, in_bytes=True) as self._advance:
            yield self

    def write(self, block: bytes) -> None:
        """The next bytes."""
        assert self._out is not None
        assert self._advance is not None
        self.done += len(block)
        if self.done > self.limit:
            raise PlaceError(f"it sends more than the {self.limit} bytes expected")
        self._out.write(block)
        self._advance(len(block))

    def flush(self) -> None:
        """Called after each block; the file is flushed when it is closed."""


def _attempt(url: str, to: Path, label: str, timeout: float, limit: int) -> None:
    partial = Partial(to)
    transfer = _Transfer(limit, partial)
    headers = {**HEADERS, **partial.headers()}
    settings = {"headers": headers, "hooks": {"response": transfer.check}, "timeout": timeout}
    http_get = pooch.HTTPDownloader(chunk_size=BLOCK, **settings)

    def downloader(url: str, output_file: str, _: object) -> None:
        with transfer.shown(label) as out:
            http_get(url, out, None)
        if transfer.deadline.is_over or (transfer.done < (transfer.announced or 0)):
            raise _truncated(transfer)
        partial.finish(output_file)

    try:
        with _quiet(pooch.get_logger()):
            # No hash of the download is known: what is inside it has one.
            pooch.retrieve(url, None, fname=to.name, path=to.parent, downloader=downloader)
    except PlaceError:
        partial.drop()
        raise
    except requests.HTTPError as error:
        if error.response is not None and error.response.status_code == 416:  # nothing beyond it
            partial.drop()
            raise _PassingError("what had come of it is no beginning of the file") from error
        raise _refusal(error) from error
    except requests.Timeout as error:
        kind = _ConnectionError if isinstance(error, requests.ConnectTimeout) else _PassingError
        raise kind(f"no answer within {timeout:g} s") from error
    except requests.RequestException as error:
        if transfer.announced is not None and transfer.done < transfer.announced:
            raise _truncated(transfer) from error
        raise _failure(error) from error
    finally:
        partial.keep_or_drop()


def _truncated(transfer: _Transfer) -> Exception:
    if transfer.deadline.is_over:
        text = f"only {transfer.done} bytes came in {transfer.deadline.seconds:g} s"
        return PlaceError(f"{text}, and it was given up")
    return _PassingError(f"only {transfer.done} of {transfer.announced} bytes came")


def _refusal(error: requests.HTTPError) -> Exception:
    response = error.response
    assert response is not None  # pooch raises it for an answer
    code = response.status_code
    if code == 429 or code >= 500:
        return _PassingError(f"HTTP {code}")
    return PlaceError(f"HTTP {code} {' '.join(response.reason.split())}".strip())


def _failure(error: BaseException) -> Exception:
    """The reason that lies at the bottom of what requests and urllib3 raise."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    reason = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, socket.gaierror):
        return UnreachableError(reason)
    if isinstance(error, http.client.HTTPException | ConnectionResetError | BrokenPipeError):
        return _PassingError(f"the connection broke ({type(error).__name__})")
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return _ConnectionError(reason)
    return PlaceError(f"it cannot be fetched ({reason})")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Without pooch's own lines about each download; its level is put back."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)
