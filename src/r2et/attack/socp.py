"""Small cone programs over a step u, handed to Clarabel; everything here is one row, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

# Pairs that join a working set at a time: all of a table's at once, an image's in a few rounds.
BATCH = 512
# How much a pair outside the working set may exceed the largest inside it.
SLACK = 1e-7


class Room(NamedTuple):
    """Steps that stay in a region: low <= u <= high (N,), and ||center + u|| <= 1 if given."""

    low: Array
    high: Array
    center: Array | None = None


class ConeProgram:
    """min q'v + curvature ||u||^2 / 2 over v = (`extra` numbers, rates (F,), u (N,)), within cones.

    slopes: (n, N) of the scores; first, second: (P,) features of the pairs. The rates are those of
    the F features the pairs are made of, rate_i = slopes_i . u: with them a pair is two numbers of
    its row instead of N, and many pairs cost little.
    """

    def __init__(self, extra: int, slopes: Array, first: Index, second: Index) -> None:
        used, place = np.unique(np.concatenate([first, second]), return_inverse=True)
        count, self.size = len(first), slopes.shape[1]
        self.extra, self.lead = extra, extra + len(used)
        self.pairs = np.zeros((count, len(used)))
        self.pairs[np.arange(count), place[:count]] = 1.0
        self.pairs[np.arange(count), place[count:]] = -1.0
        rates = np.hstack([np.zeros((len(used), extra)), np.eye(len(used)), -slopes[used]])
        self.rows, self.right = [rates], [np.zeros(len(used))]
        self.cones: list[object] = [clarabel.ZeroConeT(len(used))]

    def gaps(self, extra: list[float], sign: float, right: Array) -> None:
        """extra . v_extra + sign * (rate_i - rate_j) <= right (P,) for all pairs."""
        count = len(self.pairs)
        parts = [np.tile(extra, (count, 1)), sign * self.pairs, np.zeros((count, self.size))]
        self._add(np.hstack(parts), right, clarabel.NonnegativeConeT(count))

    def positive(self, index: int) -> None:
        """v_extra[index] >= 0."""
        row = np.zeros((1, self.lead + self.size))
        row[0, index] = -1.0
        self._add(row, np.zeros(1), clarabel.NonnegativeConeT(1))

    def norm(self, matrix: Array, offset: Array, extra: list[float], bound: float) -> None:
        """||offset + matrix u|| <= bound + extra . v_extra."""
        rows = np.zeros((len(offset) + 1, self.lead + self.size))
        rows[0, : self.extra] = [-value for value in extra]
        rows[1:, self.lead :] = -matrix
        right = np.concatenate([[bound], offset])
        self._add(rows, right, clarabel.SecondOrderConeT(len(right)))

    def within(self, room: Room) -> None:
        """Keep u in a region."""
        eye = np.eye(self.size)
        for sign, limit in ((1.0, room.high), (-1.0, -room.low)):
            held = np.flatnonzero(np.isfinite(limit))
            if len(held):
                rows = np.hstack([np.zeros((len(held), self.lead)), sign * eye[held]])
                self._add(rows, limit[held], clarabel.NonnegativeConeT(len(held)))
        if room.center is not None:
            self.norm(eye, room.center, [0.0] * self.extra, 1.0)

    def solve(self, cost: list[float], curvature: float = 0.0) -> Array:
        """The best u (N,) for cost (extra,)."""
        q, p = np.zeros(self.lead + self.size), np.zeros(self.lead + self.size)
        q[: self.extra], p[self.lead :] = cost, curvature
        settings = clarabel.DefaultSettings.default()
        settings.verbose = False
        solver = clarabel.DefaultSolver(
            sparse.diags(p, format="csc"),
            q,
            sparse.csc_matrix(np.vstack(self.rows)),
            np.concatenate(self.right),
            self.cones,
            settings,
        )
        # A solution short of its last digits is as good a step as any: the step is tried anyway.
        step = np.asarray(solver.solve().x)[self.lead :]
        return step if np.isfinite(step).all() else np.zeros(self.size)

    def _add(self, rows: Array, right: Array, cone: object) -> None:
        self.rows.append(rows)
        self.right.append(right)
        self.cones.append(cone)


def by_working_set(
    solve: Callable[[Index], Array], values: Callable[[Array], Array], chosen: Index
) -> Array:
    """The step u that makes the largest of values(u)[chosen] smallest, few of them at a time.

    solve(some) is the answer for those alone. Violated ones join, worst first, until there are
    none: then the answer for the working set is the answer for all.
    """
    inside = chosen[:BATCH]
    while True:
        step = solve(inside)
        reached = values(step)
        most = reached[inside].max()
        outside = np.setdiff1d(chosen, inside)
        over = outside[reached[outside] > most + SLACK * (1 + abs(most))]
        if len(over) == 0:
            return step
        worst = over[np.argsort(-reached[over], kind="stable")[:BATCH]]
        inside = np.union1d(inside, worst)
