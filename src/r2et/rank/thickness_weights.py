"""Sums over all pairs without the pairs: each kind of thickness as a function of ranked scores."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from r2et.checks import check_k
from r2et.errors import require

Kind: TypeAlias = Literal["gap", "probability", "average_precision", "discounted"]
KINDS: tuple[Kind, ...] = ("gap", "probability", "average_precision", "discounted")


def rank_weights(n: int, k: int, kind: Kind = "gap") -> Tensor:
    """(n,) float64 weights whose sum with ranked scores is the thickness at one point.

    In the mean over all pairs a salient score has weight 1 / k, another one -1 / (n - k).
    """
    check_k("rank_weights", k, n)
    place = torch.arange(n)
    if kind == "gap":
        return torch.where(place < k, torch.tensor(1 / k).double(), -1 / (n - k))
    if kind == "average_precision":
        # Place p is salient for the sizes above p, up to k, and one of the others for the rest.
        sizes = torch.arange(1, k + 1, dtype=torch.float64)
        inside = torch.cat([sizes.new_zeros(1), (1 / sizes).cumsum(0)])
        outside = torch.cat([sizes.new_zeros(1), (1 / (n - sizes)).cumsum(0)])
        reached = place.clamp(max=k)
        return (inside[k] - inside[reached] - outside[reached]) / k
    require(kind == "discounted", "rank_weights", "kind", "a kind that is linear in h", kind)
    # reach[d]: the sum of 1 / log(distance + 1) over distances 1..d.
    terms = 1 / torch.arange(2, n + 1, dtype=torch.float64).log()
    reach = torch.cat([terms.new_zeros(1), terms.cumsum(0)])
    salient, other = torch.arange(k), torch.arange(k, n)
    gained = reach[n - 1 - salient] - reach[k - 1 - salient]
    lost = reach[other] - reach[other - k]
    return torch.cat([gained, -lost])


def ordered_share(ranked: Tensor, k: int) -> Tensor:
    """Share of the pairs i < k <= j with ranked[i] >= ranked[j], in O(n log n): (B, n) -> (B,)."""
    salient, other = ranked[:, :k].detach(), ranked[:, k:].detach()
    below = torch.searchsorted(other.sort(dim=1).values, salient.contiguous(), right=True)
    return below.sum(1).to(ranked.dtype) / (k * other.shape[1])
