"""Training against the proof: writes perf/records/certified.json.

`python perf/certified.py MODELS [PART ...]` with the parts `individual` (radius 0.1: how many
different explanations proved networks keep, and how many they could), `results` (`certified` beside
`vanilla` and `linear`, one to three hidden layers) and `interactions` (tables that a linear model
does not fit: AUC against the share of rows proved). An hour or two on one core. MODELS keeps the
networks and what was measured of them: a second run goes on where the first was stopped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_digits
from torch import Tensor, nn

from r2et.certify import IntervalCertifier
from r2et.data import Data, Origin, Split, load
from r2et.explain import Gradient
from r2et.metrics import split_auc
from r2et.models import load_model
from r2et.rank import distinct_top_k, effective_top_k, largest_top_k_share
from r2et.train import fit, recipe
from r2et.train.defaults import default_network
from recording import RECORDS, load_record, save

K, ROWS, VALIDATION_ROWS = 8, 2000, 2000
TABLES = ("adult", "bank", "compas")
SLACK, WANTED = 0.01, 0.95
# (hidden layers, radius): what is trained for and certified at.
CASES = [
    ((32,), 0.1),
    ((32, 32), 0.1),
    ((32, 32, 32), 0.1),
    ((32,), 1.0),
    ((32, 32), 1.0),
    ((32, 32, 32), 1.0),
]
# A larger ball has worse bounds, and needs a lighter hand; so have more layers. Validation chooses.
WEIGHTS = {1.0: (0.1, 0.3), 0.1: (1.0, 2.0, 3.0)}
SMALL, WIDE = (32,), (256,)
# (way, hidden layers, where it starts, recipe, changes): ways to prove rows and tell them apart.
WAYS: list[tuple[str, tuple[int, ...], str, str, dict[str, float]]] = [
    ("hinge", SMALL, "", "certified", {"weight": 3.0}),
    ("hinge, margin 0", SMALL, "", "certified", {"weight": 3.0, "margin": 0.0}),
    ("hinge, from Vanilla", SMALL, "vanilla", "certified", {"weight": 3.0}),
    ("hinge, from Vanilla", SMALL, "vanilla", "certified", {"weight": 1.0}),
    ("hinge, Vanilla's ranking", SMALL, "retrain", "certified", {"weight": 1.0, "batch": 64}),
    *[
        ("individuality", widths, "", "certified-individual", {"weight": w, "individuality": f})
        for widths, w, f in (
            (SMALL, 3.0, 0.03),
            (WIDE, 1.0, 0.015),
            (WIDE, 1.5, 0.015),
            (WIDE, 1.5, 0.02),
            (WIDE, 1.0, 0.03),
            (WIDE, 1.5, 0.03),
            (WIDE, 1.75, 0.03),
            (WIDE, 2.0, 0.03),
            (WIDE, 3.0, 0.03),
            (WIDE, 3.0, 0.06),
        )
    ],
]
INTERACTION_WEIGHTS, INTERACTION_RADII = (0.3, 1.0, 3.0), (0.1, 0.3, 1.0)


def share(model: nn.Module, x: Tensor, radius: float) -> Tensor:
    """(B,) which rows' whole top k is proved at the radius."""
    found: Tensor = IntervalCertifier(limit=2 * radius)(model, Gradient(), x, k=K).radius >= radius
    return found


def individuality(scores: Tensor) -> dict[str, float]:
    """How different the rows' top k are."""
    return {
        "distinct_top_k": distinct_top_k(scores, K),
        "effective_top_k": effective_top_k(scores, K),
        "largest_top_k_share": largest_top_k_share(scores, K),
    }


def measured(part: Split, model: nn.Module, radius: float, rows: int) -> dict[str, Any]:
    """AUC, certified share and individuality on a part of the data."""
    scores, proved = Gradient()(model, part.x), share(model, part.x[:rows], radius)
    some = scores[:rows][proved]
    return {
        "auc": split_auc(model, part),
        "certified_share": float(proved.double().mean()),
        **individuality(scores),
        "distinct_top_k_proved": distinct_top_k(some, K) if len(some) else 0,
    }


