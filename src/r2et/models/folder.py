"""Files of a stored network, read and written whole; what the system refuses is one sentence."""

from __future__ import annotations

import os
from pathlib import Path

from r2et.errors import InputError, require

LOCK = ".lock"


def folder_path(where: str, folder: str | os.PathLike[str]) -> Path:
    """The folder as a path that the operating system could have."""
    is_valid = isinstance(folder, str | os.PathLike) and isinstance(os.fspath(folder), str)
    require(is_valid, where, "folder", "a path", folder)
    require("\0" not in os.fspath(folder), where, "folder", "a path", repr(folder))
    return Path(folder)


def make_folder(where: str, folder: Path) -> None:
    """Make the folder, with the file that is its lock."""
    # Unlike the methods of Path, these give False for what is no path at all.
    taken = os.path.exists(folder) and not os.path.isdir(folder)
    require(not taken, where, "folder", "a folder", str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        reason = f"{folder} ({error.strerror or error})"
        raise InputError(f"{where}: folder must be one that can be made, got {reason}.") from error


def contents(where: str, path: Path) -> bytes:
    """What a file holds."""
    try:
        return path.read_bytes()
    except OSError as error:
        reason = f"{path} ({error.strerror or error})"
        raise InputError(f"{where}: folder must be one that can be read, got {reason}.") from error
