"""Names beside the points of a chart, so that each is read as its own point's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from r2et.report.svg import LETTER, Axes

LONGEST = 18  # letters of a model's name on a chart
BOLD = 1.12 * LETTER  # width of a bold letter
DOT = 8  # half the width of a point with its edge
SAME = 3.0  # points closer than this are one to the eye
ABOVE, BELOW = 11, 3  # of a line of text, from its base
# Directions in which a name may stand, the readable ones first.
AROUND = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1))
FAR = (10, 20, 32, 46)
Box = tuple[float, float, float, float]  # left, top, right, bottom
Place = tuple[float, float]


def label(axes: Axes, points: Sequence[Place], names: Sequence[str], title: str) -> None:
    """Write each name next to its point; points that coincide share a label.

    title: what already stands at the top left. A name that cannot be nearest to its own point is
    tied to it by a line.
    """
    taken: list[Box] = [(0, 0, LETTER * len(title) + 6, 18)]
    taken += [(a - DOT, b - DOT, a + DOT, b + DOT) for a, b in points]
    for point, together in grouped(points, names):
        text = ", ".join(map(short, together))
        box = _chosen(axes, point, BOLD * len(text) + 2, points, taken)
        taken.append(box)
        if not _nearest(box, point, points):
            x = min(max(point[0], box[0]), box[2])
            y = min(max(point[1], box[1]), box[3])
            axes.add('<path class="tie" d="M{} {}L{} {}"/>', *point, round(x, 1), round(y, 1))
        axes.text((round(box[0], 1), round(box[3] - BELOW, 1)), text, "strong haloed")


def grouped(points: Sequence[Place], names: Sequence[str]) -> list[tuple[Place, list[str]]]:
    """Points that differ to the eye, each with the names of all that lie there."""
    groups: list[tuple[Place, list[str]]] = []
    for point, name in zip(points, names, strict=True):
        near = next((some for at, some in groups if math.dist(at, point) < SAME), None)
        if near is None:
            groups.append((point, [name]))
        else:
            near.append(name)
    return groups


def short(name: str) -> str:
    """A name as a chart has room for it."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _chosen(
    axes: Axes, point: Place, width: float, points: Sequence[Place], taken: Sequence[Box]
) -> Box:
    """The first free place around a point that is nearer to it than to any other, or just free."""
    places = [_box(point, way, far, width) for far in FAR for way in AROUND]
    inside = [p for p in places if _inside(axes, p)]
    free = [p for p in inside if not any(_overlap(p, other) for other in taken)]
    own = [p for p in free if _nearest(p, point, points)]
    return next(iter([*own, *free, *inside, *places]))


def _box(point: Place, way: tuple[int, int], far: float, width: float) -> Box:
    (a, b), (across, down) = point, way
    height = ABOVE + BELOW
    left = {1: a + far, 0: a - width / 2, -1: a - far - width}[across]
    top = {1: b + far, 0: b - height / 2, -1: b - far - height}[down]
    return left, top, left + width, top + height


def _inside(axes: Axes, box: Box) -> bool:
    left, top, right, bottom = box
    return left >= axes.left and right <= axes.width and top >= 0 and bottom <= _floor(axes)


def _floor(axes: Axes) -> float:
    return axes.height - axes.bottom


def _overlap(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def _nearest(box: Box, point: Place, points: Sequence[Place]) -> bool:
    """Whether a reader gives the name to its own point: no other is nearly as close."""
    own = _away(box, point)
    others = [_away(box, p) for p in points if math.dist(p, point) >= SAME]
    return all(own + 4 < other for other in others)


def _away(box: Box, point: Place) -> float:
    across = max(box[0] - point[0], 0.0, point[0] - box[2])
    down = max(box[1] - point[1], 0.0, point[1] - box[3])
    return math.hypot(across, down)
