"""The registry of datasets in the benchmark, and what is tried of each recipe on them."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from r2et.bench.benchmark_config import BenchmarkConfig, Changes, changes
from r2et.bench.papers_regime import papers_regime
from r2et.data import DATASETS
from r2et.errors import InputError, require
from r2et.explain import Concept, Gradient, GradientTimesInput
from r2et.region import Linf

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


def _few(**settings: Any) -> dict[str, tuple[Changes, ...]]:
    """One setting of every recipe: what two cores can train of larger networks."""
    own = {
        "vanilla": ((),),
        "wd": (changes(weight_decay=1e-4),),
        "sp": (changes(rho=3.0),),
        "at": (changes(radius=0.1),),
    }
    names = [name for name in TABLE_CANDIDATES if name not in ONLY_TABLES]
    return {name: own.get(name, (changes(**settings),)) for name in names}


SECOND_DIGIT = range(784, 1568)
# The papers' attack on what is no table, and training as they have it.
LARGE: dict[str, Any] = {
    "steps": 100,
    "norm": "linf",
    "flip_below": 0.8,
    "batch": 64,
    "lr": 0.001,
    "keep": "above",
}
# What two cores can train of pictures. 5 of 255 grey levels, as in the papers.
SMALL: dict[str, Any] = {
    **LARGE,
    "region": Linf(5 / 255, bounds=(0, 1)),
    "width": (8,),
    "train_rows": 2000,
    "rows": 30,
    "strong_rows": 0,
    "candidates": _few(weight=0.01, every=8),
}
CIFAR = BenchmarkConfig(
    "cifar10-10k",
    explainer=Gradient(of="probability", reduce="abs_sum"),
    judged=Gradient(reduce="abs_sum"),
    k=100,
    ks=(50, 100),
    sigma=0.1,
    epochs=4,
    **SMALL,
)
OCT = BenchmarkConfig(
    "oct-kermany-64",
    explainer=Concept(),
    judged=Concept(),
    k=5,
    ks=(2, 5),
    epochs=5,
    **SMALL,
)
BRAIN = BenchmarkConfig(
    "adhd-frontal",
    explainer=GradientTimesInput(of="probability"),
    judged=GradientTimesInput(),
    region=Linf(0.2),
    k=50,
    ks=(10, 30, 50),
    sigma=0.1,
    epochs=10,
    rows=100,
    strong_rows=30,
    candidates=_few(weight=0.1),
    **LARGE,
)
# The papers' size of pictures, for machines that have the time.
WHOLE: dict[str, Any] = {"width": None, "train_rows": None, "epochs": 20, "rows": 200}
_ALL = (
    BenchmarkConfig("adult", "adult", candidates=TABLE_CANDIDATES),
    BenchmarkConfig("bank", "bank", candidates=TABLE_CANDIDATES),
    BenchmarkConfig("compas", "compas", candidates=TABLE_CANDIDATES),
    BenchmarkConfig(
        "mnist",
        "mnist",
        # The first digit of a pair is explained and attacked, the second is what it is compared
        # with.
        explainer=Gradient(of="probability", part=0),
        judged=Gradient(part=0),
        region=Linf(5 / 255, bounds=(0, 1), frozen=SECOND_DIGIT),
        k=50,
        ks=(10, 30, 50),
        sigma=0.1,
        epochs=25,
        slack=0.015,
        rows=200,
        strong_rows=30,
        candidates=_few(weight=0.3, warm_up=1.0),
        **LARGE,
    ),
    CIFAR,
    replace(CIFAR, data="cifar10", paper="cifar10", **WHOLE),
    OCT,
    replace(OCT, data="oct-kermany", **WHOLE),
    replace(OCT, data="octid", paper="roct", **WHOLE),
    BRAIN,
    replace(BRAIN, data="abide"),
    replace(BRAIN, data="adhd", paper="adhd"),
    replace(BRAIN, data="bp", paper="bp"),
)
BENCHMARKS: dict[str, BenchmarkConfig] = {each.data: each for each in _ALL}
REGIMES: dict[str, dict[str, BenchmarkConfig]] = {
    "long": BENCHMARKS,
    "papers": {each.data: each for each in papers_regime(BENCHMARKS)},
}


def find_benchmark(name: str, regime: str = "long") -> BenchmarkConfig:
    """The config of this dataset, or a sentence that lists those there are."""
    require(regime in REGIMES, "bench", "regime", f"one of {', '.join(REGIMES)}", regime)
    if name in REGIMES[regime]:
        return REGIMES[regime][name]
    if name in BENCHMARKS:
        own = ", ".join(REGIMES[regime])
        raise InputError(
            f"bench: datasets must be of the {regime} regime ({own}), got {name!r}, which is not."
        )
    near = difflib.get_close_matches(str(name).lower(), BENCHMARKS, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    also = ", which is known but has no benchmark" if name in DATASETS else ""
    expected = f"one of {', '.join(BENCHMARKS)}{hint}"
    raise InputError(f"bench: datasets must be {expected}, got {name!r}{also}.")


def dataset_title(name: str) -> str:
    """A dataset's own name, with what it stands in for, if it does."""
    other = DATASETS[name].source.stands_for
    return f"{name} (stands in for {other})" if other else name
