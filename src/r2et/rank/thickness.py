"""Ranking explanation thickness: how far the gaps are from closing around an input (Sec. 4.1)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from r2et.checks import check_k, check_scores
from r2et.errors import require
from r2et.explain import Explainer
from r2et.explain.base import ScoresFn
from r2et.rank.order import ranking
from r2et.rank.sampling_paths import Distribution, SamplingPaths, scores_function
from r2et.rank.thickness_weights import KINDS, Kind, ordered_share, rank_weights
from r2et.region import Region


def thickness(
    model: nn.Module | ScoresFn,
    x: Tensor,
    k: int,
    *,
    explainer: Explainer | None = None,
    kind: Kind = "gap",
    distribution: Distribution = "uniform",
    region: Region | None = None,
    sigma: float | None = None,
    x_adv: Tensor | None = None,
    over: Literal["mean", "min"] = "mean",
    samples: int = 32,
    points: int = 10,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Theta(f, x, D, k) of each row: (B, ...) -> (B,); larger is stabler.

    The mean over pairs of E over x' ~ D of the integral over t in [0, 1] of
    h(x + t (x' - x), i, j)   (2), (3).

    Args:
        model: a network, explained by `explainer` for its class at x; or a function of stacked
            copies of the batch, (m * B, ...) -> (m * B, n) scores, such as explainer.at(model, x,
            create_graph=True), through which the result can be differentiated.
        x: (B, ...) clean inputs.
        k: how many features count.
        explainer: by default Gradient().
        kind: "gap", the formula above. "probability", h replaced by 1[h >= 0], in 0..1; the papers'
            Table 5. "average_precision", the mean of "gap" over 1..k in k's place. "discounted",
            the sum over pairs of Theta(i, j) / log(j - i + 1), i and j ranks.
        distribution: D. "uniform" in `region`; "gaussian" with `sigma`; "adversarial", the given
            x_adv.
        region: L2(1.0) unless given.
        sigma: by default radius / sqrt(n).
        x_adv: (B, ...) or (S, B, ...).
        over: the "mean" over the samples, or the smallest ("min") of them.
        samples: draws from D.
        points: terms of the midpoint sum that is the integral.
        generator: by default one seeded with 0, so that a call repeats.
    """
    require(kind in KINDS, "thickness", "kind", f"one of {', '.join(KINDS)}", kind)
    require(over in ("mean", "min"), "thickness", "over", "mean or min", over)
    where, blocks = "thickness", []
    paths = SamplingPaths(where, distribution, region, sigma, x_adv, samples, points, generator)
    for part, ways in paths.blocks(model, x):
        scores = scores_function(where, model, part, explainer)
        order = clean_ranking(where, scores, part, k)
        weights = None if kind == "probability" else rank_weights(order.shape[1], k, kind)
        along_ways = []
        for ranked in ways.ranked_scores(scores, part, order):  # (S, points, B, n)
            flat = ranked.flatten(0, 2)
            at = ordered_share(flat, k) if weights is None else flat @ weights.to(flat)
            along_ways.append(at.view(ranked.shape[:3]).mean(1))
        each = torch.cat(along_ways)  # (samples, B)
        blocks.append(each.mean(0) if over == "mean" else each.amin(0))
    return torch.cat(blocks)


def pairwise_thickness(
    model: nn.Module | ScoresFn,
    x: Tensor,
    k: int,
    *,
    explainer: Explainer | None = None,
    kind: Literal["gap", "probability"] = "gap",
    distribution: Distribution = "uniform",
    region: Region | None = None,
    sigma: float | None = None,
    x_adv: Tensor | None = None,
    samples: int = 32,
    points: int = 10,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Theta(f, x, D, i, j), eq. (2), of each pair of a salient and another feature: (B, k, n - k).

    Pairs stand in the order of the clean ranking; the settings are those of `thickness`.
    """
    where = "pairwise_thickness"
    require(kind in ("gap", "probability"), where, "kind", "gap or probability", kind)
    blocks = []
    paths = SamplingPaths(where, distribution, region, sigma, x_adv, samples, points, generator)
    for part, ways in paths.blocks(model, x):
        scores = scores_function(where, model, part, explainer)
        order = clean_ranking(where, scores, part, k)
        total, count = part.new_zeros(len(part), k, order.shape[1] - k), 0
        for ranked in ways.ranked_scores(scores, part, order):
            for at in ranked.flatten(0, 1):  # one point at a time: pairs are many
                h = at[:, :k, None] - at[:, None, k:]
                total = total + (h if kind == "gap" else (h >= 0).to(h.dtype))
                count += 1
        blocks.append(total / count)
    return torch.cat(blocks)


def clean_ranking(where: str, scores: ScoresFn, x: Tensor, k: int) -> Tensor:
    """(B, n) ranking at x itself."""
    clean = scores(x)
    check_scores(where, clean)
    is_valid = len(clean) == len(x)
    require(is_valid, where, "model", f"one that gives {len(x)} rows of scores", clean)
    check_k(where, k, clean.shape[1])
    return ranking(clean)
