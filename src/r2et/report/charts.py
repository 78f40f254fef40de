"""The charts of one audit: the bracket over the radius, the strip at one radius, scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from r2et.report.shares import RowPairs, Shares
from r2et.report.svg import LETTER, Axes, both
from r2et.results import CurvePoint
from r2et.wording import finite, fixed, percent, percents, proved_percent, significant

STATES = {"proved": "proved", "unknown": "unknown", "broken": "broken by an attack"}


def patterns(name: str) -> Markup:
    """What tells the three areas apart without colour: plain, striped, dotted."""
    return Markup(
        '<defs><pattern id="{n}-unknown" width="7" height="7" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><rect width="7" height="7" class="unknown"/>'
        '<rect width="2" height="7" class="stripe"/></pattern>'
        '<pattern id="{n}-broken" width="8" height="8" patternUnits="userSpaceOnUse">'
        '<rect width="8" height="8" class="broken"/><circle cx="2" cy="2" r="1.1" class="dot"/>'
        '<circle cx="6" cy="6" r="1.1" class="dot"/></pattern></defs>'
    ).format(n=name)


def strip(shares: Shares, name: str, height: int = 44) -> Markup:
    """The three shares at the audit's radius, as one bar."""
    values = (shares.proved, shares.unknown, shares.broken)
    words = dict(zip(STATES, percents(values), strict=True))
    description = ", ".join(f"{words[s]} {STATES[s]}" for s in STATES)

    def draw(width: int) -> Markup:
        own = f"{name}-{width}"
        axes = Axes(width, height, (0, 1), left=0, right=0, top=0, bottom=0)
        axes.parts.append(patterns(own))
        start = 0.0
        for state, share in zip(STATES, values, strict=True):
            x, size = axes.at(start, 1)[0], share * width
            _area(axes, own, state, f"M{x:g} 0h{size:g}v{height}h{-size:g}z")
            if size > LETTER * (len(words[state]) + 3):
                axes.text((x + 12, height / 2 + 5), words[state], f"in-{state}")
            start += share
        return axes.svg(own, "Rows at the audit's radius", description)

    return both(draw)


def curve(
    entries: Sequence[CurvePoint], radius: float | None, shares: Shares, name: str
) -> Markup | None:
    """Shares proved, unknown and broken against the radius; None below two radii.

    At the audit's radius the shares are known exactly, and the lines pass through them.
    """
    points = sorted(
        (
            (float(e["radius"]), float(e["proved"]), float(e["broken"]))
            for e in entries
            if e["radius"] > 0
        ),
        key=lambda point: point[0],
    )
    if len(points) < 2 or points[0][0] == points[-1][0]:
        return None
    first, last = points[0], points[-1]
    if radius is not None and shares.rows:
        points = _with(points, (radius, shares.proved, shares.broken))
    description = (
        f"At radius {significant(first[0])}, {proved_percent(first[1])} of rows are proved and"
        f" {percent(first[2])} broken; at {significant(last[0])}, {proved_percent(last[1])} and"
        f" {percent(last[2])}. The rest is unknown. The table below has all values."
    )

    def draw(width: int) -> Markup:
        own = f"{name}-{width}"
        axes = Axes(width, 360 if width > 500 else 270, (first[0], last[0]), log=True, top=42)
        axes.parts.append(patterns(own))
        floor = [(r, 0.0) for r, _, _ in points]
        proved = [(r, p) for r, p, _ in points]
        broken = [(r, max(p, 1 - b)) for r, p, b in points]
        ceiling = [(r, 1.0) for r, _, _ in points]
        for state, low, high in (
            ("proved", floor, proved),
            ("unknown", proved, broken),
            ("broken", broken, ceiling),
        ):
            _area(axes, own, state, axes.path([*low, *reversed(high)]) + "z")
        for style, line in (("safe", proved), ("hit", broken)):
            axes.add('<path class="edge {}" d="{}"/>', style, axes.path(line))
        axes.grid("size of the change (radius, logarithmic)", "share of rows", _whole)
        if radius is not None and first[0] <= radius <= last[0]:
            x, top = axes.at(radius, 1)
            axes.add('<path class="here" d="M{} {}V{}"/>', x, top - 6, axes.at(radius, 0)[1])
            words = f"audited: {significant(radius)}"
            half = LETTER * len(words) / 2
            x = min(max(x, half + 90), width - half - 4)
            axes.text((x, top - 11), words, "strong", "middle")
        for state, low, high in (
            ("proved", floor, proved),
            ("unknown", proved, broken),
            ("broken", broken, ceiling),
        ):
            _name_area(axes, state, low, high)
        return axes.svg(own, "What is proved, unknown and broken at each radius", description)

    return both(draw)


