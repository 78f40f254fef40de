"""The Pareto front of points where more is better in both respects."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points that no other one is at least as good as in both, from left to right.

    Equal points are on the front together.
    """

    def is_beaten(point: tuple[float, float]) -> bool:
        x, y = point
        return any(a >= x and b >= y and (a, b) != (x, y) for a, b in points)

    front = [i for i, point in enumerate(points) if not is_beaten(point)]
    return sorted(front, key=lambda i: (points[i][0], -points[i][1]))
