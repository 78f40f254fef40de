"""A file by its checksum, from the first place that has it."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from r2et.data.sources import packages
from r2et.data.sources.archive import take
from r2et.data.sources.entry import Address, File, InFolder, Package, Place, PlaceError
from r2et.data.sources.folders import cache_dir, data_dir, offline, timeout
from r2et.data.sources.http import download, forget
from r2et.data.sources.lock import key, locked
from r2et.errors import UnavailableError


def read(name: str, wanted: list[File]) -> list[bytes]:
    """The contents of the files of the data set `name`, each with the SHA-256 its entry states.

    An archive that holds several of them is fetched once, and removed when all are in the cache.
    """
    archives: set[Path] = set()
    try:
        contents = [_read(name, file, archives) for file in wanted]
    except OSError as error:
        raise UnavailableError(
            f"{name}: the cache {cache_dir()} cannot be used ({error.strerror or error}); set "
            f"R2ET_CACHE to a folder that can be written."
        ) from error
    for archive in archives:
        with locked(cache_dir(), str(archive)):
            forget(archive)
    return contents


def find(file: File) -> tuple[str, bytes] | None:
    """Where a file is on this machine ("built in" or a path) and its contents, or None."""
    if file.builtin:
        return "built in", files("r2et.data").joinpath(file.builtin).read_bytes()
    folder = data_dir()
    if folder is not None:
        whole = [InFolder((path,)) for path in (file.path, f"{file.path}.gz")]
        others = [place for place in file.places if isinstance(place, InFolder)]
        for place in (*whole, *others):
            found = _in_folder(file, folder, place)
            if found is not None:
                return str(folder / place.parts[0].split("!/")[0]), found
    cached = cache_dir() / "files" / file.path
    if cached.is_file():
        data = cached.read_bytes()
        if _matches(file, data):
            return str(cached), data
    return None


def _read(name: str, file: File, archives: set[Path]) -> bytes:
    found = find(file)
    if found is not None:
        return found[1]
    remote = [place for place in file.places if not isinstance(place, InFolder)]
    if offline() or not remote:
        raise UnavailableError(_sentence(name, file, remote, {}))
    reasons: dict[Place, str] = {}
    with locked(cache_dir(), file.path):
        found = find(file)  # another process may have fetched it while we waited
        if found is not None:
            return found[1]
        for place in remote:
            data = _attempt(name, file, place, archives, reasons)
            if data is not None:
                _store(cache_dir() / "files" / file.path, data)
                return data
    raise UnavailableError(_sentence(name, file, remote, reasons))


def _in_folder(file: File, folder: Path, place: InFolder) -> bytes | None:
    paths = [folder / part.split("!/")[0] for part in place.parts]
    if not all(path.is_file() for path in paths):
        return None
    try:
        return _assemble(file, folder, place)
    except (PlaceError, OSError) as error:
        text = f"{paths[0]} is not used: {error}."
        warnings.warn(text, UserWarning, stacklevel=2)
        return None


def _attempt(
    name: str, file: File, place: Place, archives: set[Path], reasons: dict[Place, str]
) -> bytes | None:
    try:
        return _from_remote(name, file, place, archives)
    except PlaceError as error:
        reasons[place] = str(error)
        return None


def _from_remote(name: str, file: File, place: Place, archives: set[Path]) -> bytes:
    """Fetch, under the lock of what is fetched, since several files may share an archive."""
    downloads = cache_dir() / "downloads"
    if isinstance(place, Address):
        target = downloads / key(place.url) / (Path(urlsplit(place.url).path).name or "file")
    elif isinstance(place, Package):
        suffix = ".whl" if place.client == "pip" else ".tgz"
        target = downloads / key(place.requirement) / f"{place.name}{suffix}"
    else:
        raise PlaceError("nothing is known about how to fetch it")
    archives.add(target)
    with locked(cache_dir(), str(target)):
        if not target.is_file():
            if isinstance(place, Address):
                download(place.url, target, label=f"{name}: {target.name}", timeout=timeout())
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
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _sentence(name: str, file: File, remote: list[Place], reasons: dict[Place, str]) -> str:
    """One sentence: what is missing, where it was looked for, what to do."""
    folder = data_dir()
    looked = [f"not in R2ET_DATA ({folder or 'not set'})", f"not in the cache ({cache_dir()})"]
    if reasons:
        looked += [f"not from {place} ({reasons[place]})" for place in remote]
    elif remote:
        looked.append("and R2ET_OFFLINE forbids to fetch it")
    advice = f"put it into a folder as {file.path} and set R2ET_DATA to that folder"
    if reasons:
        advice += f", or run `r2et data get {name}` again with a network"
    elif remote:
        known = " or ".join(str(place) for place in remote)
        advice += f", or unset R2ET_OFFLINE to fetch it from {known}"
    return f"{name}: {file.path} is not here: {', '.join(looked)}; {advice}."
