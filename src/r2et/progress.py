"""A progress bar on the terminal, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Takes the amount of a step, and what to say beside the bar from now on."""

    def __call__(self, amount: int, note: str | None = None) -> None: ...


@contextmanager
def bar(
    label: str,
    done: int = 0,
    total: int | None = None,
    *,
    in_bytes: bool = False,
    show: bool = True,
) -> Iterator[Advance]:
    """Show how much of some work is done; gives a function that takes the amount of each step."""
    if not (show and sys.stderr.isatty()):
        yield lambda amount, note=None: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    end = (DownloadColumn(), TransferSpeedColumn()) if in_bytes else (TimeRemainingColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), *end)
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=done)

        def advance(amount: int, note: str | None = None) -> None:
            progress.advance(task, amount)
            if note is not None:
                progress.update(task, description=f"{label}  {note}")

        yield advance
