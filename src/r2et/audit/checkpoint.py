"""MeasuredChunk chunks on disk, so that a stopped audit goes on where it was."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from r2et.audit.measures import MeasuredChunk
from r2et.audit.settings import WHERE
from r2et.audit.statistics import Columns
from r2et.config import first_difference
from r2et.errors import InputError, require
from r2et.lock import take

FORMAT = "r2et-audit-part/2"
OWN = re.compile(r"\.r2et-audit-[0-9a-f]{12}\.partial")  # as the command line calls its own


class AuditCheckpoint:
    """A file with one line of JSON per measured chunk, after one that says of which audit.

    A line that was not finished when the writing stopped is left out, and written over.
    taken, stale: rows that were taken over from it, and rows in it that are others now.
    """

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self.path, self.identity = Path(path), identity
        self.done: dict[int, MeasuredChunk] = {}
        self.taken = self.stale = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A device or a pipe could be read for ever.
            is_file = not self.path.exists() or self.path.is_file()
            require(is_file, WHERE, "partial", "a file", f"{self.path}, which is none")
            number = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            # Unbuffered: what a full disk refuses is not tried again when the file is closed.
            self.handle: IO[bytes] = open(number, "r+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._refused(error) from error
        try:
            expected = "a file that no other audit is writing"
            require(take(self.handle), WHERE, "partial", expected, str(self.path))
            end = self._read(self.handle.read())
            self.handle.truncate(end)
            self.handle.seek(end)
            if not end:
                self._write(self._head())
        except BaseException:
            self.close()
            raise

    def take(self, number: int, fingerprint: str) -> MeasuredChunk | None:
        """What is kept of a chunk with this fingerprint, if it is that of this very one."""
        done = self.done.get(number)
        if done is None or "index" not in done.columns:
            return None
        rows, same = len(done.columns["index"]), done.fingerprint == fingerprint
        self.taken, self.stale = self.taken + rows * same, self.stale + rows * (not same)
        return done if same else None

    def add(self, measured: MeasuredChunk) -> None:
        """Keep a chunk, from this moment on."""
        self.done[measured.number] = measured
        value = {
            "number": measured.number,
            "fingerprint": measured.fingerprint,
            "columns": {name: _packed(value) for name, value in measured.columns.items()},
            "pictured": {name: _packed(value) for name, value in measured.pictured.items()},
            "skipped": measured.skipped,
            "seconds": measured.seconds,
        }
        self._write(_line(value))

    def close(self) -> None:
        """Leave the file as it is."""
        self.handle.close()

    def _head(self) -> bytes:
        return _line({"format": FORMAT, "audit": self.identity})

    def _write(self, left: bytes) -> None:
        try:
            while left:
                left = left[self.handle.write(left) :]
            os.fsync(self.handle.fileno())
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> InputError:
        text = f"{WHERE}: partial must be a file that can be written, got {self.path}"
        return InputError(f"{text} ({error.strerror or error}).")

    def _read(self, content: bytes) -> int:
        """Take what is there; returns where the last whole line ends."""
        expected = "a file that an audit of the same rows, model and settings left (or remove it)"
        lines = content.splitlines(keepends=True)
        if not lines or not lines[0].endswith(b"\n"):
            begun = not lines or self._head().startswith(lines[0])
            require(begun, WHERE, "partial", expected, f"{self.path} (of something else)")
            return 0
        difference = self._difference(lines[0])
        if difference is not None and self._own(lines[0]):
            return 0
        require(difference is None, WHERE, "partial", expected, f"{self.path} ({difference})")
        end = len(lines[0])
        for line in lines[1:]:
            value = _parsed(line)
            if value is None or not line.endswith(b"\n"):
                break
            measured = _measured(value)
            if measured is None:
                break
            self.done[measured.number] = measured
            end += len(line)
        return end

    def _difference(self, head: bytes) -> str | None:
        """How the file's audit differs from this one, in words; None where it is the same."""
        value = _parsed(head)
        audit = None if value is None else value.get("audit")
        if value is None or "audit" not in value:
            return "of something else"
        if value.get("format") != FORMAT or not isinstance(audit, dict):
            return "of another version of r2et"
        return first_difference(audit, self.identity)

    def _own(self, head: bytes) -> bool:
        """Whether the command line made the file, which nobody asked for: rows of other numbers, or
        another version, then start it anew instead of being refused for it."""
        value = _parsed(head)
        made = value is not None and str(value.get("format")).startswith("r2et-audit-part/")
        return made and OWN.fullmatch(self.path.name) is not None


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode() + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _measured(value: dict[str, Any]) -> MeasuredChunk | None:
    try:
        return MeasuredChunk(
            number=int(value["number"]),
            fingerprint=str(value["fingerprint"]),
            columns=_columns(value["columns"]),
            pictured=_columns(value["pictured"]),
            skipped=dict(value["skipped"]),
            seconds=dict(value["seconds"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError):
        return None


def _columns(value: dict[str, Any]) -> Columns:
    return {name: _unpacked(packed) for name, packed in value.items()}


def _packed(value: Tensor) -> dict[str, Any]:
    """A tensor as JSON, to the bit."""
    raw = value.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    kind = str(value.dtype).removeprefix("torch.")
    return {"dtype": kind, "shape": list(value.shape), "data": base64.b64encode(raw).decode()}


def _unpacked(value: dict[str, Any]) -> Tensor:
    raw = base64.b64decode(value["data"], validate=True)
    kind = getattr(torch, value["dtype"])
    flat = torch.from_numpy(np.frombuffer(raw, dtype=np.uint8).copy())
    return flat.view(kind).view(value["shape"])
