"""Results on disk: a file is there whole, or as it was before."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from r2et.errors import InputError


def write_text(where: str, path: str | os.PathLike[str], text: str) -> None:
    """Write a file under another name in the same folder, then give it its own."""
    target = Path(path)
    name = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8"
        ) as handle:
            name = handle.name
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except OSError as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        found = f"{target} ({error.strerror or error})"
        raise InputError(f"{where}: path must be one that can be written, got {found}.") from error


def read_json(where: str, path: str | os.PathLike[str]) -> Any:
    """The JSON in a file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        found = f"{os.fspath(path)} ({error.strerror or error})"
        raise InputError(f"{where}: path must be a file that can be read, got {found}.") from error
    except (ValueError, RecursionError) as error:
        found = f"{os.fspath(path)}, which is not JSON or only the beginning of it"
        raise InputError(f"{where}: path must be an audit's JSON file, got {found}.") from error


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value
