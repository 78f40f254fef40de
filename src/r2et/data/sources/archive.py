"""One member of an archive, read without unpacking the rest."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from r2et.data.sources.entry import PlaceError
from r2et.errors import describe, first_line

# What a part may unpack to: far above every file we name, far below what fills a disk.
LIMIT = 2**30


def take(container: Path, part: str, limit: int = LIMIT) -> bytes:
    """The bytes of `part` in a folder, an archive or a file; "a.zip!/b" looks inside a.zip."""
    if container.is_dir():
        name, _, part = part.partition("!/")
        check_inside(name, str(container))
        container = container / name
    with open(container, "rb") as handle:
        return _descend(handle, container.name, part, limit)


def check_inside(name: str, archive: str) -> None:
    """Refuse a member whose path leaves the folder it is unpacked in."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name.split("/")[0]:
        raise PlaceError(f"{archive} holds a member that leaves its folder, {name!r}")


def _descend(handle: IO[bytes], archive: str, part: str, limit: int) -> bytes:
    try:
        if not part:
            return _whole(handle, archive, limit)
        name, _, inner = part.partition("!/")
        packed = bool(inner) or name.endswith(".gz")
        # The limit is on what comes out at the end; a .gz may be larger than what it holds.
        data = _member(handle, archive, name, LIMIT if packed else limit)
    except PlaceError:
        raise
    except Exception as error:
        # Anything: zipfile and tarfile let through what their decompressors and parsers raise.
        reason = describe(first_line(error)).rstrip(":")
        raise PlaceError(f"{archive} is damaged ({reason})") from error
    if packed:
        return _descend(io.BytesIO(data), name, inner, limit)
    return data


def _whole(handle: IO[bytes], archive: str, limit: int) -> bytes:
    if archive.endswith(".gz"):
        with gzip.GzipFile(fileobj=handle) as unpacked:
            return _read(unpacked, archive, limit)
    return _read(handle, archive, limit)


def _member(handle: IO[bytes], archive: str, name: str, limit: int) -> bytes:
    if zipfile.is_zipfile(handle):
        with zipfile.ZipFile(handle) as zipped:
            for other in zipped.namelist():
                check_inside(other, archive)
            if name not in zipped.namelist():
                raise PlaceError(f"{archive} has no member {name!r}")
            with zipped.open(name) as member:
                return _read(member, f"{name} in {archive}", limit)
    handle.seek(0)
    data = None
    with tarfile.open(fileobj=handle) as tarred:
        for info in tarred:
            check_inside(info.name, archive)
            # A link would name a file outside this archive, or one that was not checked.
            if info.isreg() and info.name.removeprefix("./") == name:
                # Read in passing: going back in a compressed archive starts it again.
                stream = tarred.extractfile(info)
                data = _read(stream, f"{name} in {archive}", limit) if stream else None
    if data is None:
        raise PlaceError(f"{archive} has no member {name!r}")
    return data


def _read(stream: IO[bytes] | gzip.GzipFile, name: str, limit: int) -> bytes:
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise PlaceError(f"{name} is larger than the {limit} bytes expected")
    return data
