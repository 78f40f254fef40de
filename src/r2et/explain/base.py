"""What every explainer is: frozen settings that turn a model and a batch into scores."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from r2et.checks import all_finite, check_model_input
from r2et.config import Configurable
from r2et.errors import RowError, require, row_numbers
from r2et.explain.grouping import as_groups, grouped
from r2et.explain.reductions import REDUCTIONS, Reduction, normalized
from r2et.models.output import (
    CHUNK_NUMBERS,
    classes,
    logits,
    target_classes,
    target_rows,
    undisturbed,
)

Of: TypeAlias = Literal["log_odds", "logit", "probability", "loss"]
ScoresFn: TypeAlias = Callable[[Tensor], Tensor]

OF: tuple[Of, ...] = ("log_odds", "logit", "probability", "loss")


@dataclass(frozen=True, kw_only=True)
class Explainer(Configurable, ABC):
    """Scores of a model's features: model, x (B, ...) -> (B, n); larger is more important.

    Args:
        reduce: how an attribution becomes one score per feature (see r2et.explain.reductions).
        normalize: scale each row's absolute scores to sum 1.
        chunk: rows per forward pass; by default as many as hold 2^18 input numbers.
        groups: the features of each column, as data.groups has them. Their signed attributions are
            summed before `reduce`, so that scores are (B, columns), in the order of the columns'
            first features; a feature in no group is a column of its own. None: a score for each.
    """

    reduce: Reduction = "abs"
    normalize: bool = False
    chunk: int | None = None
    groups: Sequence[Sequence[int]] | None = None

    config_excluded: ClassVar[tuple[str, ...]] = ("chunk",)
    differentiable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        where, names = type(self).__name__, ", ".join(REDUCTIONS)
        known = isinstance(self.reduce, str) and self.reduce in REDUCTIONS
        require(known, where, "reduce", f"one of {names}", self.reduce)
        is_valid = self.chunk is None or (isinstance(self.chunk, int) and self.chunk > 0)
        require(is_valid, where, "chunk", "None or a positive whole number", self.chunk)
        object.__setattr__(self, "groups", as_groups(where, self.groups))
        is_valid = self.groups is None or self.reduce in ("abs", "signed")
        require(is_valid, where, "reduce", "abs or signed where groups are given", self.reduce)

    def __call__(
        self,
        model: nn.Module,
        x: Tensor,
        target: Tensor | int | None = None,
        *,
        create_graph: bool = False,
    ) -> Tensor:
        """Scores (B, n) of the model, in eval mode, for class `target`, by default the predicted.

        create_graph: keep the graph, so that scores can be differentiated in x (if it requires a
        gradient) and in the model's parameters. Rows of x must not influence each other.
        """
        where = type(self).__name__
        check_model_input(where, model, x)
        fixed = target_rows(where, target, x)
        with undisturbed(model), torch.inference_mode(False), torch.enable_grad():
            x = x.clone() if x.is_inference() else x
            if create_graph:
                # Of the kinds of attention, only this one has a second derivative on the CPU.
                with sdpa_kernel(SDPBackend.MATH):
                    return self._scores(model, x, fixed, create_graph=True)
            x, rows = x.detach(), self._chunk_rows(x)
            parts = []
            for i in range(0, len(x), rows):
                of = None if fixed is None else fixed[i : i + rows]
                part = x[i : i + rows]
                # Explanations along a path look at copies of their rows, stacked.
                with row_numbers(partial(_outside, i, len(part))):
                    parts.append(self._scores(model, part, of, create_graph=False))
            return parts[0] if len(parts) == 1 else torch.cat(parts)

    def at(
        self,
        model: nn.Module,
        x: Tensor,
        target: Tensor | int | None = None,
        *,
        create_graph: bool = False,
    ) -> ScoresFn:
        """This explanation as a function of the input alone, its target fixed at x (B, ...).

        The function takes any number of stacked copies of the batch, (m * B, ...) -> (m * B, n),
        and builds a graph if create_graph, or if its argument requires a gradient.
        """
        where = type(self).__name__
        check_model_input(where, model, x)
        with undisturbed(model), torch.no_grad():
            out = logits(model, x, where)
            fixed = target_classes(where, target_rows(where, target, x), out)

        def scores(points: Tensor) -> Tensor:
            whole = isinstance(points, Tensor) and len(points) > 0 and len(points) % len(fixed) == 0
            require(whole, where, "points", f"stacked copies of {len(fixed)} rows", points)
            copies = fixed.repeat(len(points) // len(fixed))
            graph = create_graph or (points.requires_grad and torch.is_grad_enabled())
            return self(model, points, copies, create_graph=graph)

        return scores

    def equivalent(self) -> Explainer | None:
        """A differentiable explainer of the same scores: this one, another, or None if unknown."""
        return self if self.differentiable else None

    def _scores(
        self, model: nn.Module, x: Tensor, target: Tensor | None, *, create_graph: bool
    ) -> Tensor:
        scores = self.reduced(self.attribute(model, x, target, create_graph=create_graph))
        if not all_finite(scores):
            rows = (~torch.isfinite(scores)).any(1).nonzero().flatten()
            expected = "one whose explanation is finite at x"
            sentence = f"{type(self).__name__}: model must be {expected}, got NaN or infinity"
            raise RowError(sentence, int(rows[0]))
        return scores if create_graph else scores.detach()

    def reduced(self, raw: Tensor) -> Tensor:
        """Scores (B, n) of a raw attribution (B, ...), as `reduce` and `normalize` say."""
        if self.groups is not None:
            raw = grouped(type(self).__name__, raw, self.groups)  # type: ignore[arg-type]
        scores = REDUCTIONS[self.reduce](raw)
        return normalized(scores) if self.normalize else scores

    def _chunk_rows(self, x: Tensor) -> int:
        return self.chunk or max(1, CHUNK_NUMBERS // x[0].numel())

    @abstractmethod
    def attribute(
        self, model: nn.Module, x: Tensor, target: Tensor | None, *, create_graph: bool
    ) -> Tensor:
        """The raw attribution of a batch, before reduction: x's shape, or (B, concepts)."""


def _outside(start: int, rows: int, row: int) -> int:
    return start + row % rows


def predicted(where: str, model: nn.Module, x: Tensor) -> Tensor:
    """(B,) classes at x, without a graph."""
    with torch.no_grad():
        return classes(logits(model, x, where))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators, for code that draws from them, and put them back as they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)
