"""The settings of each recipe that are tried: those of tables, and fewer of larger networks."""

from __future__ import annotations

from typing import Any

from r2et.bench.benchmark_config import Changes, changes

WEIGHTS = tuple(changes(weight=w) for w in (0.003, 0.01, 0.03, 0.1))

# What is tried on tables with the first seed; the choice is then trained with the others.
TABLE_CANDIDATES: dict[str, tuple[Changes, ...]] = {
    "vanilla": ((),),
    "wd": tuple(changes(weight_decay=w) for w in (1e-4, 1e-3, 1e-2)),
    "sp": tuple(changes(rho=r) for r in (0.5, 1.0, 3.0)),
    "est-h": WEIGHTS,
    "exact-h": WEIGHTS[1:3],
    "ssr": WEIGHTS[1:3],
    "at": tuple(changes(radius=r) for r in (0.03, 0.1, 0.3)),
    "cl": tuple(changes(weight=w) for w in (0.01, 0.1)),
    "r2et": WEIGHTS,
    "r2et-mm": WEIGHTS,
    "r2et-nh": WEIGHTS,
    "r2et-mm-nh": WEIGHTS,
    "r2et-ball": tuple(changes(weight=w) for w in (0.01, 0.03, 0.1)),
    "certified": tuple(changes(weight=w) for w in (0.1, 0.3, 1.0)),
    "linear": ((),),
}
# Weights beyond those, tried one after another as long as the AUC allows.
LARGER_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
ONLY_TABLES = ("exact-h", "ssr", "cl", "certified", "linear")

# Of a mean over pairs, and of curvature; a weight on every batch from the start keeps a network of
# pictures from learning, so the larger ones grow with the training.
FROM_THE_START = tuple(changes(weight=w) for w in (0.003, 0.01, 0.03))
GROWING = tuple(changes(weight=w, warm_up=1.0) for w in (0.1, 0.3, 1.0))
# Of a retraining, scaled to the loss: the gaps of a picture's gradient are tiny.
SCALED = tuple(changes(weight=w, adaptive=True) for w in (0.01, 0.1))
PENALISED = ("est-h", "r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh")


def few_candidates(
    penalised: tuple[Changes, ...], ball: tuple[Changes, ...]
) -> dict[str, tuple[Changes, ...]]:
    """One setting of every recipe that is not for tables alone, but for those with a weight.

    penalised: what is tried of the papers' recipes with a penalty; ball: of r2et-ball.
    """
    own: dict[str, tuple[Changes, ...]] = {
        "vanilla": ((),),
        "wd": (changes(weight_decay=1e-4),),
        "sp": (changes(rho=3.0),),
        "at": (changes(radius=0.1),),
    }
    return {**own, **dict.fromkeys(PENALISED, penalised), "r2et-ball": ball}


def across_ball(*weights: float, **settings: Any) -> tuple[Changes, ...]:
    """Settings of r2et-ball without its gaps.

    Between hundreds of pixels the widest gaps are those of a network that has learned nothing.
    """
    return tuple(changes(weight=w, l1=0.0, **settings) for w in weights)


COOLED = {"free": True, "cool_down": 0.7, "warm_up": 0.0}


def worst_ends(*weights: float, **settings: Any) -> tuple[Changes, ...]:
    """Settings of r2et-ball that begins at Vanilla and looks at the worst end of the ball."""
    return across_ball(*weights, **{**COOLED, "ends": "worst", **settings})


def smooth_and_free(*weights: float, **settings: Any) -> tuple[Changes, ...]:
    """Settings of the papers' penalties, as long and as free a retraining as r2et-ball has."""
    return tuple(changes(weight=w, adaptive=True, **{**COOLED, **settings}) for w in weights)


# Of the digits' ball: a learning rate that falls to 0 brings back AUC that the penalty costs.
LONG_DIGITS = (
    *across_ball(0.05, epochs=25),
    *across_ball(0.03, epochs=60, cool_down=0.7),
)
EDGES = across_ball(0.1, 0.3)
# A smooth network of edges, so that a step of an attack sees where to go.
SMOOTH_EDGES = (*EDGES, *across_ball(0.1, 0.3, ends="worst", radius=0.4))


def held(tried: tuple[Changes, ...], agree: float) -> tuple[Changes, ...]:
    """The same settings of a retraining that stops where P@k with Vanilla's rankings is lower."""
    return tuple(changes(**dict(each), agree=agree) for each in tried)
