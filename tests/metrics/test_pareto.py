"""The Pareto front: who is on it, in which order."""

import random

from r2et.metrics import pareto_front


def test_front_from_left_to_right():
    assert pareto_front([(0.9, 0.1), (0.8, 0.5), (0.7, 0.4), (0.6, 0.9)]) == [3, 1, 0]
    assert pareto_front([(0.5, 0.5), (0.5, 0.5)]) == [0, 1]
    assert pareto_front([(0.5, 0.5), (0.5, 0.6), (0.4, 0.6)]) == [1]
    assert pareto_front([]) == []


def test_a_sweep_gives_the_same_points():
    """From the right, whoever is higher than all before."""
    points = [(random.Random(i).random(), random.Random(-i - 1).random()) for i in range(50)]
    highest, swept = -1.0, []
    for x, y in sorted(points, reverse=True):
        if y > highest:
            highest = y
            swept.append((x, y))
    assert len(swept) > 2
    assert [points[i] for i in pareto_front(points)] == swept[::-1]
