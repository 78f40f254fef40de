"""What people are given, as sums of gradients: contributions, integrated gradients, columns.

A score is S_c = sum over the features i of column c of F_i m_i, with

    m = sum over points p of w_p (M u_p + o),    F_i = 1, or x_i - t_i

u_p what goes into the last linear operators of the graph at point p. All points move with the one
change e, and M is theirs in common, so that the mean U of the u_p is one linear bound. Where x
multiplies, F_i = f_i + scale_i e_i turns M into a matrix for each row, and e_i scale_i m_i into a
slope, scale_i times the middle of m_i, beside a rest below its half width times the reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, Norm, box_product
from r2et.certify.bounds.linear_bounds import LinearBound
from r2et.certify.bounds.propagation import LinearBounds, Sides, interval_bounds, linear_bounds
from r2et.certify.bounds.rounding import rounding
from r2et.certify.bounds.score_slopes import ScoreSlopes
from r2et.certify.bounds.symbols import Products, padded
from r2et.certify.graph.graph import Graph
from r2et.certify.operators.base import LinearCombination, LinearOperator
from r2et.explain.base import Of
from r2et.explain.path_gradients import GradientSum

POINT_NUMBERS = 2**20  # numbers held at once while points are bounded


class ScoreMap(NamedTuple):
    """How gradients become scores.

    sum: the points, their weights, and what x is taken from where it multiplies.
    member: (n, C) 1 where a feature belongs to a column; None: each is its own.
    """

    sum: GradientSum
    member: Tensor | None = None

    def columns(self, features: Tensor) -> Tensor:
        """(B, n) summed within columns: (B, C)."""
        return features if self.member is None else features @ self.member

    def of_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        """(B, C) scores of a mean gradient (B, n) at x (B, ...), exactly."""
        factor = self.factor(x)
        return self.columns(gradient if factor is None else gradient * factor)

    def factor(self, x: Tensor) -> Tensor | None:
        """(B, n) what the gradient is multiplied with."""
        return None if self.sum.times is None else (x - self.sum.times).flatten(1)

    def summed(self, unit: float, size: Tensor) -> Tensor:
        """(B, C) what rounding adds to the sums within columns, for features up to size (B, n)."""
        if self.member is None:
            return torch.zeros_like(size)
        terms = self.member.sum(0)
        noise = rounding(1, unit, self.columns(size)) * (terms + 2)
        return torch.where(terms > 1, noise, 0.0)

    def balls(self, ball: Ball, width: int) -> Iterator[tuple[Ball, Tensor, Tensor]]:
        """The balls around the points, a few points stacked at a time, with rates and weights."""
        if self.sum.at_x_alone:
            yield ball, self.sum.rate, self.sum.weight
            return
        together = max(1, POINT_NUMBERS // max(1, width * len(ball.x)))
        for start in range(0, len(self.sum.rate), together):
            part = slice(start, start + together)
            yield self._stacked(ball, part), self.sum.rate[part], self.sum.weight[part]

    def _stacked(self, ball: Ball, part: slice) -> Ball:
        anchor, rate, origin = self.sum.anchor[part], self.sum.rate[part], self.sum.origin
        many, ones = len(rate), [1] * ball.x.ndim
        over, anchor = rate.view(-1, *ones), anchor[:, None]

        def there(v: Tensor) -> Tensor:
            return (anchor + over * (v - origin)).flatten(0, 1)

        def repeated(v: Tensor) -> Tensor:
            return v if len(v) == 1 else v.repeat(many, *[1] * (v.ndim - 1))

        # Each point is computed: a difference, a product, a sum.
        size = (anchor.abs() + over * (ball.x.abs() + origin.abs() + ball.reach)).flatten(0, 1)
        noise = rounding(4, ball.unit, size) if ball.unit else torch.zeros_like(size)
        if ball.noise is not None:
            noise = noise + (over * ball.noise).flatten(0, 1)
        limits = None
        if ball.limits is not None:
            low, high = (there(end.expand_as(ball.x)) for end in ball.limits)
            limits = low - noise, high + noise
        return replace(
            ball,
            x=there(ball.x),
            radius=(rate[:, None] * ball.radius).flatten(),
            scale=None if ball.scale is None else repeated(ball.scale),
            noise=noise,
            limits=limits,
        )


class MeanSources(NamedTuple):
    """U, the mean over points of what the gradient is a linear function of, over a ball."""

    centre: Tensor  # (B, H)
    slope: Tensor  # (B, n, H), by the change at x; beyond n, by symbols
    spread: Tensor  # (B, H)
    low: Tensor  # (B, H)
    high: Tensor  # (B, H)
    noise: Tensor  # (B, n) what rounding adds on the way from there to the mean gradient


def mean_sources(
    graph: Graph, ball: Ball, target: Tensor, of: Of, scores: ScoreMap, sides: Sides | None
) -> tuple[MeanSources, LinearBounds]:
    """U, and the bounds of all values at the last points looked at."""
    sources, _ = graph.linear_suffix
    rows, n = len(ball.x), ball.x[0].numel()
    alone = scores.sum.at_x_alone
    total: list[Tensor] = []
    bounds: LinearBounds = {}
    for there, rate, weight in scores.balls(ball, n * graph.width):
        many = len(rate)
        bounds = linear_bounds(graph, there, target.repeat(many), of, ends=sources, sides=sides)
        parts = [bounds[v] for v in sources]
        noise = suffix_rounding(graph, parts, ball.unit)
        count = max(part.slope.shape[1] for part in parts)
        lines = [
            torch.cat([part.centre.reshape(len(there.x), -1) for part in parts], 1),
            torch.cat([_slope_of_every_row(part, len(there.x), count) for part in parts], 2),
            torch.cat([part.spread.reshape(len(there.x), -1) for part in parts], 1),
            torch.cat([part.low.reshape(len(there.x), -1) for part in parts], 1),
            torch.cat([part.high.reshape(len(there.x), -1) for part in parts], 1),
            noise,
        ]
        if alone:
            return MeanSources(*lines), bounds
        by_point = [line.view(many, rows, *line.shape[1:]) for line in lines]
        by_point[1] = by_point[1] * rate.view(-1, 1, 1, 1)
        size = torch.maximum(by_point[3].abs(), by_point[4].abs())
        mean = [torch.einsum("p,pb...->b...", weight, line) for line in (*by_point, size)]
        total = mean if not total else [a + b for a, b in zip(total, mean, strict=True)]
    centre, slope, spread, low, high, noise, size = total
    matrix, offset = graph.suffix_map
    largest = size @ matrix.abs().T + offset.abs() * float(scores.sum.weight.sum())
    noise = noise + rounding(len(scores.sum.rate) + 4, ball.unit, largest + noise)
    # A hair more, for what these sums themselves lose.
    hair = (1e-13 + 1e-15 * len(scores.sum.rate)) * (size + centre.abs())
    spread, low, high = spread + hair, low - hair, high + hair
    return MeanSources(centre, slope, spread, low, high, noise), bounds


def _slope_of_every_row(bound: LinearBound, rows: int, count: int) -> Tensor:
    slope = padded(bound.slope, count)
    return slope.expand(rows, count, *bound.centre.shape[1:]).reshape(rows, count, -1)


class ScoreBounds(NamedTuple):
    """S = centre + (slope . e) + N (U - its centre) -+ rest -+ noise, in two ways.

    First by the linear bound of U, then by its interval, which has no slope of its own.
    """

    matrix: Tensor  # N: (C, H), or (B, C, H) where x multiplies
    centres: tuple[Tensor, Tensor]  # (B, C)
    source: Tensor  # (B, n, H) the slope of U
    moved: Tensor | None  # (B, n, C) the slope that both ways have beside N times their own
    spreads: tuple[Tensor, Tensor]  # (B, H) of U
    rest: Tensor | None  # (B, C)
    noise: Tensor  # (B, C)
    shared: Tensor | None = None  # (B, symbols, H) the slope of U along symbols
    products: Products | None = None  # what some of these are

    def slopes(self, norm: Norm) -> tuple[ScoreSlopes, ScoreSlopes | None]:
        """Of either way; None for 0."""
        first = ScoreSlopes(self.source, self.matrix, self.moved, norm)
        if self.moved is None:
            return first, None
        return first, ScoreSlopes(None, self.matrix, self.moved, norm)


def score_bounds(graph: Graph, ball: Ball, scores: ScoreMap, mean: MeanSources) -> ScoreBounds:
    """Scores as linear functions of U and of the change."""
    matrix, offset = graph.suffix_map
    offset = offset * float(scores.sum.weight.sum()) if not scores.sum.at_x_alone else offset
    half, middle = (mean.high - mean.low) / 2, (mean.high + mean.low) / 2
    size = torch.maximum(mean.low.abs(), mean.high.abs()) @ matrix.abs().T + offset.abs()
    factor = scores.factor(ball.x)
    n, shared, products = ball.x[0].numel(), None, None
    if ball.symbols is not None:
        shared, products = mean.slope[:, n:], ball.symbols.products()
    if factor is None:
        own = matrix if scores.member is None else scores.member.T @ matrix
        shift = scores.columns(offset[None])
        return ScoreBounds(
            own,
            (mean.centre @ own.T + shift, middle @ own.T + shift),
            mean.slope[:, :n],
            None,
            (mean.spread, half),
            None,
            scores.columns(mean.noise) + scores.summed(ball.unit, size + mean.noise),
            shared,
            products,
        )
    reach = ball.reach.flatten(1)
    low, high = _gradient_interval(ball, matrix, offset, mean, (middle, half))
    mid, wide = (low + high) / 2, (high - low) / 2
    largest = torch.maximum(low.abs(), high.abs())
    most = factor.abs() + reach
    # x - times is rounded, and so is the product.
    noise = most * mean.noise + rounding(4, ball.unit, most * largest)
    rest = reach * wide
    if ball.noise is not None:
        rest = rest + ball.noise.flatten(1) * mid.abs()
    moved = torch.diag_embed(ball.scales.flatten(1) * mid)
    own = factor[:, :, None] * matrix
    shift = factor * offset
    if scores.member is not None:
        own = torch.einsum("nc,bnh->bch", scores.member, own)
        moved = moved @ scores.member
    shift = scores.columns(shift)
    return ScoreBounds(
        own,
        tuple(torch.einsum("bch,bh->bc", own, u) + shift for u in (mean.centre, middle)),  # type: ignore[arg-type]
        mean.slope[:, :n],
        moved,
        (mean.spread, half),
        scores.columns(rest),
        scores.columns(noise) + scores.summed(ball.unit, most * largest + noise),
        shared,
        products,
    )


def _gradient_interval(
    ball: Ball,
    matrix: Tensor,
    offset: Tensor,
    mean: MeanSources,
    interval: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor]:
    """(B, n) each: what the mean gradient lies between, rounding included."""
    middle, half = interval
    size = matrix.abs()
    by_box, wide = middle @ matrix.T + offset, half @ size.T + mean.noise
    centre = mean.centre @ matrix.T + offset
    n = ball.x[0].numel()
    reach = ball.radius[:, None] * ScoreSlopes(mean.slope[:, :n], matrix, None, ball.norm).norms
    if mean.slope.shape[1] > n:
        reach = reach + (mean.slope[:, n:] @ matrix.T).abs().sum(1) * (1 + 1e-12)
    reach = reach + mean.spread @ size.T + mean.noise
    low = torch.maximum(by_box - wide, centre - reach)
    high = torch.minimum(by_box + wide, centre + reach)
    # A hair more, for the rounding of these sums; both hold, so they meet.
    hair = 1e-13 * (by_box.abs() + wide)
    return torch.minimum(low, high) - hair, torch.maximum(low, high) + hair


def suffix_rounding(graph: Graph, parts: list[LinearBound], unit: float) -> Tensor:
    """How far off the float gradient may be for what happens between u and it: (B, n)."""
    sources, inside = graph.linear_suffix
    known = {
        v: (part.size, torch.zeros_like(part.size)) for v, part in zip(sources, parts, strict=True)
    }
    for value in inside:
        node = graph.nodes[value]
        operator, inputs = node.operator, [known[i] for i in node.inputs]
        if isinstance(operator, LinearOperator):
            (size, error), extra = inputs[0], operator.shift_size()
            noise = operator.noise(unit, size)
            size, error = operator.push(size, "absolute"), operator.push(error, "absolute")
            size = size if extra is None else size + extra
            known[value] = size, error if noise is None else error + noise
        else:
            assert isinstance(operator, LinearCombination)
            sizes, errors = zip(*inputs, strict=True)
            size = operator.combined(sizes, "absolute")
            error = operator.combined(errors, "absolute", shift=False)
            if operator.terms:
                error = error + rounding(operator.terms, unit, size)
            known[value] = size, error
    size, error = known[graph.gradient]
    return (error + rounding(8, unit, size)).flatten(1)


def score_box(graph: Graph, ball: Ball, target: Tensor, of: Of, scores: ScoreMap) -> Box:
    """The box of the scores (B, C), by intervals alone."""
    rows, n = len(ball.x), ball.x[0].numel()
    centre, spread = ball.x.new_zeros(rows, n), ball.x.new_zeros(rows, n)
    for there, rate, weight in scores.balls(ball, graph.width):
        made = interval_bounds(graph, there, target.repeat(len(rate)), of)[graph.gradient]
        wide = torch.zeros_like(made.centre) if made.spread is None else made.spread
        shape = (len(rate), rows, n)
        centre = centre + torch.einsum("p,pbn->bn", weight, made.centre.reshape(shape))
        spread = spread + torch.einsum("p,pbn->bn", weight, wide.reshape(shape))
    total = Box(centre, spread)
    if not scores.sum.at_x_alone:
        terms = len(scores.sum.rate) + 4
        total = total.widened((1e-13 + 1e-15 * terms) * total.size)
        total = total.widened(rounding(terms, ball.unit, total.size))
    factor = scores.factor(ball.x)
    if factor is not None:
        total = box_product(total, Box(factor, ball.reach.flatten(1)))
        total = total.widened(rounding(4, ball.unit, total.size))
    noise = scores.summed(ball.unit, total.size)
    assert total.spread is not None
    return Box(scores.columns(total.centre), scores.columns(total.spread) + noise)
