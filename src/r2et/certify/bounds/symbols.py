"""Noise symbols: numbers in -1..1 that several values share, beside the change of x.

What an operator leaves open becomes a symbol of its own (a zonotope), so that it cancels where
later sums let it, which an interval cannot. Some symbols are more than that: the product of two
linear functions of the change e, (a . e)(b . e), less the middle of its range and divided by half
its width. A sum of such is a quadratic form, whose least value over the ball is known (a polynomial
zonotope of degree two).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, dual_norm

NEGLIGIBLE = 1e-5  # spreads below this share of a value's reach get no symbol


class Products(NamedTuple):
    """Symbols that are ((a . e)(b . e) - middle) / half."""

    place: Tensor  # (F,) among the symbols
    a: Tensor  # (B, n, F)
    b: Tensor  # (B, n, F)
    middle: Tensor  # (B, F)
    half: Tensor  # (B, F)


class Symbols:
    """The symbols of one pass over a graph.

    A slope (B, n + symbols, ...) has its first n directions along the change, the others along
    symbols in the order of their making; those that came later have no part in it.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs, self.count = inputs, 0
        self._products: list[Products] = []

    def promoted(self, spread: Tensor, slope: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
        """What is left of a spread (B, ...), and the slope, when each large one is a symbol."""
        rows, shape = len(spread), spread.shape[1:]
        flat = spread.reshape(rows, -1)
        large = flat.isfinite() & (flat > NEGLIGIBLE * reach.reshape(rows, -1))
        chosen = large.any(0).nonzero().flatten()
        size = torch.where(flat.isfinite(), flat, 0.0)
        columns = self._columns(size, chosen)
        left = torch.where(flat.isfinite(), 0.0, flat)
        left = torch.where(large.any(0), left, flat)
        return left.view(rows, *shape), self.extended(slope, columns.view(rows, -1, *shape))

    def with_products(
        self, slope: Tensor, a: Tensor, b: Tensor, ball: Ball, *, square: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(a . e)(b . e) of (B, n, ...) added to a slope, and the middle that its centre gains.

        square: b is a multiple of a.
        """
        shape = a.shape[2:]
        middle, half = product_range(a, b, ball, square)
        rows = len(half)
        middle, half = middle.reshape(rows, -1), half.reshape(rows, -1)
        usable = half.isfinite()
        middle, half = torch.where(usable, middle, 0.0), torch.where(usable, half, 0.0)
        chosen = (half > 0).any(0).nonzero().flatten()
        one, two = (v.expand(rows, *v.shape[1:]).flatten(2)[:, :, chosen] for v in (a, b))
        place = self.count + torch.arange(len(chosen), device=half.device)
        self._products.append(Products(place, one, two, middle[:, chosen], half[:, chosen]))
        columns = self._columns(half, chosen)
        gained = torch.where(usable, middle, torch.nan).view(rows, *shape)
        return self.extended(slope, columns.view(rows, -1, *shape)), gained

    def extended(self, slope: Tensor, columns: Tensor) -> Tensor:
        """A slope along symbols that are new."""
        missing = self.inputs + self.count - slope.shape[1]
        self.count += columns.shape[1]
        rows = max(len(slope), len(columns))
        slope, columns = (v.expand(rows, *v.shape[1:]) for v in (slope, columns))
        gap = slope.new_zeros(rows, missing, *slope.shape[2:])
        return torch.cat([slope, gap, columns], 1)

    def products(self) -> Products | None:
        """All symbols that are products."""
        if not any(len(part.place) for part in self._products):
            return None
        parts = [part for part in self._products if len(part.place)]
        columns = list(zip(*parts, strict=True))
        place, others = torch.cat(columns[0]), (torch.cat(part, -1) for part in columns[1:])
        return Products(place, *others)

    def _columns(self, size: Tensor, chosen: Tensor) -> Tensor:
        """(B, F, m): one direction for each chosen entry of size (B, m)."""
        columns = size.new_zeros(len(size), len(chosen), size.shape[1])
        columns[:, torch.arange(len(chosen), device=size.device), chosen] = size[:, chosen]
        return columns


def product_range(a: Tensor, b: Tensor, ball: Ball, square: bool) -> tuple[Tensor, Tensor]:
    """Middle and half width of what (a . e)(b . e) lies in over the ball, a, b (B, n, ...).

    In an l2 ball that is r^2 (a . b -+ ||a|| ||b||) / 2, exactly.
    """
    length = dual_norm(a, ball.norm) * dual_norm(b, ball.norm)
    square_radius = ball.over_rows(length).square()
    dot = (a * b).sum(1)
    if ball.norm == "l2":
        middle, half = square_radius * dot / 2, square_radius * length / 2
    elif square:
        half = square_radius * length / 2
        middle = dot.sign() * half
    else:
        half = square_radius * length
        middle = torch.zeros_like(half)
    # More than these sums lose to rounding.
    return middle, half * (1 + 1e-13 * (10 + a.shape[1]))


def same_directions(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two slopes along as many directions."""
    count = max(a.shape[1], b.shape[1])
    return padded(a, count), padded(b, count)


def padded(slope: Tensor, count: int) -> Tensor:
    """A slope (B, m, ...) with directions up to count, along which nothing moves."""
    missing = count - slope.shape[1]
    if not missing:
        return slope
    return torch.cat([slope, slope.new_zeros(len(slope), missing, *slope.shape[2:])], 1)
