"""One exception tree, and one form of sentence for everything that is wrong with an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class R2ETError(Exception):
    """Everything this library raises on purpose."""


class InputError(R2ETError, ValueError):
    """An argument, a model or a file that cannot be used; the message says what to give instead."""


class RowError(InputError):
    """Something wrong with what a model makes of one row; whoever split a batch renumbers it."""

    def __init__(self, sentence: str, row: int) -> None:
        super().__init__(f"{sentence} in row {row}.")
        self.sentence, self.row = sentence, row


class UnavailableError(R2ETError):
    """Named data that is not here and could not be fetched; the message says what to do."""


@contextmanager
def row_numbers(number: Callable[[int], int]) -> Iterator[None]:
    """A RowError from within gets the row's number outside."""
    try:
        yield
    except RowError as error:
        raise RowError(error.sentence, number(error.row)) from error.__cause__


def require(ok: bool, where: str, name: str, expected: str, value: Any) -> None:
    """Raise InputError("{where}: {name} must be {expected}, got {value}.") unless ok."""
    if not ok:
        sentence = f"{where}: {_short(name)} must be {_short(expected)}, got {describe(value)}."
        raise InputError(printable(sentence))


def printable(text: str) -> str:
    """The text on one line, with line breaks and terminal codes of a name or label spelled out."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    )


def first_line(error: BaseException) -> str:
    """What an error says, on one line and without its full stop."""
    lines = str(error).strip().split("\n")
    return " ".join(lines[0].split()).rstrip(".") or "no message"


def describe(value: Any) -> str:
    """A value as an error message shows it: short, on one line."""
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        return f"{kind} tensor of shape {tuple(value.shape)} on {value.device}"
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:197]}..."


def _short(text: str, longest: int = 1000) -> str:
    """A part of a sentence, cut where names within it were made to fill the screen."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
