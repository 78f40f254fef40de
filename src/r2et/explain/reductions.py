"""From an attribution with the input's shape to one score per feature (B.1.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from r2et.errors import require

Reduction: TypeAlias = Literal["abs", "signed", "abs_sum", "upper", "abs_upper"]


def _abs(raw: Tensor) -> Tensor:
    return raw.flatten(1).abs()


def _signed(raw: Tensor) -> Tensor:
    return raw.flatten(1)


def _abs_sum(raw: Tensor) -> Tensor:
    """Sum of absolute values over channels: (B, [2,] C, H, W) -> (B, [2 *] H * W)."""
    require(raw.ndim >= 4, "abs_sum", "x", "images (B, C, H, W) or pairs (B, 2, C, H, W)", raw)
    return raw.abs().sum(-3).flatten(1)


def _upper(raw: Tensor) -> Tensor:
    """Edges of undirected graphs: (B, [2,] N, N) -> (B, [2 *] N * (N - 1) / 2).

    An undirected edge is two entries of the adjacency matrix, and its score is the sum of theirs.
    """
    square = raw.ndim >= 3 and raw.shape[-1] == raw.shape[-2] > 1
    require(square, "upper", "x", "adjacency matrices (B, N, N) or pairs (B, 2, N, N)", raw)
    nodes = raw.shape[-1]
    i, j = torch.triu_indices(nodes, nodes, offset=1, device=raw.device)
    return (raw[..., i, j] + raw[..., j, i]).flatten(1)


def _abs_upper(raw: Tensor) -> Tensor:
    return _upper(raw).abs()


REDUCTIONS: dict[Reduction, Callable[[Tensor], Tensor]] = {
    "abs": _abs,  # tables, MNIST
    "signed": _signed,
    "abs_sum": _abs_sum,  # CIFAR-10
    "upper": _upper,  # graphs
    "abs_upper": _abs_upper,
}


def normalized(scores: Tensor) -> Tensor:
    """Each row divided by the sum of its absolute scores; a row of zeros stays."""
    total = scores.abs().sum(1, keepdim=True)
    return scores / torch.where(total > 0, total, 1.0)
