"""The folders where files are looked for, and the switches of the environment."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from platformdirs import user_cache_path

from r2et.errors import require


def data_dir() -> Path | None:
    """The user's own folder of data, R2ET_DATA, or None where it is not set."""
    value = os.environ.get("R2ET_DATA", "")
    if not value:
        return None
    folder = Path(value).expanduser()
    require(folder.is_dir(), "R2ET_DATA", "the variable", "the path of a folder", value)
    return folder


def cache_dir() -> Path:
    """Where fetched files are kept: R2ET_CACHE, or the platform's place for caches."""
    if value := os.environ.get("R2ET_CACHE"):
        return Path(value).expanduser()
    # No author's folder around ours, and none below it: on Windows both are usual.
    return user_cache_path("r2et", appauthor=False, opinion=False)


def key(name: str) -> str:
    """A file name for any address or path."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def cache_lock(name: str) -> Path:
    """The file that is the lock called `name` in the cache."""
    return cache_dir() / "locks" / key(name)


def offline() -> bool:
    """Whether R2ET_OFFLINE forbids the network."""
    return os.environ.get("R2ET_OFFLINE", "").lower() not in {"", "0", "false", "no"}


def timeout() -> float:
    """Seconds without news from a server after which it counts as gone: R2ET_TIMEOUT, or 30."""
    value = os.environ.get("R2ET_TIMEOUT") or "30"
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    require(0 < seconds < 1e6, "R2ET_TIMEOUT", "the variable", "a positive number", value)
    return seconds
