"""One item's outcome, as a worker sends it back: a result, or an error that keeps its type."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import torch

from r2et.engine.base import RemoteError, WorkError, packed
from r2et.errors import R2ETError, first_line

THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def attempt(work: Callable[[Any], Any], item: Any) -> bytes:
    """Do one piece of work in a worker, with one thread, and pack what comes of it."""
    torch.set_num_threads(1)
    try:
        return packed("the result of work", (True, work(item), ""))
    except Exception as error:
        trace = traceback.format_exc()
        return pickle.dumps((False, sendable(error), trace))


def sendable(error: Exception) -> Exception:
    """The error itself if it survives the way, else one with its name and message."""
    try:
        again = pickle.loads(pickle.dumps(error))
        if type(again) is type(error) and str(again) == str(error):
            return error
    except Exception:  # whatever is wrong with it, it cannot be sent
        pass
    return WorkError(f"{type(error).__name__}: {first_line(error)}")


def unreadable(name: str, error: BaseException) -> R2ETError:
    """What is wrong with something that was sent, and could not be read where it arrived."""
    reason = f"{type(error).__name__}: {first_line(error)}"
    return R2ETError(f"engine: {name} must be readable in a worker, got {reason}.")


def unpack(outcome: bytes) -> Any:
    """The result, or the error raised here."""
    succeeded, value, trace = pickle.loads(outcome)
    if not succeeded:
        raise value from RemoteError(trace)
    return value
