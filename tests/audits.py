"""Audits in the form of the JSON files, small and made up, for whatever reads them."""

import copy
import math

import numpy as np

NAMES = [
    "age",
    "income",
    "debt ratio",
    "late payments",
    "open accounts",
    "years employed",
    "loan amount",
    "term",
    "purpose: car",
    "purpose: home",
    "housing: rent",
    "inquiries",
]
RADII = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
HOSTILE = "</script><img src=x onerror=alert(1)>"


def ranked(scores, k):
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]


def kept(before, after, k):
    return len(set(ranked(before, k)) & set(ranked(after, k))) / k


def shown_row(random, index, kind, size, scores, k, certified):
    """A row whose scores drift with the radius, and whose input moves by exactly the radius."""
    x = random.random(size)
    clean = random.random(scores) ** 2
    drift = random.normal(size=scores) * (1.2 if kind == "worst" else 0.15)
    steps, broken = [], None
    for radius in RADII:
        move = random.normal(size=size)
        move *= radius / np.linalg.norm(move)
        proof = radius <= certified
        after = clean if proof else np.abs(clean + radius * drift)
        precision = kept(clean, after, k)
        if precision < 1 and broken is None:
            broken = radius
        steps.append({
            "radius": radius, "x": (x + move).tolist(), "scores": after.tolist(),
            "precision": precision, "probability": 0.93 - 0.1 * radius,
            "proved_precision": 1.0 if proof else max(0.0, math.floor(k * (precision - 0.3)) / k),
        })  # fmt: skip
    return {
        "index": index, "kind": kind, "target": 1, "label": int(index % 2), "probability": 0.93,
        "x": x.tolist(), "scores": clean.tolist(), "radius_certified": certified,
        "radius_attacked": broken, "steps": steps,
    }  # fmt: skip


def subgroup(value, rows, auc):
    """A group of a column; without an AUC where its rows are of one class."""
    return {
        "value": value, "rows": rows, "auc": auc, "auc_low": auc and auc - 0.1,
        "auc_high": auc and auc + 0.1, "predicted": 0.3, "observed": 0.25, "observed_low": 0.1,
        "observed_high": 0.4, "precision": 0.9, "precision_low": 0.8, "precision_high": 0.95,
    }  # fmt: skip


