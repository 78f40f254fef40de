"""Accuracy of the default networks on tables, beside linear models and boosting.

`python perf/tables.py FOLDER [NAME ...]` writes perf/records/tables.json, run by run: first seed 0
of every table, then the next; what the record holds already is not measured again, and a later call
goes on where the last one stopped. A seed is of the split and of all that is trained on it: of a
few hundred test rows one split says little. FOLDER holds tables as CSV files and tables.json,
{name: {"target": ..., "drop": [...], "chosen_by": true or false}}: nothing of it is in the project
or needed by it. chosen_by: whether the table had a say in how the network was made. Names restrict
what is measured.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.preprocessing import QuantileTransformer

from r2et.certify import IntervalCertifier
from r2et.data import Data, Split, load_table
from r2et.explain import Gradient
from r2et.metrics import split_auc
from r2et.rank import distinct_top_k
from r2et.train import fit
from r2et.train.baselines import fit_baselines
from recording import RECORDS, load_record, save

SEEDS = (0, 1, 2, 3, 4)
RADIUS, PROVED, SETS = 0.1, 100, 1000  # rows whose proof is looked for, and whose sets are counted
# A recipe, and whether its columns of numbers are ranks.
VARIANTS = (("certified", False), ("vanilla", False), ("certified", True))
ABOUT = "fit(None, data, recipe, radius=0.1) with all other settings at their defaults"


def ranked(data: Data) -> Data:
    """The same with the share of training rows below it in the place of every number.

    Ties are midway; between two values of the training rows it rises evenly.
    """
    x = data.train.x.double().numpy()
    several = [i for i in range(x.shape[1]) if len(np.unique(x[:, i])) > 2]
    scaler = QuantileTransformer(n_quantiles=min(1000, len(x)), subsample=None).fit(x[:, several])

    def of(part: Split) -> Split:
        own = part.x.clone()
        own[:, several] = torch.from_numpy(scaler.transform(part.x[:, several].numpy())).float()
        return part._replace(x=own)

    return replace(data, train=of(data.train), val=of(data.val), test=of(data.test))


def measured(data: Data, name: str, seed: int, *, ranks: bool) -> dict[str, Any]:
    """One training with nothing but its defaults, on test rows."""
    data = ranked(data) if ranks else data
    start = time.process_time()
    done = fit(None, data, name, radius=RADIUS, seed=seed, progress=False, baselines=False)
    seconds = time.process_time() - start
    x = data.test.x
    certifier = IntervalCertifier(limit=RADIUS * 1.01, splits=0)
    proved = certifier(done.model, Gradient(), x[:PROVED], k=data.k).radius >= RADIUS
    return {
        "recipe": name,
        "ranks": ranks,
        "seed": seed,
        "auc": split_auc(done.model, data.test),
        "validation": done.record["auc"],
        "epoch": done.record["epoch_kept"],
        "epochs": done.record["epochs_done"],
        "proved": float(proved.double().mean()),
        "sets": distinct_top_k(Gradient()(done.model, x[:SETS]), data.k),
        "seconds": round(seconds, 1),
    }


def loaded(folder: Path, name: str, about: dict[str, Any], seed: int) -> Data:
    """A table of the folder, split by the seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows without a target
        path, drop = folder / f"{name}.csv", about.get("drop", ())
        return load_table(path, about["target"], drop=drop, seed=seed)


def described(data: Data, about: dict[str, Any]) -> dict[str, Any]:
    """A table's size, before any run."""
    return {
        "rows": [len(part.y) for part in data.parts],
        "features": data.train.x.shape[1],
        "k": data.k,
        "chosen_by": bool(about["chosen_by"]),
        "baselines": [],
        "runs": [],
    }


def baselines(data: Data, seed: int) -> dict[str, Any]:
    """Test AUC of logistic regression and of boosting on the same split."""
    beside = fit_baselines(data, seed=seed)
    assert beside.boosting is not None
    return {
        "seed": seed,
        "logistic": beside.logistic.auc_test,
        "boosting": beside.boosting.auc_test,
    }


def main() -> None:
    """Measure on one thread what the record lacks."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    tables = json.loads((folder / "tables.json").read_text())
    named = sys.argv[2:] or list(tables)
    known = load_record("tables")["tables"] if (RECORDS / "tables.json").is_file() else {}
    for seed in SEEDS:
        for recipe, ranks in VARIANTS:
            for name in named:
                runs = known[name]["runs"] if name in known else []
                wanted = {"recipe": recipe, "ranks": ranks, "seed": seed}
                if any(wanted.items() <= run.items() for run in runs):
                    continue
                data = loaded(folder, name, tables[name], seed)
                entry = known.setdefault(name, described(data, tables[name]))
                if all(beside["seed"] != seed for beside in entry["baselines"]):
                    entry["baselines"].append(baselines(data, seed))
                entry["runs"].append(measured(data, recipe, seed, ranks=ranks))
                print(name, entry["runs"][-1], flush=True)
                record = {"about": ABOUT, "radius": RADIUS, "proved_rows": PROVED}
                save("tables", {**record, "sets_rows": SETS, "tables": known})


if __name__ == "__main__":
    main()
