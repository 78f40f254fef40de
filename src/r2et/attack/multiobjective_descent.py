"""The direction in which the slowest of several objectives falls fastest, as a cone program."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from r2et.attack.socp import Array, ConeProgram, Index, Room, by_working_set


class CommonDescent(NamedTuple):
    """A step u (N,), the slopes (m,) of all merits along it, and theta <= 0, 0 where critical."""

    step: Array
    rates: Array
    theta: float


class Near(NamedTuple):
    """||f + J u|| <= 1, softly: f (C,), J (C, N), and what a violation costs."""

    f: Array
    jacobian: Array
    penalty: float


def common_descent(
    slopes: Array, first: Index, second: Index, room: Room, length: float, near: Near | None = None
) -> CommonDescent:
    """min over u in room of max over l of g_l . u + ||u||^2 / (2 length), g_l = s_i - s_j.

    The method of Fliege and Svaiter (2000), where length is 1: far from all limits the answer is
    -length times the shortest vector in the convex hull of the g_l, by duality. slopes: (n, N);
    first, second: (m,). near: adds penalty * max(0, ||f + J u|| - 1), the model of the merit.
    """

    def rates(step: Array) -> Array:
        moved = slopes @ step
        along: Array = moved[first] - moved[second]
        return along

    def solve(some: Index) -> Array:
        # The two extra numbers: the largest rate, and the violation.
        program = ConeProgram(2, slopes, first[some], second[some])
        program.gaps([-1.0, 0.0], 1.0, np.zeros(len(some)))
        program.positive(1)
        if near is not None:
            program.norm(near.jacobian, near.f, [0.0, 1.0], 1.0)
        program.within(room)
        return program.solve([1.0, 1.0 if near is None else near.penalty], 1 / length)

    step = by_working_set(solve, rates, np.arange(len(first)))
    along = rates(step)
    if near is not None:
        over, start = (np.linalg.norm(near.f + near.jacobian @ u) for u in (step, 0 * step))
        along = along + near.penalty * (max(0.0, over - 1) - max(0.0, start - 1))
    return CommonDescent(step, along, float(along.max() + step @ step / (2 * length)))