def audit(name="certified", *, shape=(12,), scores_shape=(12,), k=4, rows=60, radius=0.1,
          worst=3, ordinary=2, seed=0, stable=1.0):  # fmt: skip
    """A whole audit: row i is proved up to certified[i] and broken from attacked[i] on."""
    random = np.random.default_rng(seed)
    certified = stable * np.exp(random.normal(-1.9, 0.6, rows))
    attacked = certified * np.exp(np.abs(random.normal(0, 0.5, rows)))
    found = [float(a) if a < 3 else None for a in attacked]
    strong = np.where(attacked <= radius, 1 - random.integers(1, k + 1, rows) / k, 1.0)
    thickness = random.gamma(3, 0.1, rows)
    flips = [int(f) if f < 400 else None for f in 40 + 900 * thickness * random.random(rows)]
    curve = []
    for r in np.geomspace(0.003, 3, 40):
        proved, broken = float((certified >= r).mean()), float((attacked <= r).mean())
        curve.append({"radius": float(r), "proved": proved, "unknown": 1 - proved - broken,
                      "broken": broken})  # fmt: skip
    n, size = math.prod(scores_shape), math.prod(shape)
    means = {
        "precision_noise": 0.97, "precision_er": 0.9, "precision_strong": float(strong.mean()),
        "changed_share": float((strong < 1).mean()),
        "certified_share": float((certified >= radius).mean()), "certified_precision": 0.81,
        "radius_certified_median": float(np.median(certified)),
        "radius_attacked_median": float(np.median(attacked)), "thickness": 0.30000000000000004,
        "thickness_probability": 0.97, "auc_clean": 0.874, "auc_attacked": 0.861,
        "sensitivity": 0.0, "dffot": 0.34, "comprehensiveness": 0.21, "sufficiency": -0.013,
        "largest_top_k_share": 0.057,
    }  # fmt: skip
    summary = {
        "rows": rows,
        "k": k,
        "radius": radius,
        "distinct_top_k": 7,
        "calibration_error": 0.03,
        "ties": 0,
    }
    summary |= {"auc_linear": 0.83, "auc_logistic": 0.861, "auc_boosting": 0.889}
    for key, value in means.items():
        summary |= {key: value, f"{key}_low": value - 0.01, f"{key}_high": value + 0.01}
    kinds = ["worst"] * worst + ["ordinary"] * ordinary
    return {
        "format": "r2et-audit/1", "name": name, "date": "2026-11-16", "seconds": 123.456,
        "versions": {"r2et": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        "settings": {"k": k, "radius": radius, "norm": "l2", "region": f"L2(radius={radius})",
                     "explainer": "Gradient()", "budget": "standard", "seed": 0, "minutes": None,
                     "chunk": 256, "level": 0.95, "rows_given": rows},
        "names": list(NAMES) if n == 12 else None, "shape": list(shape),
        "scores_shape": list(scores_shape), "groups": None, "classes": ["repaid", "default"],
        "summary": summary, "counts": dict.fromkeys(means, rows), "skipped": [],
        "rows": {
            "index": list(range(rows)), "target": [1] * rows, "label": [1] * rows,
            "probability": [0.9] * rows, "top": [list(range(k))] * rows,
            "precision_noise": [0.97] * rows, "precision_er": [0.9] * rows,
            "precision_strong": strong.tolist(), "distance_strong": [radius] * rows,
            "first_flip": flips, "radius_certified": certified.tolist(),
            "certified_precision": [float(c >= radius) for c in certified],
            "radius_attacked": found, "thickness": thickness.tolist(),
            "thickness_probability": [0.97] * rows,
            "hessian_norm": random.gamma(2, 1, rows).tolist(), "sensitivity": [0.0] * rows,
            "dffot": [0.34] * rows, "comprehensiveness": [0.21] * rows,
            "sufficiency": [-0.013] * rows,
        },
        "inputs": {
            "data": {"name": "held_out.csv", "sha256": "ab" * 32, "of": "file"},
            "weights": {"name": None, "sha256": "cd" * 32, "of": "tensors"},
            "rows": rows, "command": "r2et audit model held_out.csv --by housing",
        },
        "calibration": [
            {"low": i / 10, "high": i / 10 + 0.1, "rows": 20, "predicted": i / 10 + 0.05,
             "observed": i / 10 + 0.02, "observed_low": max(0, i / 10 - 0.1),
             "observed_high": min(1, i / 10 + 0.2)}
            for i in (1, 4, 8)
        ],
        "grouped_by": [{"column": "housing", "groups": [
            subgroup("own", rows - 9, 0.88), subgroup("rent", 9, None),
        ]}],
        "curve": curve,
        "shown": [
            shown_row(random, 17 + i, kind, size, n, k, 0.01 if kind == "worst" else 0.2)
            for i, kind in enumerate(kinds)
        ],
    }  # fmt: skip


def tabular(**changes):
    return audit(**changes)


def image(**changes):
    return audit("digits", shape=(1, 8, 8), scores_shape=(8, 8), k=10, worst=2, **changes)


def colour(**changes):
    return audit("scans", shape=(3, 8, 8), scores_shape=(8, 8), k=10, worst=2, **changes)


def skipped():
    """Nothing could be measured."""
    whole = audit("nothing")
    for name in whole["summary"]:
        if name not in ("rows", "k", "radius"):
            whole["summary"][name] = None
    for name in whole["rows"]:
        if name not in ("index", "target", "probability", "top"):
            whole["rows"][name] = None
    whole |= {
        "calibration": None,
        "grouped_by": [],
        "inputs": {},
        "curve": [],
        "shown": [],
        "counts": {},
        "names": None,
        "classes": None,
    }
    whole["skipped"] = [
        {"what": "certified", "why": "IntervalCertifier: model must be feed-forward, got LSTM."},
        {"what": "attacked", "why": "no time was left"},
    ]
    return whole


def hostile():
    """Every text is an attempt to get out of its place."""
    whole = audit(HOSTILE)
    whole["names"] = [f"{HOSTILE} {i}" for i in range(12)]
    whole["names"][0] += "\u2028"
    whole["classes"] = [f"<b>{HOSTILE}", f'" onload="alert(2)" {HOSTILE}']
    whole["skipped"] = [{"what": HOSTILE, "why": f"'{HOSTILE}' {{{{ 7 * 7 }}}}"}]
    whole["settings"]["region"] = HOSTILE
    whole["versions"][HOSTILE] = HOSTILE
    whole["date"] = HOSTILE
    whole["figures"] = [{"name": "own", "label": HOSTILE, "meaning": "{k.real}", "group": HOSTILE}]
    whole["summary"]["own"] = 0.5
    whole["rows"]["id"] = [HOSTILE] * len(whole["rows"]["index"])
    whole["inputs"] |= {"command": HOSTILE, "data": {"name": HOSTILE, "sha256": "", "of": HOSTILE}}
    whole["grouped_by"][0] |= {"column": HOSTILE, "groups": [subgroup(HOSTILE, 3, 0.5)]}
    return whole


def several():
    """Four models, of which the last is beaten and one lacks a proof."""
    found = []
    for number, (name, auc, stable) in enumerate(
        (
            ("vanilla", 0.881, 0.2),
            ("r2et", 0.879, 0.6),
            ("certified", 0.876, 3),
            ("weak", 0.86, 0.15),
        )
    ):
        one = audit(name, seed=number, stable=stable)
        one["summary"] |= {"auc_clean": auc, "auc_clean_low": auc - 0.004}
        one["summary"]["auc_clean_high"] = auc + 0.004
        found.append(one)
    found[-1]["summary"]["certified_share"] = None
    return found


def without(whole, *path):
    """A copy that lacks one entry."""
    found = copy.deepcopy(whole)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return found
