"""The linearised merits of one row, TR-MOO, and how much each merit could fall (Sec. 5, A.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2et.attack.socp import Array, ConeProgram, Index, Room, by_working_set


@dataclass(frozen=True)
class Merits:
    """l_l(u) = ||f + J u|| + |excess_l + (s_i - s_j) u| for the pairs l = (i, j), eq. (11).

    Attributes:
        f: (q,) f~(x) - f~(x0).
        jacobian: (q, N) J.
        excess: (m,) h_l - t_l.
        slopes: (n, N) of the scores.
        first: (m,) the feature i of each pair.
        second: (m,) the feature j of each pair.
        room: where u may go.
    """

    f: Array
    jacobian: Array
    excess: Array
    slopes: Array
    first: Index
    second: Index
    room: Room

    def __call__(self, step: Array) -> Array:
        """All l_l(u): steps (..., N) -> (..., m)."""
        moved = step @ self.slopes.T
        away: Array = np.linalg.norm(self.f + step @ self.jacobian.T, axis=-1)
        gaps = self.excess + moved[..., self.first] - moved[..., self.second]
        merits: Array = away[..., None] + np.abs(gaps)
        return merits

    def solve(self, chosen: Index, radius: float) -> Array:
        """TR-MOO: the step u (N,), ||u|| <= radius, that makes the largest chosen l_l smallest."""
        return by_working_set(lambda some: self._solve(some, radius), self, chosen)

    def _solve(self, some: Index, radius: float) -> Array:
        size, excess = self.slopes.shape[1], self.excess[some]
        # Extra numbers (alpha, away): the norm of f~ is common to all pairs, so it has one cone.
        program = ConeProgram(2, self.slopes, self.first[some], self.second[some])
        program.gaps([-1.0, 1.0], 1.0, -excess)
        program.gaps([-1.0, 1.0], -1.0, excess)
        program.norm(self.jacobian, self.f, [0.0, 1.0], 0.0)
        program.norm(np.eye(size), np.zeros(size), [0.0, 0.0], radius)
        program.within(self.room)
        return program.solve([1.0, 0.0])

    def chi(self, pair: int) -> float:
        """chi_l = l_l(0) - min of l_l(u) over ||u|| <= 1, eq. (12): 0 at a critical point.

        It is TR-MOO with a single objective, by the same solver. (12) is printed with the current
        radius, for which (33) would fail whenever that is below 1; its source has 1.
        """
        best = self.solve(np.array([pair]), 1.0)
        start = self(np.zeros_like(best))[pair]
        return max(0.0, float(start - self(best)[pair]))

    def surely_movable(self, chosen: Index, least: float) -> NDArray[np.bool_]:
        """Which of the chosen pairs (P,) have a chi of at least `least`, without a solver.

        A few steps against each gap's own slope are tried: one that does it is proof, none is not.
        """
        slopes, excess = self._slopes(chosen), self.excess[chosen]
        norms = np.linalg.norm(slopes, axis=1, keepdims=True)
        heading = -np.sign(excess)[:, None] * slopes / np.where(norms > 0, norms, 1.0)
        lengths = 0.5 ** np.arange(7)
        steps = np.clip(lengths[:, None, None] * heading, self.room.low, self.room.high)
        away = np.linalg.norm(self.f + steps @ self.jacobian.T, axis=-1)
        there = away + np.abs(excess + (steps * slopes).sum(-1))
        enough = np.linalg.norm(self.f) + np.abs(excess) - there >= least
        if self.room.center is not None:
            enough &= np.linalg.norm(self.room.center + steps, axis=-1) <= 1
        movable: NDArray[np.bool_] = enough.any(0)
        return movable

    def _slopes(self, chosen: Index) -> Array:
        return self.slopes[self.first[chosen]] - self.slopes[self.second[chosen]]
