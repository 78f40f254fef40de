"""Rows for an audit, from an array or a stream, in chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from r2et.audit.decided_class import DecidedClass
from r2et.audit.settings import WHERE
from r2et.checks import check_input
from r2et.errors import InputError, require
from r2et.results import INCLUDED, TrainingRows
from r2et.train.seen_rows import (
    TRAINING,
    UNSEEN,
    VALIDATION,
    RowKeys,
    RowRecogniser,
    SeenRows,
    fingerprints,
)

UNSEEN_ROWS = (
    "rows that the training has not seen ({others}with all_rows=True, --all-rows, all are)"
)
TEST_PART = "without any, its test part is audited; "


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows measured together.

    number: of the chunk.
    index: (B,) the rows' numbers in what was given.
    x, y: inputs (B, ...), and classes (B,) or None.
    until: when time is up, in seconds since 1970; None if never.
    behaviour: a digest of what the model makes of them, where results are kept.
    """

    number: int
    index: Tensor
    x: Tensor
    y: Tensor | None
    until: float | None = None
    behaviour: str = ""

    @property
    def fingerprint(self) -> str:
        """What tells these rows, and what the model makes of them, from others."""
        sha256 = hashlib.sha256(self.index.numpy().tobytes() + self.behaviour.encode())
        sha256.update(repr((tuple(self.x.shape), self.x.dtype)).encode())
        sha256.update(self.x.contiguous().cpu().view(torch.uint8).numpy().tobytes())
        if self.y is not None:
            sha256.update(self.y.cpu().numpy().tobytes())
        return sha256.hexdigest()[:32]


@dataclass
class KnownRows:
    """How many of the rows given a model's training has seen.

    given: rows there were.
    training, validation: those that it was trained on, and that it was watched or chosen by.
    alike: rows left that are the same as a training row in every column, by chance.
    included: whether they are audited too.
    """

    included: bool
    given: int = 0
    training: int = 0
    validation: int = 0
    alike: int = 0

    def to_dict(self) -> TrainingRows:
        """Plain data for the result."""
        label = INCLUDED if self.included and self.training + self.validation else ""
        return {
            "given": self.given,
            "training": self.training,
            "validation": self.validation,
            "alike": self.alike,
            "included": self.included,
            "label": label,
        }

    def add(self, parts: NDArray[np.int8]) -> None:
        """Count rows by the part of the training that they are of."""
        self.given += len(parts)
        self.training += int((parts == TRAINING).sum())
        self.validation += int((parts == VALIDATION).sum())


