"""Data that only the user has: a file or folder in a documented format, never fetched."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2et.data.sources.folders import data_dir
from r2et.errors import InputError, UnavailableError, describe, first_line


@dataclass(frozen=True)
class Supplied:
    """A file or folder that the user puts into R2ET_DATA.

    page: where its format is described. reason: why it is not fetched. instead: the data set that
    stands in for it. sha256: of the copy our figures were measured on, where there is one.
    """

    path: str
    page: str
    reason: str
    instead: str = ""
    sha256: str = ""

    def note(self, contents: bytes) -> tuple[str, ...]:
        """What to say about a copy that is not the one our figures were measured on."""
        digest = hashlib.sha256(contents).hexdigest()
        if digest == self.sha256 or not self.sha256:
            return ()
        return (f"your own copy of {self.path}, SHA-256 {digest}",)


def supplied(name: str, wanted: Supplied) -> Path:
    """Where the user's copy is, or one sentence that says what to supply."""
    folder = data_dir()
    if folder is not None and (folder / wanted.path).exists():
        return folder / wanted.path
    other = f", or use the stand-in {wanted.instead!r}" if wanted.instead else ""
    raise UnavailableError(
        f"{name}: {wanted.path} is not in R2ET_DATA ({folder or 'not set'}), and is not fetched "
        f"because {wanted.reason}; put your copy, as {wanted.page} describes it, into a folder as "
        f"{wanted.path} and set R2ET_DATA to that folder{other}."
    )


def supplied_arrays(name: str, wanted: Supplied) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """The arrays of the user's .npz, and what to note about it; pickles are never opened."""
    path = supplied(name, wanted)
    try:
        contents = path.read_bytes()
        stored = np.load(io.BytesIO(contents), allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise InputError("a single array")
        with stored:
            return {key: stored[key] for key in stored.files}, wanted.note(contents)
    except Exception as error:
        # Anything: NumPy and zipfile raise a dozen kinds over bytes that they did not write.
        reason = error.strerror if isinstance(error, OSError) else None
        got = describe(reason or first_line(error))
        expected = "an .npz file without pickles"
        raise InputError(f"{name}: {wanted.path} must be {expected}, got {got}.") from error
