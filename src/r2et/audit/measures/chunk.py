"""All measures of one chunk of rows, in this process or another."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from r2et.audit.input_rows import Chunk
from r2et.audit.measures.attacks import attacked_radius
from r2et.audit.measures.base import LATE, MEASURES, Measure, explained
from r2et.audit.settings import AuditSettings
from r2et.audit.statistics import Columns
from r2et.errors import InputError, RowError

WORST, ORDINARY = 8, 4  # rows that a page shows


@dataclass(frozen=True, eq=False)
class MeasuredChunk:
    """What a chunk came to.

    columns: one entry per row each.
    pictured: of the few rows that may be shown, their places in the chunk, their inputs, and what
        the attack made of them.
    skipped: measure -> why it says nothing about these rows.
    seconds: measure -> how long it took.
    """

    number: int
    fingerprint: str
    columns: Columns
    pictured: Columns
    skipped: dict[str, str]
    seconds: dict[str, float]


class MeasureChunk:
    """Measures the rows of a chunk; a value that can be sent to another process."""

    def __init__(self, model: nn.Module, settings: AuditSettings) -> None:
        self.model, self.settings = model, settings
        # Those of here and now: another process has not registered what this one has.
        self.measures: tuple[Measure, ...] = tuple(MEASURES.values())

    def __call__(self, chunk: Chunk) -> MeasuredChunk:
        rows = explained(self.model, self.settings, chunk)
        columns: Columns = {"index": chunk.index}
        skipped: dict[str, str] = {}
        seconds: dict[str, float] = {}
        for measure in self.measures:
            late = chunk.until is not None and time.time() > chunk.until
            if late and measure.name != "clean":
                skipped[measure.name] = LATE
                continue
            began = time.perf_counter()
            try:
                measured = measure.take(rows)
            except RowError as error:  # its row is one of the points tried, not one of those given
                skipped[measure.name] = f"{error.sentence}."
            except InputError as error:  # this measure cannot be taken of such a model
                skipped[measure.name] = str(error)
            else:
                columns.update({name: _own(value) for name, value in measured.items()})
            seconds[measure.name] = time.perf_counter() - began
        x_adv = columns.pop("x_adv", chunk.x.cpu())
        places = candidates(columns, first=chunk.number == 0)
        pictured = {"place": places, "x": chunk.x.cpu()[places], "x_adv": x_adv[places]}
        return MeasuredChunk(chunk.number, chunk.fingerprint, columns, pictured, skipped, seconds)


def _own(values: Tensor) -> Tensor:
    """A copy of a view, with which the whole that it is of would be sent and kept."""
    values = values.detach().cpu()
    alone = values.untyped_storage().nbytes() == values.numel() * values.element_size()
    return values if alone else values.clone(memory_format=torch.contiguous_format)


def candidates(columns: Columns, *, first: bool) -> Tensor:
    """Places of the rows that may be shown: the worst and, of the first chunk, its first."""
    worst = worst_first(columns)[:WORST]
    ordinary = torch.arange(min(ORDINARY, len(columns["index"]))) if first else worst[:0]
    return torch.tensor(sorted({*worst.tolist(), *ordinary.tolist()}))


def worst_first(columns: Columns) -> Tensor:
    """Places in order of how badly the rows fared: smallest P@k, then the smallest change."""
    rows = len(columns["index"])
    precision = columns.get("precision_strong", torch.ones(rows)).double()
    radius = attacked_radius(columns)
    if bool(radius.isnan().all()):  # changes that have no radius still have a size
        radius = columns.get("distance_strong", radius).double()
    by_change = torch.argsort(radius, stable=True)
    return by_change[torch.argsort(precision[by_change], stable=True)]