def remembered(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was measured before, or now."""
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    path.parent.mkdir(parents=True, exist_ok=True)
    made = make()
    path.write_text(json.dumps(made))
    return made


def trained(
    data: Data,
    name: str,
    widths: tuple[int, ...],
    radius: float,
    models: Path,
    start: str = "",
    **changes: Any,
) -> dict[str, Any]:
    """A network's settings, and what it does on validation and test rows."""
    told = "-".join(f"{key}={value}" for key, value in changes.items())
    depth = "x".join(map(str, widths))
    out = models / data.name / "_".join(filter(None, (name, depth, f"r{radius}", start, told)))

    # Without a penalty the radius is only that of the measurement.
    fitted = out / "fit"
    if recipe(name).penalty is None:
        fitted, told_radius = models / data.name / f"{name}_{depth}_fit", 1.0
    else:
        told_radius = radius

    def make() -> dict[str, Any]:
        network, chosen = default_network(data, widths), recipe(name, **changes)
        if start:
            network = load_model(models / data.name / f"vanilla_{depth}_fit")
        again = {"retrain": True, "agree": 0.0} if start == "retrain" else {}
        done = fit(
            network,
            data,
            chosen,
            k=K,
            radius=told_radius,
            out=fitted,
            keep="last",
            progress=False,
            **again,
        )
        found = {
            "recipe": done.record["recipe"],
            "epochs": len(done.history),
            "validation": measured(data.val, done.model, radius, VALIDATION_ROWS),
            "test": measured(data.test, done.model, radius, ROWS),
        }
        print(out.relative_to(models), found["test"], flush=True)
        return found

    return remembered(out / "measured.json", make)


def components(x: np.ndarray, radius: float) -> np.ndarray:
    """(B,) which rows are joined by chains of balls of the radius that meet.

    Rows whose categories differ are at least 1 apart: below that each combination is looked at
    alone.
    """
    binary = np.isin(x, (0.0, 1.0)).all(0) & (2 * radius < 1)
    points, where = np.unique(x, axis=0, return_inverse=True)
    kinds = np.unique(points[:, binary], axis=0, return_inverse=True)[1].reshape(-1)
    label, count = np.empty(len(points), dtype=int), 0
    order = np.argsort(kinds, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1):
        some = torch.from_numpy(points[group])
        joined = torch.cdist(some, some, compute_mode="donot_use_mm_for_euclid_dist") <= 2 * radius
        found, own = connected_components(coo_matrix(joined.numpy()), directed=False)
        label[group] = count + own
        count += found
    return label[where.reshape(-1)]


def ceiling(data: Data, radius: float) -> dict[str, Any]:
    """How many sets proved rows can have: those whose balls meet have one.

    test: if the test rows are proved. all: if all rows of the data are, which join more of them.
    """
    test = data.test.x.double().numpy()
    found: dict[str, Any] = {"radius": radius}
    everything = np.concatenate([part.x.double().numpy() for part in data.parts])
    for title, x in (("test", test), ("all", everything)):
        if 2 * radius >= 1 and title == "all":
            continue  # the test rows alone are one chain already
        label = components(x, radius)[-len(test) :]
        counts = np.unique(label, return_counts=True)[1] / len(test)
        found[title] = {
            "sets": len(counts),
            "effective": float(np.exp(-(counts * np.log(counts)).sum())),
            "largest": float(counts.max()),
        }
    return found


def individual(models: Path) -> list[dict[str, Any]]:
    """Proved at 0.1, and different: several ways, what each gave, and what could be had."""
    found: list[dict[str, Any]] = []
    for name in reversed(TABLES):
        data, radius = load(name), 0.1
        ways = [("vanilla", SMALL, "", "vanilla", {}), ("vanilla", WIDE, "", "vanilla", {}), *WAYS]
        entries: list[dict[str, Any]] = []
        ceilings = remembered(
            models / name / "ceiling.json",
            lambda d=data: {"radii": [ceiling(d, r) for r in (0.1, 1.0)]},
        )["radii"]
        found.append({"data": name, "ceilings": ceilings, "ways": entries})
        for title, widths, start, called, changes in ways:
            entry = trained(data, called, widths, radius, models, start, **changes)
            entries.append({"way": title, "hidden": list(widths), "settings": changes, **entry})
            rows = min(VALIDATION_ROWS, len(data.val.y))
            found[-1]["chosen"] = chosen_way(entries, surely_above(rows))
            found[-1]["chosen_by_share"] = chosen_way(entries, WANTED)
            record("individual", found)
    return found


def surely_above(rows: int) -> float:
    """The smallest share of so many rows with a one-sided 95 % interval above WANTED."""
    shares = np.arange(rows + 1) / rows
    low = shares - 1.645 * np.sqrt(shares * (1 - shares) / rows)
    return float(shares[low >= WANTED].min())


def chosen_way(entries: list[dict[str, Any]], least_share: float) -> int:
    """On validation rows: of what keeps the AUC and proves enough, the most individual."""
    least = entries[0]["validation"]["auc"] - SLACK
    able = [
        i
        for i, e in enumerate(entries)
        if e["validation"]["auc"] >= least and e["validation"]["certified_share"] >= least_share
    ]
    return max(able, key=lambda i: entries[i]["validation"]["distinct_top_k"], default=0)


def most_accurate(found: list[dict[str, Any]], least_share: float) -> int:
    """Of what proves enough the highest AUC; if nothing does, the most that is proved."""
    able = [i for i, e in enumerate(found) if e["certified_share"] >= least_share]
    if not able:
        return max(range(len(found)), key=lambda i: found[i]["certified_share"])
    return max(able, key=lambda i: found[i]["auc"])


def results(models: Path) -> list[dict[str, Any]]:
    """The recipe `certified`, at the weight that validation rows chose."""
    found: list[dict[str, Any]] = []
    for widths, radius in CASES:
        for name in TABLES:
            data = load(name)
            vanilla = trained(data, "vanilla", widths, radius, models)
            linear = trained(data, "linear", (), radius, models)
            tried = [
                trained(data, "certified", widths, radius, models, weight=w)
                for w in WEIGHTS[radius]
            ]
            rows = min(VALIDATION_ROWS, len(data.val.y))
            best = most_accurate([one["validation"] for one in tried], surely_above(rows))
            proved, weight = tried[best], WEIGHTS[radius][best]
            found.append(
                {
                    "data": name,
                    "hidden": list(widths),
                    "radius": radius,
                    "weight": weight,
                    "rows": min(ROWS, len(data.test.y)),
                    "recipe": proved["recipe"],
                    "certified": proved["test"],
                    "vanilla": vanilla["test"],
                    "linear_auc": linear["test"]["auc"],
                }
            )
            record("results", found)
    return found


def products() -> Data:
    """Adult's rows with a label made of products: sex with marriage, age and sex with hours."""
    data = load("adult")
    x = torch.cat([part.x for part in data.parts])

    def signed(name: str) -> Tensor:
        column = x[:, data.names.index(name)]
        return (column - column.mean()) / column.std()

    age, hours = signed("age"), signed("hours per week")
    male, married = signed("sex: male"), signed("marital status: married")
    value = male * married + age * hours + male * hours
    labels = (value > value.median()).long().split([len(part.y) for part in data.parts])
    parts = [Split(part.x, y) for part, y in zip(data.parts, labels, strict=True)]
    train, val, test = parts
    return replace(data, name="adult, products", train=train, val=val, test=test)


def digits() -> Data:
    """scikit-learn's 8 by 8 digits: 5 and above, or below."""
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    points, labels = torch.tensor(x / 16).float()[order], torch.tensor(y >= 5).long()[order]
    cuts = [int(0.7 * len(y)), int(0.15 * len(y))]
    cuts.append(len(y) - sum(cuts))
    pairs = zip(points.split(cuts), labels.split(cuts), strict=True)
    train, val, test = (Split(a, b) for a, b in pairs)
    source = Origin("scikit-learn", "Alpaydin and Kaynak, UCI", "CC BY 4.0")
    return Data("digits, 5 and above", train, val, test, (), (), K, source)


def interactions(models: Path) -> list[dict[str, Any]]:
    """Where a linear model is clearly worse: AUC against the share of rows proved."""
    found: list[dict[str, Any]] = []
    for make, epochs in ((products, 10), (digits, 100)):
        data = make()
        vanilla = trained(data, "vanilla", SMALL, INTERACTION_RADII[0], models)
        linear = trained(data, "linear", (), INTERACTION_RADII[0], models)
        entries: list[dict[str, Any]] = []
        found.append(
            {
                "data": data.name,
                "rows": min(ROWS, len(data.test.y)),
                "features": data.train.x.shape[1],
                "vanilla": vanilla,
                "linear": linear,
                "curve": entries,
            }
        )
        for radius in INTERACTION_RADII:
            for weight in INTERACTION_WEIGHTS:
                told = {"weight": weight, "epochs": epochs}
                one = trained(data, "certified", SMALL, radius, models, **told)
                entries.append({"radius": radius, "weight": weight, **one})
                record("interactions", found)
    return found


def record(part: str, found: list[dict[str, Any]]) -> None:
    """Replace one part of the record."""
    known = load_record("certified") if (RECORDS / "certified.json").exists() else {}
    kept = {name: known[name] for name in PARTS if name in known}
    save("certified", {"k": K, "validation_rows": VALIDATION_ROWS, **kept, part: found})


PARTS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "individual": individual,
    "results": results,
    "interactions": interactions,
}


def main() -> None:
    """Train, certify, print, record."""
    torch.set_num_threads(1)
    for part in sys.argv[2:] or PARTS:
        PARTS[part](Path(sys.argv[1]))


if __name__ == "__main__":
    main()
