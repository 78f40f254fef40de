"""What is known of each named data set without loading it: its files, and where they are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from r2et.data.registry import DATASETS, dataset_entry
from r2et.data.sources import BUILT_IN, File, InFolder, Supplied, data_dir, locate, read, supplied

STATES = (BUILT_IN, "here", "to fetch", "to supply")


def state(name: str) -> str:
    """One of STATES; a file that is here is not read, so its checksum is not compared."""
    entry = dataset_entry("state", name)
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


def about(name: str, where: str = "about") -> dict[str, Any]:
    """A data set as plain data: name, summary, state, shape of x, k, source, files."""
    entry = dataset_entry(where, name)
    return {
        "name": name,
        "summary": entry.line,
        "state": state(name),
        "shape": entry.shape,
        "k": entry.k,
        "source": asdict(entry.source),
        "files": [_about_file(file) for file in entry.files],
    }


def about_all() -> list[dict[str, Any]]:
    """Name, summary and state of every data set."""
    return [
        {"name": name, "summary": entry.line, "state": state(name)}
        for name, entry in DATASETS.items()
    ]


def get(name: str, where: str = "get") -> list[str]:
    """Bring the files of a data set to this machine, and say where each is."""
    entry = dataset_entry(where, name)
    for file in entry.files:
        if isinstance(file, Supplied):
            supplied(name, file)
    read(name, [file for file in entry.files if isinstance(file, File)])
    return list(dict.fromkeys(place_of(file) or "" for file in entry.files))


def _about_file(file: File | Supplied) -> dict[str, Any]:
    known = {"path": file.path, "where": place_of(file)}
    if isinstance(file, Supplied):
        advice = {"supply": file.page, "reason": file.reason, "instead": file.instead}
        # Not what the user's file must be: another one is read as well, and noted.
        return {**known, **advice, "measured_on_sha256": file.sha256}
    places = [str(place) for place in file.places if not isinstance(place, InFolder)]
    return {**known, "sha256": file.sha256, "size": file.size, "places": places}