def scatter(row_pairs: RowPairs, x_label: str, y_label: str, name: str) -> Markup:
    """One dot per row, with the correlation of all of them in words."""
    xs, ys = zip(*row_pairs.points, strict=True)
    description = (
        f"{len(row_pairs.points)} rows drawn. {x_label} from {significant(min(xs))} to"
        f" {significant(max(xs))}, {y_label} from {significant(min(ys))} to"
        f" {significant(max(ys))}. {correlated(row_pairs)}"
    )

    def draw(width: int) -> Markup:
        own = f"{name}-{width}"
        axes = Axes(width, 300, _around(xs), _around(ys), top=32, left=54)
        axes.grid(x_label, y_label, significant)
        # A line without length and with round ends is a dot, and takes fewer bytes than a circle.
        dots = "".join(f"M{a:g} {b:g}h0" for a, b in (axes.at(x, y) for x, y in row_pairs.points))
        axes.add('<path class="dots" d="{}"/>', dots)
        return axes.svg(own, f"{y_label} against {x_label}", description)

    return both(draw, wide=480)


def correlated(row_pairs: RowPairs) -> str:
    """The correlation in words."""
    if row_pairs.correlation is None:
        return "No correlation: one of the two does not vary."
    return f"Correlation (Pearson): {fixed(row_pairs.correlation, 2)}."


def _with(points: list[tuple[float, float, float]], exact: tuple[float, float, float]) -> Any:
    """The points and one more, where it lies between its neighbours."""
    below = [p for p in points if p[0] < exact[0]]
    above = [p for p in points if p[0] > exact[0]]
    if not below or not above:
        return points
    (_, proved, broken), (_, less, more) = below[-1], above[0]
    fits = less <= exact[1] <= proved and broken <= exact[2] <= more
    return [*below, exact, *above] if fits else points


def _area(axes: Axes, name: str, state: str, path: str) -> None:
    if state == "proved":
        axes.add('<path class="proved" d="{}"/>', path)
    else:
        axes.add('<path fill="url(#{}-{})" d="{}"/>', name, state, path)


def _name_area(
    axes: Axes, state: str, low: list[tuple[float, float]], high: list[tuple[float, float]]
) -> None:
    """The area's name in the middle of where it is thickest, if the word fits in there."""
    half = LETTER * len(state) / 2 + 10
    edges = [
        (*axes.at(*a), axes.at(*b)[1]) for a, b in zip(low, high, strict=True)
    ]  # x, bottom, top

    def room(x: float) -> float:
        near = [(bottom, top) for at, bottom, top in edges if abs(at - x) <= half]
        return min(bottom for bottom, _ in near) - max(top for _, top in near)

    inside = (axes.left + half, axes.width - axes.right - half)
    places = [(room(x), x, bottom, top) for x, bottom, top in edges if inside[0] <= x <= inside[1]]
    largest = max((place[0] for place in places), default=0.0)
    if largest >= 24:
        best = [place for place in places if place[0] >= 0.95 * largest]
        _, x, bottom, top = best[len(best) // 2]
        axes.text((x, (bottom + top) / 2 + 5), state, f"in-{state}", "middle")


def _around(values: Sequence[float]) -> tuple[float, float]:
    """A range with a margin, also around a single value."""
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or abs(low) * 0.1 or 1.0
    return low - margin, high + margin


def _whole(share: float) -> str:
    value = finite(share)
    return "" if value is None else f"{round(100 * value)}\u00a0%"
