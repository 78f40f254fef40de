"""Files that are there whole, or as they were before."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import Any

from r2et.errors import InputError, require

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
    target = Path(path)
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
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Half a pair of surrogates is no character: names from anywhere may hold one.
        write(target, content.encode(errors="replace"))
    except OSError as error:
        raise _refused(where, "path", target, error) from error


def write_new(where: str, name: str, path: str | os.PathLike[str], content: bytes) -> None:
    """The same, for a file that must not be there yet, whoever may be writing one meanwhile."""
    target = Path(path)
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
    there = os.path.lexists(path)
    require(not there, where, name, "a file that is not there yet", f"{os.fspath(path)}")


def csv_text(frame: Any) -> str:
    """A DataFrame as CSV in which no text of somebody's table is a formula to a spreadsheet.

    Texts that begin like one get an apostrophe before them, which spreadsheets do not show.
    """
    safe = frame.copy()
    for name in frame.columns:
        safe[name] = [_cell(value) for value in frame[name]]
    return str(safe.to_csv(index=False))


def _cell(value: Any) -> Any:
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
