"""A worker process: what it does, and how the process that started it sees it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

from r2et.engine.outcome import THREADS, attempt, unreadable

READY = b"ready"


def main(pipe: Connection) -> None:
    """Say that it is there; then take work and items until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work: Any = None
    failed: Exception | None = None
    try:
        pipe.send_bytes(READY)
        while True:
            kind, blob = pickle.loads(pipe.recv_bytes())
            if kind == "work":
                try:
                    work, failed = pickle.loads(blob), None
                except Exception as error:  # its module may not be importable here
                    failed = unreadable("work", error)
            elif failed is not None:
                pipe.send_bytes(pickle.dumps((False, failed, "while reading the work")))
            else:
                pipe.send_bytes(attempt(_Unpacked(work), blob))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


class _Unpacked:
    """Work on a packed item, so that an item that cannot be read is an error of its own."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __call__(self, blob: bytes) -> Any:
        try:
            item = pickle.loads(blob)
        except Exception as error:
            raise unreadable("items", error) from error
        return self.work(item)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class Worker:
    """One process, the item it has, and the work it knows."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=main, args=(theirs,), name="r2et worker", daemon=True)
        with _inherited():
            self.process.start()
        theirs.close()
        self.ready = False
        self.known: bytes | None = None  # the work that it has
        self.work: bytes | None = None  # the work of its item
        self.index: int | None = None  # of the item it has
        self.blob = b""

    def take(self, work: bytes, index: int, blob: bytes) -> None:
        """Give it an item; it is sent when the worker is ready."""
        self.work, self.index, self.blob = work, index, blob
        if self.ready:
            self.send()

    def send(self) -> None:
        """Send the item, and the work first where it does not know it. A dead worker is no error:
        its end is seen where all are waited for."""
        try:
            if self.known is not self.work:
                self.pipe.send_bytes(pickle.dumps(("work", self.work)))
                self.known = self.work
            self.pipe.send_bytes(pickle.dumps(("item", self.blob)))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self) -> bytes | None:
        """What it says; None if it is dead."""
        try:
            return self.pipe.recv_bytes()
        except (EOFError, OSError):  # at its end, reset, or in the middle of a message
            return None

    def end(self) -> str:
        """End it, busy or not, and say how it ended."""
        self.pipe.close()
        if self.index is not None and self.process.is_alive():
            self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        self.process.close()
        return f"signal {-code} ({_name(-code)})" if code < 0 else f"exit code {code}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


@contextmanager
def _inherited() -> Iterator[None]:
    """What a process is born with: one thread each, and deaf to Ctrl-C before its first line."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(THREADS)
    can_block = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_block else None
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
