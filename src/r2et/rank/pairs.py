"""Pairs of a salient and another feature, and the gaps between their scores.

Pairs are places in the clean ranking, counted from 0: place k - 1 is the last feature of the top k.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from r2et.checks import check_k, check_same_shape, check_scores
from r2et.errors import require

PairSet: TypeAlias = Literal["all", "anchor", "closest"]
PAIR_SETS: tuple[PairSet, ...] = ("all", "anchor", "closest")


def pairs(n: int, k: int, kind: PairSet = "all", count: int | None = None) -> Tensor:
    """(P, 2) places (i, j) whose gaps I_i - I_j are to stay positive.

    all: every i < k <= j, eq. (6). closest: the `count` nested pairs around the border,
    (k-1, k), (k-2, k+1), ... ("-mm"; as printed, h(x, k-i, k+i), the paper's sum leaves out the
    closest pair of all and ends at a feature 0 that does not exist). anchor: the border feature
    k - 1 against `count` features above it and `count` below. count: k' of the papers, by default
    k, as far as there are features.
    """
    check_k("pairs", k, n)
    require(kind in PAIR_SETS, "pairs", "kind", f"one of {', '.join(PAIR_SETS)}", kind)
    most = {"all": None, "closest": min(k, n - k), "anchor": max(k - 1, n - k)}[kind]
    if kind == "all" or most is None:
        require(count is None, "pairs", "count", "None for all pairs", count)
        return torch.cartesian_prod(torch.arange(k), torch.arange(k, n))
    if count is not None:
        is_valid = isinstance(count, int) and 0 < count <= most
        require(is_valid, "pairs", "count", f"in 1..{most} for k = {k} of {n} features", count)
    count = min(k, most) if count is None else count
    steps = torch.arange(count)
    if kind == "closest":
        return torch.stack([k - 1 - steps, k + steps], 1)
    above, below = k - 2 - steps[: k - 1], k + steps[: n - k]
    border = torch.full((len(above) + len(below),), k - 1)
    first = torch.cat([above, border[: len(below)]])
    second = torch.cat([border[: len(above)], below])
    return torch.stack([first, second], 1)


def gap(scores: Tensor, order: Tensor, k: int) -> Tensor:
    """Margin of each top-k feature over each other one, h(x, i, j) = I_i - I_j (Sec. 4.1).

    scores: (B, n) at the point tested; order: (B, n) ranking at the clean input, best first.
    Returns (B, k, n - k); the top k are intact where all are positive.
    """
    ranked = in_order("gap", scores, order)
    check_k("gap", k, scores.shape[1])
    return ranked[:, :k, None] - ranked[:, None, k:]


def pair_gap(scores: Tensor, order: Tensor, places: Tensor) -> Tensor:
    """Gaps of chosen pairs: scores (B, n), order (B, n), places (P, 2) -> (B, P)."""
    ranked = in_order("pair_gap", scores, order)
    is_valid = isinstance(places, Tensor) and places.ndim == 2 and places.shape[1] == 2
    require(is_valid, "pair_gap", "places", "a tensor of shape (P, 2)", places)
    n = scores.shape[1]
    inside = len(places) > 0 and bool((places >= 0).all()) and bool((places < n).all())
    require(inside, "pair_gap", "places", f"in 0..{n - 1}", places.tolist())
    return ranked[:, places[:, 0]] - ranked[:, places[:, 1]]


def gap_sum(scores: Tensor, order: Tensor, k: int) -> Tensor:
    """Sum of all k (n - k) gaps, in O(n): (B,).

    Every salient score stands in n - k gaps and every other one in k.
    """
    ranked = in_order("gap_sum", scores, order)
    n = scores.shape[1]
    check_k("gap_sum", k, n)
    return (n - k) * ranked[:, :k].sum(1) - k * ranked[:, k:].sum(1)


def in_order(where: str, scores: Tensor, order: Tensor) -> Tensor:
    """Scores (B, n) in the order of a ranking (B, n)."""
    check_scores(where, scores)
    check_same_shape(where, order, scores, "order", "scores")
    n = scores.shape[1]
    is_valid = order.dtype == torch.int64 and int(order.min()) >= 0 and int(order.max()) < n
    require(is_valid, where, "order", f"feature indices (see ranking) in 0..{n - 1}", order)
    return scores.gather(1, order)
