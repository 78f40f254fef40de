"""What the figures of an audit come to: shares at its radius, correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from r2et.results import AuditResult
from r2et.wording import finite, finites


@dataclass(frozen=True)
class Shares:
    """Shares of rows whose top k at the audit's radius is proved, unknown, broken; they sum to 1.

    proof, attack: whether there was one at all.
    rows: how many went through all there was.
    conflicts: rows both proved and broken, which a sound proof excludes.
    """

    proved: float
    unknown: float
    broken: float
    proof: bool
    attack: bool
    rows: int
    conflicts: int


def shares_at_radius(audit: AuditResult) -> Shares:
    """From the rows: what is proved at the audit's radius, and what an attack changed within it."""
    rows, radius = audit["rows"], finite(audit["summary"].get("radius"))
    length = max((len(column) for column in rows.values() if column), default=0)

    def column(name: str) -> list[float | None]:
        return finites(rows.get(name)) or [None] * length

    proved = [
        _either(None if r is None or radius is None else r >= radius, None if p is None else p >= 1)
        for r, p in zip(column("radius_certified"), column("certified_precision"), strict=True)
    ]
    strong = column("precision_strong")
    # A null radius_attacked says "none found" where rows were attacked at all.
    within = [
        r is not None and radius is not None and r <= radius for r in column("radius_attacked")
    ]
    searched = any(r is not None for r in column("radius_attacked"))
    kept = any(p is not None for p in strong)
    broken = [
        _either(None if p is None else p < 1, f if f or (searched and not kept) else None)
        for p, f in zip(strong, within, strict=True)
    ]
    proof = any(p is not None for p in proved)
    attack = any(b is not None for b in broken)
    pairs = [
        (bool(p), bool(b))
        for p, b in zip(proved, broken, strict=True)
        if (p is not None or not proof) and (b is not None or not attack)
    ]
    total = len(pairs)
    if not total or not (proof or attack):
        return Shares(0.0, 1.0, 0.0, False, False, 0, 0)
    conflicts = sum(p and b for p, b in pairs)
    hit = sum(b for _, b in pairs)
    safe = sum(p for p, _ in pairs) - conflicts
    unknown = total - safe - hit
    return Shares(safe / total, unknown / total, hit / total, proof, attack, total, conflicts)


@dataclass(frozen=True)
class RowPairs:
    """Rows measured in two ways: points to draw (at most LIMIT), and what holds for all of them."""

    points: list[tuple[float, float]]
    total: int
    correlation: float | None


LIMIT = 1000


def pairs(xs: Sequence[Any] | None, ys: Sequence[Any] | None) -> RowPairs | None:
    """The rows that have both figures, with their correlation (Figure 2); None below three."""
    both = zip(finites(xs), finites(ys), strict=False)
    points = [(x, y) for x, y in both if x is not None and y is not None]
    if len(points) < 3:
        return None
    step = math.ceil(len(points) / LIMIT)
    return RowPairs(points[::step], len(points), correlation(points))


def correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's; None where one of the two does not vary."""
    total = len(points)
    # In units of the largest, so that no square overflows.
    unit_x, unit_y = (max(abs(v) for v in vs) or 1.0 for vs in zip(*points, strict=True))
    points = [(x / unit_x, y / unit_y) for x, y in points]
    mean_x = math.fsum(x for x, _ in points) / total
    mean_y = math.fsum(y for _, y in points) / total
    xx = math.fsum((x - mean_x) ** 2 for x, _ in points)
    yy = math.fsum((y - mean_y) ** 2 for _, y in points)
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    # Below, what is left of equal numbers after rounding.
    flat = xx <= 1e-24 * total * mean_x**2 or yy <= 1e-24 * total * mean_y**2
    return None if flat else max(-1.0, min(1.0, xy / math.sqrt(xx) / math.sqrt(yy)))


def _either(a: bool | None, b: bool | None) -> bool | None:
    """Whether one of two says so, where at least one says anything."""
    return None if a is None and b is None else bool(a or b)


def search_limit(audit: AuditResult) -> float | None:
    """The largest radius that was looked at; None where the audit does not say."""
    return finite(audit["settings"].get("limit"))


def moves_of(audit: AuditResult) -> str | None:
    """How far rows could be changed, in words, where they are changed as those of a table."""
    moves = audit["settings"].get("moves")
    return moves if isinstance(moves, str) and audit["summary"].get("radius") is None else None


def class_count(audit: AuditResult) -> int:
    """How many classes the model has: as the audit says, or as its names and rows show."""
    stated = finite(audit.get("class_count"))
    if stated is not None:
        return int(stated)
    seen = [*finites(audit["rows"].get("target")), *finites(audit["rows"].get("label"))]
    return max(2, len(audit.get("classes") or ()), *(int(s) + 1 for s in seen if s is not None))


def endless(audit: AuditResult, name: str) -> bool:
    """A radius that no attack found for most rows: no number, but better than any."""
    sought = finite((audit.get("counts") or {}).get(name))
    lacking = finite(audit["summary"].get(name)) is None
    return name == "radius_attacked_median" and bool(sought) and lacking
