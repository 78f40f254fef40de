"""The registry of datasets in the benchmark."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from r2et.bench.benchmark_config import BenchmarkConfig, changes
from r2et.bench.candidates import (
    EDGES,
    GROWING,
    LONG_DIGITS,
    SCALED,
    SMOOTH_EDGES,
    TABLE_CANDIDATES,
    across_ball,
    few_candidates,
    held,
    smooth_and_free,
    worst_ends,
)
from r2et.bench.papers_regime import edge_budget, papers_regime
from r2et.data import DATASETS
from r2et.errors import InputError, require
from r2et.explain import Concept, Gradient, GradientTimesInput
from r2et.region import Linf

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
# Every recipe starts from one Vanilla, as the papers' ResNets do, and stops where its AUC falls:
# rankings leave Vanilla's within 20 batches, whatever the recipe. 5 of 255 grey levels, as in the
# papers.
PICTURES: dict[str, Any] = {
    **LARGE,
    "region": Linf(5 / 255, bounds=(0, 1)),
    "retrained": True,
    "retrain_epochs": 1,
    "check_every": 20,
    "rows": 200,
    "strong_rows": 50,
    "validation_rows": 30,
}
FREE = held(SCALED, agree=0.0)
# The gradient of a gradient is 0 in a network of ReLUs: r2et-ball is trained with softplus, and the
# papers' penalties with either, for as long. Of concepts, which are activations, the worst end is
# found at once, and nothing else is learned.
CIFAR_TRIED = few_candidates(
    (*FREE[:1], *smooth_and_free(0.01, rho=3.0, every=2, epochs=4)),
    worst_ends(0.05, 0.08, rho=3.0, every=2, epochs=4),
)
HEAVIER = (*SCALED, changes(weight=1.0, adaptive=True))
OCT_TRIED = few_candidates(held(HEAVIER, agree=0.0), held(across_ball(0.01, 0.1), agree=0.0))
CIFAR = BenchmarkConfig(
    "cifar10-10k",
    explainer=Gradient(of="probability", reduce="abs_sum"),
    judged=Gradient(reduce="abs_sum"),
    k=100,
    ks=(50, 100),
    sigma=0.1,
    width=(16,),
    epochs=6,
    augment=3,
    candidates=CIFAR_TRIED,
    retrain_candidates=CIFAR_TRIED,
    **PICTURES,
)
# A ResNet18 of the papers' width has their 512 concepts.
OCT = BenchmarkConfig(
    "oct-kermany-64",
    explainer=Concept(),
    judged=Concept(),
    k=50,
    ks=(10, 30, 50),
    width=(64,),
    epochs=10,
    candidates=OCT_TRIED,
    retrain_candidates=OCT_TRIED,
    **PICTURES,
)
BRAIN = BenchmarkConfig(
    "adhd-frontal",
    explainer=GradientTimesInput(of="probability"),
    judged=GradientTimesInput(),
    region=edge_budget("adhd-frontal"),
    k=50,
    ks=(10, 30, 50),
    sigma=0.1,
    epochs=10,
    rows=100,
    strong_rows=30,
    candidates=few_candidates((changes(weight=0.1),), EDGES),
    **LARGE,
)
# The papers' own data, by their budget.
PAPERS_BRAIN = replace(BRAIN, region=Linf(0.2))
# The papers' size of pictures, for machines that have the time.
WHOLE: dict[str, Any] = {"width": None, "epochs": 20}
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
        candidates=few_candidates(GROWING[1:2], LONG_DIGITS),
        **LARGE,
    ),
    CIFAR,
    replace(CIFAR, data="cifar10", paper="cifar10", **WHOLE),
    OCT,
    replace(OCT, data="oct-kermany", **WHOLE),
    replace(OCT, data="octid", paper="roct", **WHOLE),
    BRAIN,
    # A graph convolution sees sums of edges, which say nothing of a diagnosis: docs/data/brain.md.
    replace(
        BRAIN,
        data="abide",
        region=edge_budget("abide"),
        edge_width=16,
        candidates=few_candidates((changes(weight=0.1),), SMOOTH_EDGES),
    ),
    replace(PAPERS_BRAIN, data="adhd", paper="adhd"),
    replace(PAPERS_BRAIN, data="bp", paper="bp"),
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
