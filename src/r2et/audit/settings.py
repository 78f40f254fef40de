"""What an audit is asked to do: one frozen value, which the result and its file repeat."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import nn

from r2et.attack.strong import PLANS, Budget
from r2et.config import Configurable
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.region import L2, NormBall, Region, as_ball

WHERE = "audit"
BEYOND = 3.0  # how many radii away the smallest change is looked for
# Rows measured together: many of a small network, few of a large one; and of many rows an eighth
# at most, so that there is something to share out among workers.
MOST_ROWS, FEWEST_ROWS, ROW_COST = 1024, 8, 2**23
SHARES, SMALL_SHARE = 8, 64


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
    """

    k: int
    region: Region = field(default=L2(1.0))
    explainer: Explainer = field(default=Gradient())
    budget: Budget = "standard"
    seed: int = 0
    chunk: int = 256
    limit: float = BEYOND
    level: float = 0.95
    baseline: Any = 0.0

    def __post_init__(self) -> None:
        as_ball(WHERE, self.region)
        is_valid = isinstance(self.explainer, Explainer)
        require(is_valid, WHERE, "explainer", "an Explainer of r2et.explain", self.explainer)
        known = isinstance(self.budget, str) and self.budget in PLANS
        require(known, WHERE, "budget", "fast, standard or thorough", self.budget)
        whole = type(self.k) is int and self.k > 0
        require(whole, WHERE, "k", "a positive whole number", self.k)
        is_valid = type(self.seed) is int and self.seed >= 0
        require(is_valid, WHERE, "seed", "a whole number, 0 or more", self.seed)
        is_valid = type(self.chunk) is int and self.chunk > 0
        require(is_valid, WHERE, "chunk", "a positive whole number", self.chunk)
        is_valid = type(self.limit) in (int, float) and self.radius <= self.limit < math.inf
        require(
            is_valid, WHERE, "limit", f"finite, and the radius {self.radius} or more", self.limit
        )
        is_valid = isinstance(self.level, float) and 0 < self.level < 1
        require(is_valid, WHERE, "level", "above 0 and below 1", self.level)

    @property
    def ball(self) -> NormBall:
        """The region, which has a radius."""
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
        return {
            "k": self.k,
            "radius": self.radius,
            "norm": self.norm,
            "region": repr(self.region),
            "explainer": repr(self.explainer),
            "budget": self.budget,
            "seed": self.seed,
            "chunk": self.chunk,
            "limit": float(self.limit),
            "level": self.level,
        }


def rows_at_once(model: nn.Module, numbers: int, total: int | None) -> int:
    """How many rows of so many numbers to measure together, of a total where that is known."""
    cost = numbers + sum(p.numel() for p in model.parameters())
    share = MOST_ROWS // 4 if total is None else max(SMALL_SHARE, -(-total // SHARES))
    return max(FEWEST_ROWS, min(MOST_ROWS, share, ROW_COST // max(1, cost)))
