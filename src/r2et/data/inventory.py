"""What is known of each named data set without loading it: its files, and where they are."""

from __future__ import annotations

from typing import Any

from r2et.data.registry import DATASETS, Named, named
from r2et.data.sources import BUILT_IN, File, InFolder, Supplied, data_dir, locate, read, supplied

STATES = (BUILT_IN, "here", "to fetch", "to supply")


def state(name: str) -> str:
    """One of STATES; a file that is here is not read, so its checksum is not compared."""
    entry = named("state", name)
    places = {file: place_of(file) for file in entry.files}
    if set(places.values()) == {BUILT_IN}:
        return BUILT_IN
    missing = [file for file, place in places.items() if place is None]
    if not missing:
        return "here"
    return "to supply" if any(isinstance(file, Supplied) for file in missing) else "to fetch"


def place_of(file: File | Supplied) -> str | None:
    """Where a file is on this machine, or None."""
    if isinstance(file, File):
        return locate(file)
    folder = data_dir()
    path = folder / file.path if folder else None
    return str(path) if path and path.exists() else None


def about(name: str) -> dict[str, Any]:
    """A data set as plain data: name, summary, state, files."""
    entry = named("about", name)
    files = [_about_file(file) for file in entry.files]
    return {"name": name, "summary": entry.summary, "state": state(name), "files": files}


def about_all() -> list[dict[str, Any]]:
    """Name, summary and state of every data set."""
    return [
        {"name": name, "summary": entry.summary, "state": state(name)}
        for name, entry in DATASETS.items()
    ]


def get(name: str) -> list[str]:
    """Bring the files of a data set to this machine, and say where each is."""
    entry: Named = named("get", name)
    for file in entry.files:
        if isinstance(file, Supplied):
            supplied(name, file)
    read(name, [file for file in entry.files if isinstance(file, File)])
    return list(dict.fromkeys(place_of(file) or "" for file in entry.files))


def _about_file(file: File | Supplied) -> dict[str, Any]:
    found = {"path": file.path, "sha256": file.sha256, "where": place_of(file)}
    if isinstance(file, Supplied):
        return {**found, "supply": file.page, "reason": file.reason, "instead": file.instead}
    places = [str(place) for place in file.places if not isinstance(place, InFolder)]
    return {**found, "size": file.size, "places": places}