class InputRows:
    """x and y as they were given.

    given, total: rows there are, and rows to take; None for a stream that does not say.
    first: one row, on the model's device and in its precision.
    names: of a DataFrame's columns.
    ended: all rows that were asked for have been taken.
    known: of a model whose training is known, how many of the rows it has seen.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Any,
        y: Any,
        rows: int | None,
        seen: SeenRows | None = None,
        *,
        all_rows: bool = False,
        where: str = WHERE,
        only: DecidedClass | None = None,
    ) -> None:
        require(isinstance(model, nn.Module), WHERE, "model", "a torch.nn.Module", model)
        is_valid = rows is None or (type(rows) is int and rows > 0)
        require(is_valid, WHERE, "rows", "None or a positive whole number", rows)
        self.like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        self.names: tuple[str, ...] | None = None
        columns = getattr(x, "columns", None)
        if columns is not None and hasattr(x, "to_numpy"):
            self.names, x = tuple(map(str, columns)), _table(x)
        self.rows = rows
        self.ended = False
        self.seen, self.all_rows, self.where, self.only = seen, all_rows, where, only
        self.recogniser: RowRecogniser | None = None
        self.known = None if seen is None else KnownRows(included=all_rows)
        self.x: Tensor | None = None
        self.y: Tensor | None = None
        if isinstance(x, Tensor | np.ndarray | list | tuple):
            self.x = self._inputs(x)
            self.y = None if y is None else _labels(y, len(self.x))
            self.given: int | None = len(self.x)
            self.places = self._decided(self.x, self._held_out(self.x, self.y))
            self.total: int | None = min(len(self.places), rows or len(self.places))
            self.first = self.x[self.places[:1].to(self.x.device)]
        else:
            is_valid = isinstance(x, Iterable)
            expected = "a tensor, an array, a DataFrame or batches of rows such as a DataLoader"
            require(is_valid, WHERE, "x", expected, type(x).__name__)
            expected = "left out: the batches hold the labels, as (x, y)"
            require(y is None, WHERE, "y", expected, type(y).__name__)
            self.given = self.total = None
            # Read once: what is taken from an iterator is gone from it.
            batches = iter(x)
            start = next(batches, None)
            self.first = self._inputs(_pair(start)[0], "x of batch 0")[:1]
            self.batches = chain([start], batches)

    def chunks(self, size: int, generator: torch.Generator) -> Iterator[Chunk]:
        """Rows in a random order, so that the first few speak for all; a stream in its own."""
        if self.x is None:
            yield from self._streamed(size)
            self.ended = True
            return
        order = self.places[torch.randperm(len(self.places), generator=generator)[: self.total]]
        for number, start in enumerate(range(0, len(order), size)):
            # Not a view: sent to another process, it would take the whole order with it.
            index = order[start : start + size].clone()
            labels = None if self.y is None else self.y[index]
            yield Chunk(number, index, self.x[index.to(self.x.device)], labels)
        self.ended = True

    def _streamed(self, size: int) -> Iterator[Chunk]:
        number, taken, read, held, held_y = 0, 0, 0, self.first[:0], None
        index = torch.arange(0)
        labelled: bool | None = None
        for place, batch in enumerate(self.batches):
            part, labels = _pair(batch)
            x = self._inputs(part, f"x of batch {place}")
            same = x.shape[1:] == self.first.shape[1:]
            shape = tuple(self.first.shape[1:])
            require(same, WHERE, "x", f"batches of rows of one shape {shape}", x)
            y = None if labels is None else _labels(labels, len(x))
            labelled = y is not None if labelled is None else labelled
            is_uniform = (y is not None) == labelled
            without = "without" if labelled else "with"
            got = f"batch {place} {without} labels"
            require(is_uniform, WHERE, "x", "batches that all hold labels, or none", got)
            kept = self._unseen(x, y, labelled)
            if self.only is not None and len(kept):
                kept = kept[self.only(x[kept.to(x.device)])]
            index, read = torch.cat([index, read + kept]), read + len(x)
            x, y = x[kept.to(x.device)], None if y is None else y[kept]
            held = torch.cat([held, x])
            held_y = y if held_y is None or y is None else torch.cat([held_y, y])
            while len(held) >= size and not self._enough(taken):
                yield self._cut(number, taken, index[:size], held[:size], held_y)
                number, taken, held, index = number + 1, taken + size, held[size:], index[size:]
                held_y = None if held_y is None else held_y[size:]
            if self._enough(taken):
                return
        if len(held) and not self._enough(taken):
            yield self._cut(number, taken, index, held, held_y)
        if self.only is not None:
            self._check_decided(taken + len(held), read)
        require(taken + len(held) > 0, self.where, "x", self._unseen_rows(), f"{read}, all seen")

    def _decided(self, x: Tensor, places: Tensor) -> Tensor:
        """Those of the places whose rows are decided for the class asked for."""
        if self.only is None:
            return places
        kept = places[self.only(x[places.to(x.device)])] if len(places) else places
        self._check_decided(len(kept), len(places))
        return kept

    def _check_decided(self, kept: int, rows: int) -> None:
        assert self.only is not None
        got = f"{self.only.label}, none of {rows}"
        require(kept > 0, self.where, "only", "a class that some rows are decided for", got)

    def _held_out(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Places of the rows to audit: those that the training has not seen, or all."""
        places = torch.arange(len(x))
        if self.seen is None or self.known is None:
            return places
        recognised = self.seen.parts(x, y)
        self.known.add(recognised.parts)
        self.known.alike = recognised.alike
        if self.all_rows:
            return places
        unseen = places[torch.from_numpy(recognised.parts == UNSEEN)]
        require(len(unseen) > 0, self.where, "x", self._unseen_rows(), f"{len(x)}, all seen")
        return unseen

    def _unseen_rows(self) -> str:
        """What can be audited where all rows given are the training's own."""
        kept = self.seen is not None and self.seen.held_out is not None
        return UNSEEN_ROWS.format(others=TEST_PART if kept else "")

    def _unseen(self, x: Tensor, y: Tensor | None, labelled: bool) -> Tensor:
        """The same for a batch of a stream, row by row: what comes after it is not known."""
        if self.seen is None or self.known is None:
            return torch.arange(len(x))
        if self.recogniser is None:
            self.recogniser = RowRecogniser(self.seen, labelled=labelled)
        parts = self.recogniser(RowKeys(fingerprints(x), y))
        self.known.add(parts)
        return torch.arange(len(x))[torch.from_numpy((parts == UNSEEN) | self.all_rows)]

    def _enough(self, taken: int) -> bool:
        return self.rows is not None and taken >= self.rows

    def _cut(self, number: int, taken: int, index: Tensor, x: Tensor, y: Tensor | None) -> Chunk:
        most = len(x) if self.rows is None else min(len(x), self.rows - taken)
        labels = None if y is None else y[:most]
        return Chunk(number, index[:most], x[:most], labels)

    def _inputs(self, x: Any, name: str = "x") -> Tensor:
        """Rows on the model's device and in its precision; NaN and the like are named."""
        try:
            rows = x if isinstance(x, Tensor) else torch.from_numpy(np.array(x))
        except (TypeError, ValueError) as error:
            kind = getattr(x, "dtype", type(x).__name__)
            text = f"{WHERE}: {name} must be numbers (encode text columns first), got {kind}."
            raise InputError(text) from error
        plain = rows.layout == torch.strided and not rows.is_complex()
        require(plain, WHERE, name, "dense and of real numbers", f"{rows.layout}, {rows.dtype}")
        rows = rows.detach().to(self.like.device, self.like.dtype)
        check_input(WHERE, rows, name)
        return rows


