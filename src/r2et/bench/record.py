"""Records: one JSON file per finished task, named by what was asked, written whole or not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r2et.errors import InputError, require
from r2et.files import write

FORMAT = "r2et-bench/1"
ASIDE = ".aside"
OTHERWISE = "it is of other settings than its name says"
OF_NETWORK = "of_network_sha256"  # in a measurement: the network that it is of


@dataclass(frozen=True)
class Record:
    """What came of one task.

    task: its settings. measured: what was found. reported: the papers' figures, None where there
    are none. unreliable: reasons not to trust the measured. failed: why there is nothing measured.
    made: versions, machine and durations, the part that differs from run to run.
    """

    task: dict[str, Any]
    measured: dict[str, Any] = field(default_factory=dict)
    reported: dict[str, Any] | None = None
    unreliable: tuple[str, ...] = ()
    failed: str | None = None
    made: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def told(self) -> dict[str, Any]:
        """Plain data for JSON; the name is that of the file."""
        return {
            "format": FORMAT,
            "task": self.task,
            "measured": self.measured,
            "reported": self.reported,
            "unreliable": list(self.unreliable),
            "failed": self.failed,
            "made": self.made,
        }

    @classmethod
    def of(cls, told: Any, name: str) -> Record:
        """From the same data; ValueError says what is wrong with it."""
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        kinds = {"task": dict, "measured": dict, "unreliable": list, "made": dict}
        for part, kind in kinds.items():
            if not isinstance(told.get(part), kind):
                raise ValueError(f"it has no {part}")
        words = [*told["unreliable"], told.get("failed") or ""]
        if not all(isinstance(word, str) for word in words):
            raise ValueError("its reasons are no sentences")
        return cls(
            task=told["task"],
            measured=told["measured"],
            reported=told.get("reported"),
            unreliable=tuple(told["unreliable"]),
            failed=told.get("failed"),
            made=told["made"],
            name=name,
        )

    def to_json(self) -> str:
        """The file's text; rows of numbers stay on one line."""
        return readable(self.told())


def readable(told: Mapping[str, Any]) -> str:
    """JSON for people too: indented, but a row of numbers on one line."""
    return _indented(told, "\n") + "\n"


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


def digest(settings: Mapping[str, Any]) -> str:
    """Sixteen letters that stand for settings, in whatever order they are given."""
    text = json.dumps(settings, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse(path: Path) -> Record:
    """A record's file; ValueError says what is wrong with it."""
    return Record.of(json.loads(path.read_text(encoding="utf-8")), path.stem)


def prepared(folder: str | os.PathLike[str]) -> Path:
    """The folder, with places for records and networks in it."""
    place = Path(folder)
    good = "\0" not in str(folder) and (place.is_dir() or not place.exists())
    require(good, "bench", "out", "a folder", str(folder))
    try:
        for part in ("records", "models"):
            (place / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(place, error) from error
    return place


class Records:
    """A folder of records and of the networks that belong to them.

    notes: files that were set aside, in sentences; say: is told each at once, as a run may end in
    an error. A record that cannot be read, or that says something else than its name, is renamed,
    never removed.
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

    def find(
        self, name: str, settings: Mapping[str, Any], needs: Iterable[str] = ()
    ) -> Record | None:
        """The record of this name, if it is there, of these settings, and has its network.

        needs: names of what it was measured of; of an older network, it does not count.
        """
        found = self._known.get(name)
        if found is None:
            return None
        path = self.folder / "records" / f"{name}.json"
        if found.task != json.loads(json.dumps(settings)):
            self._aside(path, OTHERWISE)
            return None
        of = found.measured.get(OF_NETWORK)
        trained = {self._known[n].measured.get("network_sha256") for n in needs if n in self._known}
        if of is not None and trained and of not in trained:
            self._aside(path, "it is of another network than the one that is here")
            return None
        network = found.measured.get("network_sha256")
        if network is not None:
            try:
                content = self.model(name)
            except OSError:
                self._aside(path, "its network is missing")
                return None
            if hashlib.sha256(content).hexdigest() != network:
                self._aside(path, "its network is not the one that it names")
                return None
        return found

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
            found = parse(path)
        except (ValueError, UnicodeDecodeError) as error:
            what = "half written or not JSON" if isinstance(error, json.JSONDecodeError) else error
            self._aside(path, str(what))
        except OSError as error:
            said = f"{path} ({error.strerror or error})"
            what = "files that can be read"
            raise InputError(f"bench: records must be {what}, got {said}.") from error
        else:
            if not path.stem.endswith(digest(found.task)):  # a copy, or renamed
                self._aside(path, OTHERWISE)
                return
            self._known[path.stem] = found

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
    found = f"{path} ({error.strerror or error}); what was there before is unchanged"
    return InputError(f"bench: out must be a folder to write in, got {found}.")
