"""A progress bar on the terminal, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

Advance: TypeAlias = Callable[[int], None]


@contextmanager
def bar(label: str, done: int = 0, total: int | None = None) -> Iterator[Advance]:
    """Show how much of a download is here; gives a function that takes the bytes of each step."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=done)
        yield lambda count: progress.advance(task, count)