def _pair(batch: Any) -> tuple[Any, Any]:
    """The rows of a batch, and the labels if it has them."""
    require(batch is not None, WHERE, "x", "at least one batch", "none")
    if isinstance(batch, list | tuple):
        is_valid = len(batch) in (1, 2)
        require(is_valid, WHERE, "x", "batches x or (x, y)", f"{len(batch)} parts")
        return batch[0], batch[1] if len(batch) == 2 else None
    is_valid = not isinstance(batch, Mapping)
    require(is_valid, WHERE, "x", "batches x or (x, y)", type(batch).__name__)
    return batch, None


def _table(frame: Any) -> Any:
    """A DataFrame's numbers: columns of several numeric kinds have one in common."""
    numbers = frame.to_numpy()
    if numbers.dtype != object:
        return numbers
    numeric = all(getattr(kind, "kind", "O") in "biuf" for kind in frame.dtypes)
    return frame.astype("float64").to_numpy() if numeric else numbers


def _labels(y: Any, rows: int) -> Tensor:
    """Classes (rows,) as whole numbers from 0 on."""
    expected = f"{rows} classes, as whole numbers 0, 1, ... in the order of the model's outputs"
    try:
        labels = y.detach().cpu() if isinstance(y, Tensor) else torch.from_numpy(np.array(y))
    except (TypeError, ValueError):
        labels = torch.empty(0)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    shaped = labels.shape == (rows,) and not labels.is_complex()
    kind = getattr(y, "dtype", type(y).__name__)
    require(shaped, WHERE, "y", expected, f"{kind} of shape {tuple(np.shape(y))}")
    unsigned = labels.dtype in (torch.uint16, torch.uint32, torch.uint64)
    labels = labels.long() if unsigned else labels
    whole = labels.long()
    is_valid = bool((whole == labels).all()) and int(whole.min()) >= 0
    require(
        is_valid, WHERE, "y", expected, f"{labels[(whole != labels) | (whole < 0)][:1].tolist()}"
    )
    return whole
