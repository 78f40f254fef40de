"""A file by its checksum, from the first place that has it."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from r2et.data.sources import packages
from r2et.data.sources.archive import take
from r2et.data.sources.entry import (
    Address,
    File,
    InFolder,
    Package,
    Place,
    PlaceError,
    UnreachableError,
)
from r2et.data.sources.folders import cache_dir, data_dir, offline, timeout
from r2et.data.sources.http import download, forget
from r2et.data.sources.lock import key, locked
from r2et.errors import UnavailableError


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
        with locked(cache_dir(), str(archive)):
            forget(archive)
    return contents


def locate(file: File) -> str | None:
    """Where a file seems to be on this machine, "built in" or a path; its contents are not read."""
    return next((where for where, _, _ in _candidates(file)), None)


def find(file: File) -> tuple[str, bytes] | None:
    """Where a file is on this machine, "built in" or a path, and its contents, or None."""
    for where, folder, place in _candidates(file):
        data = _here(file, where, folder, place)
        if data is not None:
            return where, data
    return None


def _here(file: File, where: str, folder: Path, place: InFolder) -> bytes | None:
    """A candidate that passes the check; one in the user's folder that does not is named."""
    try:
        return _assemble(file, folder, place)
    except (PlaceError, OSError) as error:
        if folder == data_dir():
            warnings.warn(f"{where} is not used: {error}.", UserWarning, stacklevel=3)
        return None


def _candidates(file: File) -> Iterator[tuple[str, Path, InFolder]]:
    """The files on this machine that may be this one, best first: where, in which folder, how."""
    if file.builtin:
        yield "built in", Path(str(files("r2et.data"))), InFolder((file.builtin,))
    whole = [InFolder((path,)) for path in (file.path, f"{file.path}.gz")]
    others = [place for place in file.places if isinstance(place, InFolder)]
    folder, cache = data_dir(), cache_dir() / "files"
    options = [(folder, place) for place in (*whole, *others)] if folder else []
    for base, place in (*options, (cache, whole[0])):
        paths = [base / part.split("!/")[0] for part in place.parts]
        if all(path.is_file() for path in paths):
            yield str(paths[0]), base, place


def _read(visit: _Visit, file: File) -> bytes:
    found = find(file)
    if found is not None:
        return found[1]
    remote = [place for place in file.places if not isinstance(place, InFolder)]
    if offline() or not remote:
        raise UnavailableError(_sentence(visit.name, file, remote, {}))
    reasons: dict[Place, str] = {}
    with locked(cache_dir(), file.path):
        found = find(file)  # another process may have fetched it while we waited
        if found is not None:
            return found[1]
        for place in remote:
            data = _attempt(visit, file, place, reasons)
            if data is not None:
                _store(cache_dir() / "files" / file.path, data)
                return data
    raise UnavailableError(_sentence(visit.name, file, remote, reasons))


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
    with locked(cache_dir(), str(target)):
        if not target.is_file():
            if isinstance(place, Address):
                label = f"{visit.name}: {target.name}"
                download(place.url, target, label=label, timeout=timeout())
            else:
                packages.obtain(place, target)
        try:
            return _assemble(file, target, place)
        except PlaceError:
            # Nothing that failed its check stays to fail again.
            target.unlink(missing_ok=True)
            raise


def _assemble(file: File, container: Path, place: Place) -> bytes:
    """The file from its parts, or PlaceError where it is not the one the entry means."""
    if place.build is None:
        data = take(container, place.parts[0], file.size)
    else:
        data = place.build([take(container, part) for part in place.parts])
    if not _matches(file, data):
        found = hashlib.sha256(data).hexdigest()
        raise PlaceError(
            f"its SHA-256 is {found[:12]}..., not {file.sha256[:12]}..., in {len(data)} bytes"
        )
    return data


def _matches(file: File, data: bytes) -> bool:
    return len(data) == file.size and hashlib.sha256(data).hexdigest() == file.sha256


def _store(path: Path, data: bytes) -> None:
    """Write under another name, then rename: a reader sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(temporary, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _sentence(name: str, file: File, remote: list[Place], reasons: dict[Place, str]) -> str:
    """One sentence: what is missing, where it was looked for, what to do."""
    folder = data_dir()
    looked = [f"not in R2ET_DATA ({folder or 'not set'})", f"not in the cache ({cache_dir()})"]
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
