"""Reasons that people are given, proved: writes perf/records/reasons.json.

`python perf/reasons.py [TABLE ...]`: the four columns that push a row most toward the unfavourable
class (contributions from the average training row, signed), when every number may move by one unit
and by two: a year, an hour, a count; of numbers with decimals a hundredth of their range. Proved by
IntervalCertifier in that very region, attacked by FeasibleSearch, which must keep the prediction.
One hidden layer of 32: `vanilla`, `linear`, `certified` (the gradient's top k), and `certified`
trained for these contributions in this region. Half an hour on one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from r2et.attack import FeasibleSearch
from r2et.certify import IntervalCertifier
from r2et.data import Data, load, load_table
from r2et.data.sources.folders import data_dir
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients
from r2et.metrics import split_auc
from r2et.models import MLP
from r2et.rank import distinct_top_k, effective_top_k
from r2et.region import Feasible, Linf
from r2et.train import fit, recipe
from r2et.train.defaults import column_groups
from recording import RECORDS, load_record, save

K, ROWS, UNITS = 4, 500, (1.0, 2.0)
ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
)


def folder() -> Path:
    """Where the data are: R2ET_DATA."""
    place = data_dir()
    if place is None:
        sys.exit("set R2ET_DATA to the folder of the tables")
    return place


def adult() -> Data:
    """UCI Adult with all its columns but the sampling weight."""
    frame = pd.read_csv(folder() / "adult" / "adult.data.gz", names=ADULT, skipinitialspace=True)
    return load_table(frame.drop(columns="fnlwgt"), "income", k=K)


def bank() -> Data:
    """UCI Bank marketing without the length of the call, which is known only after it."""
    frame = pd.read_csv(folder() / "bank" / "bank-additional-full.csv.gz", sep=";")
    return load_table(frame.drop(columns="duration"), "y", k=K)


# Each with the label of the class that is bad news.
TABLES: dict[str, tuple[Callable[[], Data], str]] = {
    "adult": (adult, "<=50K"),
    "compas": (lambda: load("compas"), "medium or high"),
    "bank": (bank, "no"),
}


def contributions(data: Data) -> GradientTimesInput:
    """One for each column, from the average training row."""
    average = data.train.x.double().mean(0).tolist()
    return GradientTimesInput(baseline=average, groups=column_groups(data), reduce="signed")


def moves(data: Data, units: float) -> dict[str, float]:
    """How far each number goes, in raw units."""
    assert data.schema is not None
    numbers = [c for c in data.schema.columns if c.kind in ("number", "integer", "date")]
    unit = {c.name: (c.high - c.low) / 100 if c.kind == "number" else 1.0 for c in numbers}
    # A unit that is the whole range, as of a count up to 3, is no small change, but a real one.
    return {name: units * far for name, far in unit.items()}


def box(data: Data) -> Linf:
    """The same changes as a ball of radius 1 for one unit, in which training bounds."""
    assert data.schema is not None
    far, scale, frozen = moves(data, 1.0), [], []
    for column in data.schema.columns:
        for name in column.features:
            free = name == column.name and column.name in far
            if not free:
                frozen.append(len(scale))
            scale.append(far[column.name] / (column.high - column.low) if free else 1.0)
    return Linf(1.0, scale=scale, frozen=frozen)


def networks(data: Data, toward: int) -> dict[str, nn.Module]:
    """Vanilla, a linear model, and two that were trained against a proof."""
    start = MLP(len(data.names), (32,))
    settings: dict[str, Any] = {"seed": 0, "progress": False, "baselines": False}
    made: dict[str, nn.Module] = {
        "vanilla": fit(start, data, "vanilla", k=K, **settings).model,
        "linear": fit(start, data, "linear", k=K, **settings).model,
        "certified": fit(start, data, "certified", k=K, radius=0.3, **settings).model,
    }
    own = recipe("certified", weight=1.0, region=box(data), toward=toward)
    made["certified, these reasons"] = fit(
        start, data, own, k=K, radius=max(UNITS), explainer=contributions(data), **settings
    ).model
    return {name: model.eval().requires_grad_(False) for name, model in made.items()}


def measure(name: str) -> list[dict[str, Any]]:
    """Every network of a table, at every size of the changes."""
    make, bad = TABLES[name]
    data = make()
    toward = data.classes.index(bad)
    x, reasons = data.test.x[:ROWS], contributions(data)
    target = torch.full((len(x),), toward)
    entries = []
    for title, model in networks(data, toward).items():
        scores = reasons(model, x, target)
        for units in UNITS:
            region = Feasible(data.schema, moves=moves(data, units))  # type: ignore[arg-type]
            start = time.process_time()
            certificate = IntervalCertifier(region=region)(model, reasons, x, k=K, target=target)
            seconds = time.process_time() - start
            attack = FeasibleSearch(region)
            found = attack(model, reasons, x, k=K, target=target)
            proved, broken = certificate.radius == 1, found.precision < 1
            assert not bool((proved & broken).any()), "an attack entered what was proved"
            entries.append(
                {
                    "table": name,
                    "network": title,
                    "units": units,
                    "rows": len(x),
                    "columns": scores.shape[1],
                    "proved": _share(proved),
                    "broken": _share(broken),
                    "exact": _share(attack.exact(x)),
                    "each_proved": float(certificate.stays_at(1).sum() / (K * len(x))),
                    "auc": split_auc(model, data.test),
                    "sets": distinct_top_k(scores, K),
                    "effective": effective_top_k(scores, K),
                    "seconds": round(seconds, 2),
                }
            )
            print(entries[-1], flush=True)
    return entries


def _share(rows: Tensor) -> float:
    return float(rows.double().mean())


def cost() -> dict[str, float]:
    """Processor time of certificates, in that of the gradient's, on Adult's 28 features."""
    data = load("adult")
    x, groups = data.test.x[:200], data.groups
    torch.manual_seed(0)
    model = MLP(len(data.names), (32,), activation="softplus").eval().requires_grad_(False)
    asked = {
        "gradient": Gradient(),
        "gradient by column": Gradient(groups=groups),
        "contributions": GradientTimesInput(baseline=0.5),
        "contributions by column": GradientTimesInput(baseline=0.5, groups=groups),
        "integrated gradients, 32 points": IntegratedGradients(points=32),
        "integrated gradients by column": IntegratedGradients(points=32, groups=groups),
    }
    IntervalCertifier()(model, Gradient(), x[:2], k=K)  # the first of a process is slow
    seconds = {}
    for name, explainer in asked.items():
        start = time.process_time()
        IntervalCertifier()(model, explainer, x, k=K)
        seconds[name] = time.process_time() - start
    return {name: round(spent / seconds["gradient"], 2) for name, spent in seconds.items()}


def main() -> None:
    """Measure on one thread and write the record."""
    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(TABLES)
    there = (RECORDS / "reasons.json").exists()
    known = load_record("reasons")["entries"] if there else []
    for name in chosen:
        known = [entry for entry in known if entry["table"] != name] + measure(name)
        save("reasons", {"k": K, "entries": known, "cost": cost()})


if __name__ == "__main__":
    main()
