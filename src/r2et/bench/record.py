"""Records: one JSON file per finished task, named by what was asked, written whole or not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r2et.config import config_key
from r2et.errors import InputError, require
from r2et.files import write

FORMAT = "r2et-bench/2"
ASIDE = ".aside"
OTHERWISE = "it is of another config than its name says"
OF_NETWORK = "of_network_sha256"  # in a measurement: the network that it is of


@dataclass(frozen=True)
class Record:
    """What came of one task.

    config: that of the task.
    measured: what was measured.
    reported: the papers' figures, None where there are none.
    unreliable: reasons not to trust the measured.
    failed: why there is nothing measured.
    made: versions, machine and durations, the part that differs from run to run.
    name: of its file.
    """

    config: dict[str, Any]
    measured: dict[str, Any] = field(default_factory=dict)
    reported: dict[str, Any] | None = None
    unreliable: tuple[str, ...] = ()
    failed: str | None = None
    made: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the name is that of the file."""
        return {
            "format": FORMAT,
            "config": self.config,
            "measured": self.measured,
            "reported": self.reported,
            "unreliable": list(self.unreliable),
            "failed": self.failed,
            "made": self.made,
        }

    @classmethod
    def from_dict(cls, stored: Any, name: str) -> Record:
        """From the same data; ValueError says what is wrong with it."""
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        kinds = {"config": dict, "measured": dict, "unreliable": list, "made": dict}
        for part, kind in kinds.items():
            if not isinstance(stored.get(part), kind):
                raise ValueError(f"it has no {part}")
        reasons = [*stored["unreliable"], stored.get("failed") or ""]
        if not all(isinstance(reason, str) for reason in reasons):
            raise ValueError("its reasons are no sentences")
        return cls(
            config=stored["config"],
            measured=stored["measured"],
            reported=stored.get("reported"),
            unreliable=tuple(stored["unreliable"]),
            failed=stored.get("failed"),
            made=stored["made"],
            name=name,
        )

    def to_json(self) -> str:
        """The file's text; rows of numbers stay on one line."""
        return readable(self.to_dict())


def readable(data: Mapping[str, Any]) -> str:
    """JSON for people too: indented, but a row of numbers on one line."""
    return _indented(data, "\n") + "\n"


def _indented(value: Any, margin: str) -> str:
    plain = json.dumps(value, allow_nan=False, ensure_ascii=False)
    inner = margin + " "
    if isinstance(value, Mapping) and value:
        lines = [f"{json.dumps(str(n))}: {_indented(v, inner)}" for n, v in value.items()]
        return "{" + inner + f",{inner}".join(lines) + margin + "}"
    if isinstance(value, list | tuple) and any(
        isinstance(v, Mapping | list | tuple) for v in value
    ):
        return "[" + inner + f",{inner}".join(_indented(v, inner) for v in value) + margin + "]"
    return plain


def parse(path: Path) -> Record:
    """A record's file; ValueError says what is wrong with it."""
    return Record.from_dict(json.loads(path.read_text(encoding="utf-8")), path.stem)


def prepared(folder: str | os.PathLike[str]) -> Path:
    """The folder, with places for records and networks in it."""
    place = Path(folder)
    usable = "\0" not in str(folder) and (place.is_dir() or not place.exists())
    # The current folder by mistake is soon full of records: whoever means it says ".".
    require(usable and str(folder) != "", "bench", "out", "a folder", str(folder) or "nothing")
    try:
        for part in ("records", "models"):
            (place / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(place, error) from error
    return place


class Records:
    """A folder of records and of the networks that belong to them.

    notes: files that were set aside, in sentences.
    say: hears each at once, as a run may end in an error.
    A record that cannot be read, or that says something else than its name, is renamed, never
    removed.
    """

    def __init__(
        self, folder: str | os.PathLike[str], say: Callable[[str], None] | None = None
    ) -> None:
        self.folder, self.say = prepared(folder), say
        self.notes: list[str] = []
        for part in ("records", "models", "claims"):
            for left in (self.folder / part).rglob(".*.part"):  # a killed process was writing these
                left.unlink(missing_ok=True)
        self._known: dict[str, Record] = {}
        for path in sorted((self.folder / "records").glob("*.json")):
            self._read(path)

    def find(self, name: str, needs: Iterable[str] = ()) -> Record | None:
        """The record of this name, if it is there and has its network.

        needs: names of what it was measured of; of an older network, it does not count.
        """
        record = self._known.get(name)
        if record is None:
            return None
        path = self.folder / "records" / f"{name}.json"
        of = record.measured.get(OF_NETWORK)
        trained = {self._known[n].measured.get("network_sha256") for n in needs if n in self._known}
        if of is not None and trained and of not in trained:
            self._aside(path, "it is of another network than the one that is here")
            return None
        network = record.measured.get("network_sha256")
        if network is not None:
            try:
                content = self.model(name)
            except OSError:
                self._aside(path, "its network is missing")
                return None
            if hashlib.sha256(content).hexdigest() != network:
                self._aside(path, "its network is not the one that it names")
                return None
        return record

    def model(self, name: str) -> bytes:
        """The stored weights that belong to a record."""
        return (self.folder / "models" / f"{name}.safetensors").read_bytes()

    def save(self, record: Record, network: bytes | None = None) -> Record:
        """Write a record, after the network that it speaks of."""
        try:
            if network is not None:
                write(self.folder / "models" / f"{record.name}.safetensors", network)
            path = self.folder / "records" / f"{record.name}.json"
            write(path, record.to_json().encode())
        except OSError as error:
            raise refused(self.folder, error) from error
        self._known[record.name] = parse(path)
        return self._known[record.name]

    def all(self) -> list[Record]:
        """Every record there is."""
        return list(self._known.values())

    def _read(self, path: Path) -> None:
        if path.is_dir():
            self._aside(path, "it is a folder")
            return
        try:
            record = parse(path)
            key = config_key(record.config)
        except (ValueError, TypeError, RecursionError) as error:
            broken = isinstance(error, json.JSONDecodeError)
            self._aside(path, "half written or not JSON" if broken else str(error))
        except OSError as error:
            place = f"{path} ({error.strerror or error})"
            text = f"bench: records must be files that can be read, got {place}."
            raise InputError(text) from error
        else:
            if not path.stem.endswith(key):  # a copy, or renamed
                self._aside(path, OTHERWISE)
                return
            self._known[path.stem] = record

    def _aside(self, path: Path, why: str) -> None:
        number, new = 1, path.with_name(path.name + ASIDE)
        while new.exists():
            number += 1
            new = path.with_name(f"{path.name}{ASIDE}{number}")
        try:
            path.rename(new)
        except OSError as error:
            raise refused(path, error) from error
        self._known.pop(path.stem, None)
        self.notes.append(f"bench: {path} was set aside as {new.name}: {why}.")
        if self.say is not None:
            self.say(self.notes[-1])


def refused(path: Path, error: OSError) -> InputError:
    """What the system said about a file, in one sentence."""
    place = f"{path} ({error.strerror or error}); what was there before is unchanged"
    return InputError(f"bench: out must be a folder to write in, got {place}.")
