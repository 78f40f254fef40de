"""Which entries of an input belong to which score of its explanation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from r2et.errors import require
from r2et.explain import Concept, Explainer
from r2et.explain.grouping import as_groups, column_of
from r2et.explain.reductions import Reduction

PERCENT = (1, 5, 10, 20, 50)


def feature_map(where: str, explainer: Explainer, x: Tensor) -> Tensor:
    """For each entry of an input of x (B, ...), the feature it belongs to; -1 for none.

    The mirror of `explainer.reduce`, `explainer.groups` and `explainer.part`: a pixel is all of its
    channels, a column all of its one-hot features, an undirected edge is two entries; the diagonal
    of an adjacency matrix and the input of a pair that is not explained are nobody's. Long tensor
    of shape x.shape[1:].
    """
    require(isinstance(explainer, Explainer), where, "explainer", "an Explainer", explainer)
    neurons = isinstance(explainer, Concept) or getattr(explainer, "layer", None) is not None
    expected = "one whose scores belong to entries of x (neurons of a layer do not)"
    require(not neurons, where, "explainer", expected, explainer)
    part: int | None = getattr(explainer, "part", None)
    shape = x.shape[1:]
    if part is None:
        return _scores_of(where, explainer, shape).to(x.device)
    pair = len(shape) >= 2 and shape[0] == 2
    require(pair, where, "x", "pairs (B, 2, ...) when the explainer has a part", x)
    index = torch.full(shape, -1)
    index[part] = _scores_of(where, explainer, shape[1:])
    return index.to(x.device)


def _scores_of(where: str, explainer: Explainer, shape: Sequence[int]) -> Tensor:
    index = MAPS[explainer.reduce](where, shape)
    groups = as_groups(where, getattr(explainer, "groups", None))
    return index if groups is None else column_of(groups, math.prod(shape))[index]


def _entries(where: str, shape: Sequence[int]) -> Tensor:  # noqa: ARG001
    return torch.arange(math.prod(shape)).view(*shape)


def _pixels(where: str, shape: Sequence[int]) -> Tensor:
    expected = "images (B, C, H, W) or pairs (B, 2, C, H, W) for abs_sum"
    require(len(shape) >= 3, where, "x", expected, f"rows of shape {tuple(shape)}")
    one = [*shape[:-3], 1, *shape[-2:]]
    return torch.arange(math.prod(one)).view(one).expand(*shape)


def _edges(where: str, shape: Sequence[int]) -> Tensor:
    square = len(shape) >= 2 and shape[-1] == shape[-2] > 1
    expected = "adjacency matrices (B, N, N) or pairs (B, 2, N, N) for upper and abs_upper"
    require(square, where, "x", expected, f"rows of shape {tuple(shape)}")
    index = torch.full(tuple(shape), -1)
    i, j = torch.triu_indices(shape[-1], shape[-1], offset=1)
    edges = _entries(where, [*shape[:-2], len(i)])
    index[..., i, j] = edges
    index[..., j, i] = edges
    return index


MAPS: dict[Reduction, Callable[[str, Sequence[int]], Tensor]] = {
    "abs": _entries,
    "signed": _entries,
    "abs_sum": _pixels,
    "upper": _edges,
    "abs_upper": _edges,
}


def removal_counts(where: str, counts: Sequence[int] | None, n: int, x: Tensor) -> list[int]:
    """The set K of B.1.4, in order: 1..n for tables, 1, 5, 10, 20, 50 % of n otherwise.

    A percentage is rounded to the nearest whole number, at least 1; equal ones count once.
    """
    if counts is None:
        if x.ndim == 2:
            return list(range(1, n + 1))
        return sorted({max(1, (percent * n + 50) // 100) for percent in PERCENT})
    is_valid = (
        isinstance(counts, Sequence) and len(counts) > 0 and all(type(c) is int for c in counts)
    )
    require(is_valid, where, "counts", "whole numbers, at least one", counts)
    wrong = next((c for c in counts if not 0 < c <= n), None)
    require(wrong is None, where, "counts", f"in 1..{n} for {n} features", wrong)
    return sorted(set(counts))


def baseline_of(where: str, baseline: float | Tensor | Sequence[float], x: Tensor) -> Tensor:
    """What a removed entry is set to: a number, or one for each entry of an input."""
    shape = tuple(x.shape[1:])
    try:
        value = torch.as_tensor(baseline, dtype=x.dtype, device=x.device).detach()
    except (TypeError, ValueError, RuntimeError):
        value = x.new_tensor(torch.nan)
    n = math.prod(shape)
    expected = f"a finite number, or one per entry of an input: {shape}"
    is_valid = value.ndim == 0 or value.shape == shape or value.shape == (n,)
    require(is_valid and bool(value.isfinite().all()), where, "baseline", expected, baseline)
    return value if value.ndim == 0 else value.reshape(shape)
