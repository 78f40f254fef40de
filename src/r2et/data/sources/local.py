"""A file on this machine: built in, in the user's folder, or in the cache."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from r2et.data.sources.archive import take
from r2et.data.sources.entry import File, InFolder, Place, PlaceError
from r2et.data.sources.folders import cache_dir, data_dir
from r2et.errors import describe, first_line

BUILT_IN = "built in"


def locate(file: File) -> str | None:
    """Where a file seems to be on this machine, "built in" or a path; its contents are not read."""
    return next((where for where, _, _ in _candidates(file)), None)


def find(file: File, damaged: dict[str, str] | None = None) -> tuple[str, bytes] | None:
    """Where a file is on this machine, "built in" or a path, and its contents, or None.

    damaged: filled with the copies that are not the file, and why.
    """
    for where, folder, place in _candidates(file):
        data, reason = _tried(file, folder, place)
        if data is not None:
            return where, data
        if damaged is not None:
            damaged[where] = reason
        if folder == data_dir():
            warnings.warn(f"{where} is not used: {reason}.", UserWarning, stacklevel=3)
    return None


def _tried(file: File, folder: Path, place: InFolder) -> tuple[bytes | None, str]:
    try:
        return assemble(file, folder, place), ""
    except PlaceError as error:
        return None, str(error)


def assemble(file: File, container: Path, place: Place) -> bytes:
    """The file from its parts, or PlaceError where it is not the one the entry means."""
    try:
        if place.build is None:
            data = take(container, place.parts[0], file.size)
        else:
            data = place.build([take(container, part) for part in place.parts])
    except PlaceError:
        raise
    except Exception as error:
        # Anything: these bytes are from outside, and no reader of formats names all it may raise.
        raise PlaceError(f"it cannot be read ({describe(first_line(error))})") from error
    digest = hashlib.sha256(data).hexdigest()
    if len(data) != file.size or digest != file.sha256:
        raise PlaceError(
            f"its SHA-256 is {digest[:12]}..., not {file.sha256[:12]}..., in {len(data)} bytes"
        )
    return data


def _candidates(file: File) -> Iterator[tuple[str, Path, InFolder]]:
    """The files on this machine that may be this one, best first: where, in which folder, how."""
    if file.builtin:
        yield BUILT_IN, Path(str(files("r2et.data"))), InFolder((file.builtin,))
    whole = [InFolder((path,)) for path in (file.path, f"{file.path}.gz")]
    others = [place for place in file.places if isinstance(place, InFolder)]
    folder, cache = data_dir(), cache_dir() / "files"
    options = [(folder, place) for place in (*whole, *others)] if folder else []
    for base, place in (*options, (cache, whole[0])):
        paths = [base / part.split("!/")[0] for part in place.parts]
        if all(path.is_file() for path in paths):
            yield str(paths[0]), base, place
