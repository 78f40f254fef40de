"""Evidence in one file: members, a manifest of their digests, and nothing that unpacks itself.

The archive is a ZIP file whose members are stored as they are, in order and with one fixed date:
the same members are the same bytes everywhere, no member is larger than the file, and any tool can
open it. `manifest.json` names every member with its size and SHA-256; `SHA256SUMS` says the same,
and the manifest's own digest, for `sha256sum -c`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r2et.errors import InputError, first_line, require
from r2et.files import write_new

FORMAT = "r2et-pack/1"
MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
DATE = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP file can hold
MODE = (stat.S_IFREG | 0o644) << 16
# A plain name, or one in a folder: nothing that could lie elsewhere, on any system.
NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)?[A-Za-z0-9_][A-Za-z0-9_.-]*")
MOST_MEMBERS = 64


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal, as any tool computes it."""
    return hashlib.sha256(content).hexdigest()


def archive_bytes(members: Mapping[str, bytes]) -> bytes:
    """The archive of members, by name, with its manifest."""
    for name in members:
        is_valid = NAME.fullmatch(name) is not None and name not in (MANIFEST, SUMS)
        require(is_valid, "pack", "a member's name", "plain, at most in one folder", name)
    listed = {
        name: {"bytes": len(content), "sha256": digest(content)}
        for name, content in sorted(members.items())
    }
    manifest = _json({"format": FORMAT, "members": listed})
    sums = {MANIFEST: digest(manifest), **{name: own["sha256"] for name, own in listed.items()}}
    lines = "".join(f"{own}  {name}\n" for name, own in sums.items())
    written = {MANIFEST: manifest, SUMS: lines.encode(), **dict(sorted(members.items()))}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, content in written.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system, entry.external_attr = 3, MODE
            file.writestr(entry, content)
    return buffer.getvalue()


def write_archive(where: str, path: str | os.PathLike[str], members: Mapping[str, bytes]) -> None:
    """Write the archive, whole or not at all, where there is no file yet."""
    write_new(where, "path", path, archive_bytes(members))


