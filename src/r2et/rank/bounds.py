"""Bounds of thickness (Prop. 4.4), and the first-order estimate that the papers call one."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from r2et.checks import check_k, check_scores
from r2et.errors import require
from r2et.explain import Explainer
from r2et.explain.base import ScoresFn
from r2et.rank.order import ranking
from r2et.rank.pairs import gap
from r2et.rank.sampling_paths import scores_function


class ThicknessBounds(NamedTuple):
    """lower, upper: (B, k, n - k) for each pair, in the clean ranking's order.

    The top-k thickness of a row lies between their means over its pairs.
    """

    lower: Tensor
    upper: Tensor


def thickness_bounds(scores: Tensor, k: int, radius: float, suprema: Tensor) -> ThicknessBounds:
    """h - radius / 2 * S <= Theta(i, j) <= h + radius / 2 * S, for D within the l2 ball.

    scores: (B, n) at x. suprema: an upper bound, over the whole ball, of ||H_i - H_j|| for all
    pairs of features, (B, n, n), or of each ||H_i||, (B, n), when S = L_i + L_j serves. H_i is the
    derivative of score i by the input. These are bounds exactly when `suprema` are: the change
    along x + t d is at most t * radius * S, whose integral is half of that. The papers' upper
    bound, h + radius (L_i + L_j), is twice as far away as it need be.
    """
    where = "thickness_bounds"
    check_scores(where, scores)
    _check_radius(where, radius)
    b, n = scores.shape
    check_k(where, k, n)
    is_valid = isinstance(suprema, Tensor) and suprema.shape in ((b, n), (b, n, n))
    is_valid = is_valid and bool(((suprema >= 0) & suprema.isfinite()).all())
    expected = f"finite norms of shape ({b}, {n}) or ({b}, {n}, {n})"
    require(is_valid, where, "suprema", expected, suprema)
    order = ranking(scores)
    if suprema.ndim == 2:
        each = suprema.gather(1, order)
        most = each[:, :k, None] + each[:, None, k:]
    else:
        rows = suprema.gather(1, order[:, :k, None].expand(-1, -1, n))
        most = rows.gather(2, order[:, None, k:].expand(-1, k, -1))
    h, half = gap(scores, order, k), radius / 2 * most
    return ThicknessBounds(h - half, h + half)


def first_order_thickness(
    model: nn.Module | ScoresFn,
    x: Tensor,
    k: int,
    radius: float,
    *,
    explainer: Explainer | None = None,
) -> ThicknessBounds:
    """h -+ radius / 2 * ||H_i(x) - H_j(x)||, eq. (5): an estimate, not a bound.

    It is what `thickness_bounds` gives for an explanation that is linear in the ball; of any other
    it says nothing for certain, as the curvature at x may be exceeded elsewhere in the ball.
    """
    where = "first_order_thickness"
    scores_fn = scores_function(where, model, x, explainer)
    _check_radius(where, radius)
    scores = scores_fn(x).detach()
    check_k(where, k, scores.shape[1])
    rows = score_jacobian(scores_fn, x, constant=isinstance(model, nn.Module))
    # Not by way of inner products, whose difference loses half the digits.
    apart = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    return thickness_bounds(scores, k, radius, apart)


def score_jacobian(scores: ScoresFn, x: Tensor, *, constant: bool = False) -> Tensor:
    """H, the derivative of each score by each input number: (B, n, inputs), n backward passes.

    constant: scores without a graph are constant, and H is 0, as inside a linear region of a ReLU
    network; otherwise they are refused, since a function may just have lost its graph.
    """
    point = x.detach().requires_grad_()
    with torch.enable_grad():
        values = scores(point)
        is_valid = constant or values.requires_grad
        require(is_valid, "score_jacobian", "model", "differentiable in x twice", values)
        values = values + 0 * point.sum()  # constant scores have a derivative, too
    rows = []
    for i in range(values.shape[1]):
        (row,) = torch.autograd.grad(
            values[:, i].sum(), point, retain_graph=True, materialize_grads=True
        )
        rows.append(row.flatten(1))
    return torch.stack(rows, 1)


def _check_radius(where: str, radius: float) -> None:
    is_valid = isinstance(radius, int | float) and 0 <= radius < math.inf
    require(is_valid, where, "radius", "0 or more and finite", radius)
