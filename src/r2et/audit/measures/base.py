"""What a measure is: a name, what it takes of rows, and the figures that come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from r2et.audit.input_rows import Chunk
from r2et.audit.settings import WHERE, AuditSettings
from r2et.audit.statistics import Columns, Statistic
from r2et.checks import check_k
from r2et.errors import require, row_numbers
from r2et.explain import Explainer
from r2et.models.output import batched_logits, classes
from r2et.results import Figure

LATE = "the time was up"


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """Rows under audit, with what every measure needs of them.

    logits: (B, C) on the CPU.
    target: (B,) predicted classes, on the CPU.
    scores: (B, n) clean explanations.
    """

    model: nn.Module
    settings: AuditSettings
    chunk: Chunk
    logits: Tensor
    target: Tensor
    scores: Tensor

    @property
    def x(self) -> Tensor:
        """(B, ...) inputs."""
        return self.chunk.x

    def generator(self, purpose: str) -> torch.Generator:
        """Random numbers for one purpose, the same wherever these rows are measured."""
        return self.settings.generator(self.chunk.number, purpose)


def explained(model: nn.Module, settings: AuditSettings, chunk: Chunk) -> AuditedRows:
    """Predictions and clean explanations; whatever is wrong with the model shows here."""
    with row_numbers(lambda row: int(chunk.index[row])):
        out = batched_logits(model, chunk.x, WHERE)
        target = classes(out)
        scores = settings.explainer(model, chunk.x, target.to(chunk.x.device))
    check_labels(chunk.y, max(2, out.shape[1]))
    check_k(WHERE, settings.k, scores.shape[1])
    return AuditedRows(model, settings, chunk, out, target, scores)


def check_labels(y: Tensor | None, count: int) -> None:
    """Classes that a model with so many of them has."""
    wrong = -1 if y is None else int(y.max())
    require(wrong < count, WHERE, "y", f"in 0..{count - 1}, the model's classes", wrong)


def of_probability(explainer: Explainer) -> Explainer | None:
    """The same explanation of the probability, where there is a choice."""
    own = explainer.equivalent()
    if own is None or getattr(own, "of", None) != "log_odds":
        return None
    return replace(own, of="probability")  # type: ignore[call-arg]


@dataclass(frozen=True)
class Measure:
    """Something that an audit measures of rows; summary, page and JSON follow from it.

    name: as durations and what was skipped call it.
    take: rows -> columns, each with one entry per row.
    figures: those of the summary, each with the statistic that makes it of all rows' columns.
    row_columns: the columns that the result keeps row by row.
    """

    name: str
    take: Callable[[AuditedRows], Columns]
    figures: Mapping[Figure, Statistic] = field(default_factory=dict)
    row_columns: tuple[str, ...] = ()


# In the order of their worth: where time runs out, the last are left out first.
MEASURES: dict[str, Measure] = {}


def register(measure: Measure) -> Measure:
    """Let every audit from now on take a measure too, after those that it knows."""
    where = "register"
    require(isinstance(measure, Measure), where, "measure", "a Measure", measure)
    require(measure.name not in MEASURES, where, "name", "a new one", measure.name)
    known = {figure.name for other in MEASURES.values() for figure in other.figures}
    double = next((figure.name for figure in measure.figures if figure.name in known), None)
    require(double is None, where, "figures", "of new names", double)
    MEASURES[measure.name] = measure
    return measure