def read_archive(where: str, path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The members of an archive, each as its manifest says; nothing is written anywhere."""
    odd = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    got = f"{os.fspath(path)}, a device or a pipe"  # which might never end
    require(not odd, where, "PACK", "a file that can be read", got)
    try:
        blob = Path(path).read_bytes()
    except OSError as error:
        got = f"{os.fspath(path)} ({error.strerror or error})"
        raise InputError(f"{where}: PACK must be a file that can be read, got {got}.") from error
    members = _members(where, os.fspath(path), blob)
    _check_members(where, members)
    kept = {name: content for name, content in members.items() if name not in (MANIFEST, SUMS)}
    # Bytes before, between or behind the members would be evidence that nobody checked.
    plain = archive_bytes(kept) == blob
    require(plain, where, "PACK", "its members and nothing else", "other bytes around them")
    return kept


def _members(where: str, path: str, blob: bytes) -> dict[str, bytes]:
    """All members by name, none of which lies elsewhere or is larger than the file."""
    expected = "a pack that `r2et audit --pack` wrote"
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as file:
            entries = file.infolist()
            _check_entries(where, entries, len(blob))
            return {entry.filename: _content(where, file, entry) for entry in entries}
    except zipfile.BadZipFile as error:
        got = f"{path} ({first_line(error)})"
        raise InputError(f"{where}: PACK must be {expected}, got {got}.") from error
    except InputError:
        raise
    # What zipfile makes of broken headers: many kinds of errors.
    except (ValueError, OSError, RuntimeError, NotImplementedError, EOFError, KeyError) as error:
        got = f"{path}, which cannot be read ({first_line(error)})"
        raise InputError(f"{where}: PACK must be {expected}, got {got}.") from error


def _check_entries(where: str, entries: list[zipfile.ZipInfo], size: int) -> None:
    require(len(entries) <= MOST_MEMBERS, where, "PACK", f"of {MOST_MEMBERS} files", len(entries))
    names: set[str] = set()
    for entry in entries:
        name = entry.filename
        # zipfile replaces what one system takes for a separator: what stood there counts.
        is_plain = all(NAME.fullmatch(own) is not None for own in (name, entry.orig_filename))
        expected = "of members that stay in its folder"
        require(is_plain, where, "PACK", expected, repr(entry.orig_filename))
        kind = stat.S_IFMT(entry.external_attr >> 16)
        regular = kind in (0, stat.S_IFREG)
        require(regular, where, "PACK", "of files alone", f"{name}, which is a link or a folder")
        once = name not in names
        require(once, where, "PACK", "of members that are there once", f"{name} twice")
        names.add(name)
        stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
        expected = "of members stored as they are"
        require(stored, where, "PACK", expected, f"{name}, which is compressed or encrypted")
    total = sum(entry.file_size for entry in entries)
    expected = f"of members no larger than itself, {size} bytes"
    require(total <= size, where, "PACK", expected, f"{total} bytes")


def _content(where: str, file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    try:
        return file.read(entry)
    except zipfile.BadZipFile as error:
        got = f"other bytes ({first_line(error)})"
        sentence = f"{where}: {entry.filename} must be as it was written, got {got}."
        raise InputError(sentence) from error


def _check_members(where: str, members: Mapping[str, bytes]) -> None:
    """Every member is there, and its digest that of the manifest and of the sums."""
    for name in (MANIFEST, SUMS):
        require(name in members, where, "PACK", f"one that holds {name}", "none")
    manifest = _manifest(where, members[MANIFEST])
    sums = _sums(where, members[SUMS])
    inside = set(members) - {MANIFEST, SUMS}
    if set(manifest) != inside and set(sums) == inside | {MANIFEST}:
        _refuse(where, MANIFEST)  # the sums name what is there: the manifest was changed
    for name in manifest:
        there = name in members
        require(there, where, "PACK", "whole", f"no {name}, which the manifest names")
    for name in sorted(inside):
        known = name in manifest
        require(known, where, "PACK", "of members that the manifest names", name)
    for name, entry in manifest.items():
        own = digest(members[name])
        if own != entry["sha256"]:
            # Where the sums agree with the member, it is the manifest that was changed.
            _refuse(where, MANIFEST if own == sums.get(name) else name)
        if len(members[name]) != entry["bytes"]:
            _refuse(where, MANIFEST)
    expected = {MANIFEST: digest(members[MANIFEST])}
    expected |= {name: entry["sha256"] for name, entry in manifest.items()}
    if sums != expected:
        _refuse(where, SUMS)


def _refuse(where: str, name: str) -> None:
    require(False, where, name, "as it was written (by SHA-256)", "other bytes")


def _manifest(where: str, content: bytes) -> dict[str, dict[str, Any]]:
    """name -> size and SHA-256 of the members that a manifest names."""
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        got = f"an error: {first_line(error)}"
        raise InputError(f"{where}: {MANIFEST} must be JSON, got {got}.") from error
    form = value.get("format") if isinstance(value, Mapping) else None
    newer = isinstance(form, str) and re.fullmatch(r"r2et-pack/\d+", form) is not None
    expected = f"{FORMAT!r}" + (" (a newer r2et wrote this: update r2et)" if newer else "")
    require(form == FORMAT, where, f"{MANIFEST}: format", expected, form)
    listed = value.get("members")
    is_valid = isinstance(listed, Mapping) and all(
        isinstance(own, Mapping)
        and set(own) == {"bytes", "sha256"}
        and isinstance(own["sha256"], str)
        for own in listed.values()
    )
    require(is_valid, where, f"{MANIFEST}: members", "an object of digests", "something else")
    if _json(value) != content:
        _refuse(where, MANIFEST)
    return {str(name): dict(own) for name, own in listed.items()}


def _sums(where: str, content: bytes) -> dict[str, str]:
    """name -> SHA-256 of the lines that `sha256sum` writes."""
    lines = content.decode("latin-1").split("\n")
    matches = [re.fullmatch(r"([0-9a-f]{64})  (\S+)", line) for line in lines[:-1]]
    if lines[-1] != "" or not all(matches):
        _refuse(where, SUMS)
    return {match[2]: match[1] for match in matches if match is not None}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
