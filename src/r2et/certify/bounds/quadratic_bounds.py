"""The least value of slope . e + e' Q e over a ball, from below."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Norm, dual_norm
from r2et.certify.bounds.symbols import Products

PAIR_NUMBERS = 2**22  # numbers held at once
STEPS = 30  # of the search for a multiplier


def gained_by_products(
    slope: Tensor, products: Products, rows: Tensor, radius: Tensor, norm: Norm
) -> Tensor:
    """(P,) how much higher than -r ||slope|| - (sizes of products) the two together stay.

    slope: (P, n + symbols) of P functions. rows: (P,) the row of the ball that each is about.
    radius: (B,). A sum of products and of what is linear in e is a quadratic function of e.
    """
    n = products.a.shape[1]
    size = max(1, PAIR_NUMBERS // max(1, n * (len(products.place) + 2 * n)))
    parts = []
    for some in torch.split(torch.arange(len(slope), device=slope.device), size):
        row = rows[some]
        along, coefficient = slope[some, :n], slope[some][:, n + products.place]
        half, middle = products.half[row], products.middle[row]
        weight = torch.where(half > 0, coefficient / torch.where(half > 0, half, 1.0), 0.0)
        form = (products.a[row] * weight[:, None]) @ products.b[row].transpose(1, 2)
        form = (form + form.transpose(1, 2)) / 2
        r = radius[row]
        reach = r * dual_norm(along, norm)
        least = least_quadratic(along, form, r, norm) - (weight * middle).sum(1)
        sizes = coefficient.abs().sum(1)
        terms = reach + sizes + (weight * middle).abs().sum(1)
        terms = terms + r.square() * form.abs().sum((1, 2))
        # A hair less, for what these sums and the eigenvectors lose to rounding.
        hair = (1e-12 + 1e-14 * (n + len(products.place))) * terms
        parts.append(least + reach + sizes - hair)
    return torch.cat(parts)


def least_quadratic(slope: Tensor, form: Tensor, radius: Tensor, norm: Norm) -> Tensor:
    """(P,) lower bounds of slope . e + e' Q e for ||e|| <= radius; Q (P, n, n) symmetric.

    In l2, for any m >= 0 that makes Q + m 1 positive definite, the least value is at least
    -slope' (Q + m 1)^-1 slope / 4 - m r^2, and at most that for the best m.
    """
    if norm == "linf":
        diagonal = form.diagonal(dim1=1, dim2=2)
        lost = form.abs().sum((1, 2)) - diagonal.clamp(min=0).sum(1)
        return -radius * slope.abs().sum(1) - radius.square() * lost
    finite = form.flatten(1).isfinite().all(1) & slope.isfinite().all(1)
    values, vectors = torch.linalg.eigh(torch.where(finite[:, None, None], form, 0.0))
    part = torch.einsum("pn,pnm->pm", slope, vectors).square()
    lowest = values[:, :1]
    above = values - lowest
    length = part.sum(1, keepdim=True).sqrt()
    # m = shift - lowest: its place is found where the least point is on the sphere.
    floor = torch.maximum(lowest.clamp(min=0), 1e-9 * length / radius[:, None] + 1e-300)
    low, high = floor, torch.maximum(floor, length / (2 * radius[:, None]))
    for _ in range(STEPS):
        shift = (low * high).sqrt()
        point = (part / (above + shift).square()).sum(1, keepdim=True)
        outside = point > 4 * radius[:, None].square()
        low, high = torch.where(outside, shift, low), torch.where(outside, high, shift)
    least = -(part / (above + high)).sum(1) / 4 - (high - lowest)[:, 0] * radius.square()
    return torch.where(finite, least, -torch.inf)
