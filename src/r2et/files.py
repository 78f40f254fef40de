"""Files that are there whole, or as they were before."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from r2et.errors import InputError, first_line, require

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet computes


def write(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it under its name."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        if part.exists():
            part.unlink()


def check_writable(where: str, name: str, path: str | os.PathLike[str]) -> None:
    """Before work is done for it: a file could be written here. Its folder is made."""
    target = _target(where, name, path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        target.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        part.unlink()
    except OSError as error:
        raise _refused(where, name, target, error) from error


def write_result(where: str, path: str | os.PathLike[str], content: str) -> None:
    """The same, for a result a user asked for: its folder is made, a failure is one sentence."""
    target = _target(where, "path", path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Half a pair of surrogates is no character: names from anywhere may hold one.
        write(target, content.encode(errors="replace"))
    except OSError as error:
        raise _refused(where, "path", target, error) from error


def write_new(where: str, name: str, path: str | os.PathLike[str], content: bytes) -> None:
    """The same, for a file that must not be there yet, whoever may be writing one meanwhile."""
    target = _target(where, name, path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write(part, content)
        try:
            os.link(part, target)  # unlike a rename, this fails where there is a file
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            check_new(where, name, target)
            os.replace(part, target)
    except OSError as error:
        if isinstance(error, FileExistsError):
            check_new(where, name, target)
        raise _refused(where, name, target, error) from error
    finally:
        if part.exists():
            part.unlink()


def check_new(where: str, name: str, path: str | os.PathLike[str]) -> None:
    """There is no such file yet."""
    there = os.path.lexists(_target(where, name, path))
    require(not there, where, name, "a file that is not there yet", f"{os.fspath(path)}")


@contextmanager
def scratch(where: str, prefix: str, files: Mapping[str, bytes]) -> Iterator[Path]:
    """A temporary folder with these files, by name; it is gone in the end."""
    folder = None
    try:
        folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        for name, content in files.items():
            target = Path(folder.name) / name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        if folder is not None:
            folder.cleanup()
        got = f"an error: {error.strerror or first_line(error)}"
        sentence = f"{where}: the temporary folder (TMPDIR) must have room for files, got {got}."
        raise InputError(sentence) from error
    with folder as name:
        yield Path(name)


def _target(where: str, name: str, path: str | os.PathLike[str]) -> Path:
    """The path of a file, which has a name at least."""
    is_path = isinstance(path, str | os.PathLike)
    require(is_path, where, name, "a path", path)
    target = Path(path)
    is_named = target.name != "" and "\0" not in os.fspath(path)
    require(is_named, where, name, "the path of a file", repr(os.fspath(path)))
    return target


def csv_text(frame: Any) -> str:
    """A DataFrame as CSV in which no text of somebody's table is a formula to a spreadsheet.

    Texts that begin like one get an apostrophe before them, which spreadsheets do not show.
    """
    safe = frame.copy()
    for name in frame.columns:
        safe[name] = [_cell(value) for value in frame[name]]
    safe.columns = [characters(name) for name in frame.columns]
    return str(safe.to_csv(index=False))


def characters(value: Any) -> Any:
    """A text without halves of surrogates, which are no characters; anything else as it is."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _cell(value: Any) -> Any:
    value = characters(value)
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _refused(where: str, name: str, path: Path, error: OSError) -> InputError:
    reason = f"{path} ({error.strerror or error})"
    return InputError(f"{where}: {name} must be a file that can be written, got {reason}.")
