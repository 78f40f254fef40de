"""Tasks: what is asked, its config, which names it, what it needs first, and how it is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from r2et.bench.record import Record
from r2et.config import config_key, plain


@dataclass(frozen=True)
class TaskResult:
    """What a task gives: what was measured, what is wrong with it, and a network's weights."""

    measured: dict[str, Any]
    unreliable: tuple[str, ...] = ()
    network: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TaskInput:
    """What a task gets from those it needs: the record, and the network where there is one."""

    record: Record
    network: bytes | None = field(default=None, repr=False)


class BenchTask(ABC):
    """Something to be done once. `here`: it is so cheap that no worker is asked."""

    here = False

    @property
    @abstractmethod
    def needs(self) -> tuple[BenchTask, ...]:
        """What must be done before."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain JSON with a name and a version."""

    @abstractmethod
    def do(self, inputs: tuple[TaskInput, ...]) -> TaskResult:
        """Do it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The readable part of its name."""

    @cached_property
    def name(self) -> str:
        """Of its record: what it is about, and the key of its config."""
        return f"{self.title}-{config_key(self.config())}"

    def reported(self) -> dict[str, Any] | None:
        """The papers' figures for the same thing."""
        return None


def task_config(name: str, version: int, **entries: Any) -> dict[str, Any]:
    """A task's config. Entries that are None are left out: one added later changes no key."""
    stated = {key: plain(value) for key, value in entries.items() if value is not None}
    return {"name": name, "version": version, **stated}
