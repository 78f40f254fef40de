"""Chunks of an audit: those that a stopped one has measured, and those still to measure."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from r2et.audit.checkpoint import AuditCheckpoint
from r2et.audit.input_rows import Chunk, InputRows
from r2et.audit.linear_baseline import LinearBaseline
from r2et.audit.measures import LATE, MeasureChunk, MeasuredChunk
from r2et.engine import Engine, Lost
from r2et.errors import R2ETError
from r2et.models.output import batched_logits
from r2et.wording import rows_text

PROBED = 4  # rows of each chunk


def behaviour(work: MeasureChunk, x: Tensor) -> str:
    """A digest of what the model makes of the first rows: its logits, and the scores.

    A function that computes something else may have the same weights, and read the same.
    """
    model, x = work.model, x[:PROBED]
    sha256 = hashlib.sha256()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # of explanations that draw without a generator
        try:
            for values in (batched_logits(model, x), work.settings.explainer(model, x)):
                sha256.update(f"{values.dtype} {tuple(values.shape)}".encode())
                raw = values.detach().cpu().contiguous().flatten().view(torch.uint8)
                sha256.update(raw.numpy().tobytes())
        except Exception as error:  # somebody's code may raise anything; measuring says what
            sha256.update(type(error).__name__.encode())
    return sha256.hexdigest()


def waiting(
    source: InputRows,
    work: MeasureChunk,
    linear: LinearBaseline,
    kept: AuditCheckpoint | None,
    until: float | None,
) -> Iterator[Chunk | MeasuredChunk]:
    """Chunks still to measure, and those that a stopped audit has measured, until time is up.

    What it has is taken over where the rows, and what the model makes of them, are as they were.
    """
    settings = work.settings
    for number, chunk in enumerate(source.chunks(settings.chunk, settings.generator("rows"))):
        if kept is not None:
            chunk = replace(chunk, behaviour=behaviour(work, chunk.x))
        done = None if kept is None else kept.take(chunk.number, chunk.fingerprint)
        if done is None and until is not None and number and time.time() > until:
            return
        linear.see(chunk)
        yield replace(chunk, until=until) if done is None else done


def measured_chunks(
    run: Engine,
    work: MeasureChunk,
    chunks: Iterator[Chunk | MeasuredChunk],
    kept: AuditCheckpoint | None,
) -> Iterator[MeasuredChunk]:
    """Every chunk measured, as it comes; new ones are kept."""
    done: list[MeasuredChunk] = []

    def new() -> Iterator[Chunk]:
        for item in chunks:
            if isinstance(item, MeasuredChunk):
                done.append(item)
            else:
                yield item

    for _, measured in run(work, new()):
        yield from done
        done.clear()
        if isinstance(measured, Lost):
            raise R2ETError(f"audit: some rows were lost with their worker: {measured.reason}.")
        if kept is not None and LATE not in measured.skipped.values():
            kept.add(measured)
        yield measured
    yield from done


def taken_over(kept: AuditCheckpoint) -> list[str]:
    """What became of rows that a stopped audit had measured, in sentences."""
    sentences = []
    if kept.taken:
        sentences.append(f"{rows_text(kept.taken)} taken over from the unfinished {kept.path}")
    if kept.stale:
        why = "they, or what the model makes of them, are not as they were"
        sentences.append(f"{rows_text(kept.stale)} of {kept.path} measured anew: {why}")
    return sentences
