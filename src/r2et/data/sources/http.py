"""A download that survives interruption, and believes no server.

A partial download is kept with the server's validator (a strong ETag, or the date of change), and
resumed with Range and If-Range, so that two versions are never joined. None of this replaces the
checksum, which whoever calls this compares.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from r2et.data.sources.connection import opener
from r2et.data.sources.entry import PlaceError, UnreachableError
from r2et.progress import Advance, bar
from r2et.version import __version__

ATTEMPTS = 4
CONNECTIONS = 2  # attempts where no connection comes about at all
PAUSE = 0.5  # seconds before the second attempt; doubled each time
SLOWEST = 512  # bytes per second: what drips more slowly counts as hanging
LIMIT = 2**32
BLOCK = 2**16


class _PassingError(Exception):
    """A failure that another attempt may not meet."""


class _ConnectionError(_PassingError):
    """There is no way to the server, or nobody there."""


def download(url: str, to: Path, *, label: str, timeout: float, limit: int = LIMIT) -> None:
    """Put what is at `url` into the file `to`, which appears only when it is whole.

    limit: the most bytes it may have, whatever the server announces.

    Whoever calls this holds the lock of `to`. The partial file stays when this is interrupted.
    """
    partial = to.with_name(f"{to.name}.partial")
    to.parent.mkdir(parents=True, exist_ok=True)
    reason = ""
    unconnected = 0
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            _attempt(url, partial, label, timeout, limit)
        except _PassingError as error:
            reason = str(error)
            unconnected += isinstance(error, _ConnectionError)
            if unconnected == CONNECTIONS:
                raise UnreachableError(f"{reason}, {CONNECTIONS} times") from error
        else:
            _notes(partial).unlink(missing_ok=True)
            partial.replace(to)
            return
    raise PlaceError(f"{reason}, {ATTEMPTS} times")


def forget(to: Path) -> None:
    """Remove a download and what is left of an interrupted one; the caller holds its lock."""
    partial = to.with_name(f"{to.name}.partial")
    for path in (to, partial, _notes(partial)):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        to.parent.rmdir()


def _attempt(url: str, partial: Path, label: str, timeout: float, limit: int) -> None:
    """Fetch what is missing of the partial file, or all of it when it cannot be continued."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise PlaceError("only http and https are fetched")
    request = urllib.request.Request(url)
    request.add_header("User-Agent", f"r2et/{__version__}")
    request.add_header("Accept-Encoding", "identity")
    have, validator = _resumable(partial)
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", validator)
    try:
        with opener().open(request, timeout=timeout) as response:
            start, total = _extent(response, have)
            if total is not None and total > limit:
                raise PlaceError(f"it announces {total} bytes, more than the {limit} expected")
            _remember(partial, response, start)
            shown = bar(label, start, total, in_bytes=True)
            with open(partial, "ab" if start else "wb") as out, shown as advance:
                _copy(response, out, start, limit if total is None else total, timeout, advance)
            done = partial.stat().st_size
            if total is not None and done < total:
                raise _PassingError(f"only {done} of {total} bytes came")
    except urllib.error.HTTPError as error:
        _refused(error, partial)
    except TimeoutError as error:
        raise _PassingError(f"no answer within {timeout:g} s") from error
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or str(error.reason)
        if isinstance(error.reason, socket.gaierror):
            raise UnreachableError(reason) from error
        silent = isinstance(error.reason, TimeoutError)
        raise _ConnectionError(f"no answer within {timeout:g} s" if silent else reason) from error
    except (http.client.HTTPException, ConnectionError, ssl.SSLError) as error:
        raise _PassingError(f"the connection broke ({type(error).__name__})") from error


def _copy(
    response: Any, out: IO[bytes], start: int, most: int, timeout: float, advance: Advance
) -> None:
    done = start
    since, before = time.monotonic(), done
    while block := response.read1(BLOCK):
        out.write(block)
        done += len(block)
        advance(len(block))
        if done > most:
            out.truncate(start)
            raise PlaceError(f"it sends more than the {most} bytes expected")
        waited = time.monotonic() - since
        if waited > timeout:
            if done - before < SLOWEST * waited:
                raise _PassingError(f"fewer than {SLOWEST} bytes per second for {timeout:g} s")
            since, before = time.monotonic(), done


def _extent(response: Any, have: int) -> tuple[int, int | None]:
    """Where the answer begins, and how long the whole is, if the server says so."""
    if response.status == 206:
        stated = response.headers.get("Content-Range", "")
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", stated.strip())
        if not match or int(match[1]) != have:
            raise PlaceError(f"it answered bytes {have}- with {stated or 'no Content-Range'}")
        return have, None if match[2] == "*" else int(match[2])
    length = response.headers.get("Content-Length")
    return 0, int(length) if length and length.isdigit() else None


def _refused(error: urllib.error.HTTPError, partial: Path) -> None:
    error.close()
    if error.code == 416:
        # What we have is not the beginning of what is there now.
        _notes(partial).unlink(missing_ok=True)
    if error.code == 416 or error.code == 429 or error.code >= 500:
        raise _PassingError(f"HTTP {error.code}") from error
    reason = " ".join(str(error.reason).split())
    raise PlaceError(f"HTTP {error.code} {reason}".strip()) from error


def _notes(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def _resumable(partial: Path) -> tuple[int, str]:
    """The bytes that are here and their validator; 0 where they cannot be continued."""
    try:
        validator = json.loads(_notes(partial).read_text())["validator"]
        return partial.stat().st_size, str(validator)
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""


def _remember(partial: Path, response: Any, start: int) -> None:
    if start:
        return
    _notes(partial).unlink(missing_ok=True)
    etag = response.headers.get("ETag", "")
    # A weak ETag promises the same meaning, not the same bytes.
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified")
    if validator:
        partial.write_bytes(b"")
        _notes(partial).write_text(json.dumps({"validator": validator}))
