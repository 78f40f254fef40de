"""Reasons at every change that a row could have, where these are few enough to try them all."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.explain import Explainer
from r2et.models.output import batched_logits, classes
from r2et.reason.columns import WHERE, reason_sets
from r2et.reason.decided_rows import DecidedRows
from r2et.reason.proof import RowProofs
from r2et.reason.search import Broken
from r2et.region import Feasible

LIMIT = 4096  # changes of a row that are all tried


def enumerable(rows: DecidedRows, region: Feasible) -> Tensor:
    """(B,) bool: rows with few enough changes."""
    return (region.count(rows.x) <= LIMIT).cpu()


def tried(
    rows: DecidedRows, method: Explainer, allowed: Tensor, k: int, region: Feasible
) -> tuple[RowProofs, Broken]:
    """What becomes of the reasons of these rows at every change that keeps the decision.

    Of the changes that give other reasons, the one in the fewest columns is told; and where it
    leaves a reason that another change takes away, that one for this reason.
    """
    count = len(rows)
    mine = reason_sets(method(rows.decided, rows.x, rows.target), allowed, k)
    stays, found, x_adv = mine.clone(), torch.zeros(count, dtype=torch.bool), rows.x.clone()
    single: dict[tuple[int, int], Tensor] = {}
    for i in range(count):
        x = rows.x[i : i + 1]
        points = torch.cat([part for _, part in region.enumerate(x, limit=LIMIT)])
        kept = classes(batched_logits(rows.decided, points, WHERE)) == rows.decision[i]
        points = points[kept.to(points.device)]
        target = rows.target[i : i + 1].expand(len(points))
        there = reason_sets(method(rows.decided, points, target), allowed, k)
        stays[i] &= there.all(0)
        other = (there != mine[i]).any(1)
        if bool(other.any()):
            found[i] = True
            moved = [(points != x)[:, list(c.features)].any(1) for c in rows.columns]
            columns = torch.stack(moved).sum(0)
            cost = columns.double() + 1e-3 * region.distance(points, x.expand_as(points))
            nearest = int(cost.cpu().masked_fill(~other, torch.inf).argmin())
            x_adv[i] = points[nearest]
            for c in (mine[i] & ~stays[i] & there[nearest]).nonzero().flatten().tolist():
                place = int(cost.cpu().masked_fill(there[:, c], torch.inf).argmin())
                single[i, c] = points[place]
    return RowProofs(~found, stays, stays.double()), Broken(found, x_adv, single)
