"""How still the reasons of rows hold: every change tried, or proved and searched."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.explain import Explainer
from r2et.reason.decided_rows import DecidedRows
from r2et.reason.enumeration import enumerable, tried
from r2et.reason.proof import RowProofs, prove
from r2et.reason.search import Broken, Search
from r2et.region import Feasible
from r2et.region.base import Region


def stability(
    rows: DecidedRows,
    method: Explainer,
    allowed: Tensor,
    k: int,
    region: Region,
    *,
    proofs: bool = True,
    search: bool = True,
) -> tuple[RowProofs | None, Broken | None]:
    """What is proved of the reasons of these rows over a region, and where they are broken.

    All changes of a row are tried where they are few. Else they are bounded (`proofs`), and where
    nothing is proved of all of them a change that gives other reasons is looked for (`search`).
    """
    count, width = len(rows), len(rows.columns)
    proof = RowProofs.none(count, width)
    broken = Broken(torch.zeros(count, dtype=torch.bool), rows.x.clone())
    few = torch.zeros(count, dtype=torch.bool)
    if isinstance(region, Feasible):
        few = enumerable(rows, region)
    some = few.nonzero().flatten()
    if len(some):
        own, lost = tried(rows.some(some), method, allowed, k, region)  # type: ignore[arg-type]
        proof, broken = proof.placed(some, own), broken.placed(some, lost)
    left = (~few).nonzero().flatten()
    if len(left) and proofs:
        proof = proof.placed(left, prove(rows.some(left), method, allowed, k, region))
    left = left[~proof.whole[left]]
    if len(left) and search:
        look = Search(rows.decided, method, allowed, k, region)
        part = rows.some(left)
        broken = broken.placed(left, look(part.x, part.target))
    return proof if proofs else None, broken if search else None
