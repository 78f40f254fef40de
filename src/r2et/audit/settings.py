"""What an audit is asked to do: one frozen value, which the result and its file repeat."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from r2et.attack.strong import PLANS, Budget
from r2et.audit.moves import words_of
from r2et.config import Configurable
from r2et.defaults import BUDGET, RADIUS
from r2et.errors import InputError, require
from r2et.explain import Explainer, Gradient
from r2et.region import L2, Feasible, NormBall, Region, as_ball

WHERE = "audit"
BEYOND = 3.0  # how many radii away the smallest change is looked for
# Rows measured together: many of a small network, few of a large one; and of many rows an eighth
# at most, so that there is something to share out among workers.
MOST_ROWS, FEWEST_ROWS, ROW_COST = 1024, 8, 2**23
SHARES, SMALL_SHARE = 8, 64
POINTS_AT_ONCE = 2**20  # points of all rows of a chunk, so that the work shows how far it is
NO_BALL = "it is measured in a ball, and these changes are no ball"


@dataclass(frozen=True)
class AuditSettings(Configurable):
    """What an audit is asked to do.

    k: how many reasons are shown.
    region: where inputs may move.
    explainer: what makes the scores.
    budget: of each attack.
    seed: of all randomness.
    chunk: rows measured together; every chunk has random numbers of its own, so that a row's
        figures depend on nothing but its chunk.
    limit: how far the smallest change is looked for.
    level: of the confidence intervals.
    baseline: what a removed feature is set to.
    cutoff: the probability of class 1 from which on it is decided for; None is a half, the likelier
        class.
    """

    config_version: ClassVar[int] = 2  # 1: the default region was the papers', of radius 1

    k: int
    region: Region = field(default=L2(RADIUS))
    explainer: Explainer = field(default=Gradient())
    budget: Budget = BUDGET
    seed: int = 0
    chunk: int = 256
    limit: float = BEYOND
    level: float = 0.95
    baseline: Any = 0.0
    cutoff: float | None = None

    def __post_init__(self) -> None:
        if self.moves is None:
            as_ball(WHERE, self.region)
        is_valid = isinstance(self.explainer, Explainer)
        require(is_valid, WHERE, "explainer", "an Explainer of r2et.explain", self.explainer)
        known = isinstance(self.budget, str) and self.budget in PLANS
        require(known, WHERE, "budget", "fast, standard or thorough", self.budget)
        cutoff = self.cutoff
        is_valid = cutoff is None or (type(cutoff) is float and 0 < cutoff < 1)
        require(is_valid, WHERE, "cutoff", "None or a probability above 0 and below 1", cutoff)
        plain = cutoff is None or getattr(self.explainer, "of", None) != "probability"
        expected = "one of log-odds with a cut-off: a probability's own slope changes with it"
        require(plain, WHERE, "explainer", expected, self.explainer)
        whole = type(self.k) is int and self.k > 0
        require(whole, WHERE, "k", "a positive whole number", self.k)
        is_valid = type(self.seed) is int and self.seed >= 0
        require(is_valid, WHERE, "seed", "a whole number, 0 or more", self.seed)
        is_valid = type(self.chunk) is int and self.chunk > 0
        require(is_valid, WHERE, "chunk", "a positive whole number", self.chunk)
        least = 0.0 if self.moves is not None else self.radius
        is_valid = type(self.limit) in (int, float) and least <= self.limit < math.inf
        require(is_valid, WHERE, "limit", f"finite, and the radius {least} or more", self.limit)
        is_valid = isinstance(self.level, float) and 0 < self.level < 1
        require(is_valid, WHERE, "level", "above 0 and below 1", self.level)

    @property
    def moves(self) -> Feasible | None:
        """The region, if it is one of changes that a row of a table could really have."""
        return self.region if isinstance(self.region, Feasible) else None

    @property
    def ball(self) -> NormBall:
        """The region, which has a radius; what needs one cannot be measured without."""
        if self.moves is not None:
            raise InputError(NO_BALL)
        return as_ball(WHERE, self.region)

    @property
    def radius(self) -> float:
        return self.ball.radius

    @property
    def norm(self) -> Literal["l2", "linf"]:
        return "l2" if isinstance(self.ball, L2) else "linf"

    def ball_of(self, radius: float) -> NormBall:
        """The region with another radius."""
        return replace(self.ball, radius=radius)

    def generator(self, *where: object) -> torch.Generator:
        """Random numbers for one purpose, the same wherever they are drawn."""
        text = "/".join(map(str, (self.seed, *where)))
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
        return torch.Generator().manual_seed(seed)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for people to read; `config` tells audits apart."""
        moves = self.moves
        allowed = {} if moves is None else {"moves": words_of(moves)}
        return {
            **allowed,
            "k": self.k,
            "radius": None if moves else self.radius,
            "norm": None if moves else self.norm,
            "region": repr(self.region) if moves is None else f"at most {allowed['moves']}",
            "explainer": repr(self.explainer),
            "budget": self.budget,
            "seed": self.seed,
            "chunk": self.chunk,
            "limit": None if moves else float(self.limit),
            "level": self.level,
            **({} if self.cutoff is None else {"cutoff": self.cutoff}),
        }


def rows_at_once(
    model: nn.Module, numbers: int, total: int | None, points: float | None = None
) -> int:
    """How many rows of so many numbers to measure together, of a total where that is known.

    points: how many are tried of each row, where that is most of the work.
    """
    cost = numbers + sum(p.numel() for p in model.parameters())
    share = MOST_ROWS // 4 if total is None else max(SMALL_SHARE, -(-total // SHARES))
    most = min(MOST_ROWS, share, ROW_COST // max(1, cost))
    if points is not None:
        most = min(most, int(POINTS_AT_ONCE // points))
    return max(FEWEST_ROWS, most)
