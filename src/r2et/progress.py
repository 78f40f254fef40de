"""A progress bar for long work: on stderr, only on a terminal, only when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(title: str, total: int, show: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with each amount of work done."""
    if not show:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bars:
        task = bars.add_task(title, total=total)
        yield lambda amount: bars.advance(task, amount)
