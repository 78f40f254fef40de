"""Whether a budget of accuracy holds on rows that the search for a weight never saw.

`python perf/auc_budget.py FOLDER NAME ...` writes perf/records/auc_budget.json, case by case, and
goes on where an earlier call stopped. FOLDER is that of perf/tables.py. A case, of a table, recipe
and seed, is one fit(None, data, recipe, max_auc_drop=0.005); then every weight of its search is
measured on test rows: how far its AUC is below that of weight 0, with a 95 % interval on the same
rows, and the share of rows whose top k is proved.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from r2et.certify import IntervalCertifier
from r2et.data import Data
from r2et.explain import Gradient
from r2et.metrics import split_auc
from r2et.models import load_model
from r2et.models.output import batched_logits
from r2et.rank import distinct_top_k
from r2et.train import fit
from r2et.train.trial_measures import auc_drop
from recording import RECORDS, load_record, save
from tables import loaded

ALLOWED, RADIUS, PROVED, EPOCHS = 0.005, 0.1, 100, 30
RECIPES, SEEDS = ("certified", "r2et-ball", "r2et"), (0, 1)


def case(data: Data, recipe: str, seed: int) -> dict[str, Any]:
    """One search, and each of its weights on test rows."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as out, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = fit(
            None,
            data,
            recipe,
            radius=RADIUS,
            seed=seed,
            epochs=EPOCHS,
            out=out,
            max_auc_drop=ALLOWED,
            baselines=False,
            progress=False,
        )
        assert done.search is not None
        models = {
            trial.weight: load_model(Path(out) / "search" / f"{trial.weight:.6g}")
            for trial in done.search.trials
            if trial.seconds > 0
        }
    plain = batched_logits(models[0.0], data.test.x)
    certifier = IntervalCertifier(limit=RADIUS * 1.01, splits=0)
    weights = []
    for weight, model in models.items():
        drop, half_width = auc_drop(plain, batched_logits(model, data.test.x), data.test.y.cpu())
        radius = certifier(model, Gradient(), data.test.x[:PROVED], k=data.k).radius
        weights.append(
            {
                "weight": weight,
                "auc": split_auc(model, data.test),
                "drop": drop,
                "half_width": half_width,
                "proved": float((radius >= RADIUS).double().mean()),
                "sets": distinct_top_k(Gradient()(model, data.test.x), data.k),
            }
        )
    return {
        "recipe": recipe,
        "seed": seed,
        "chosen": done.search.chosen,
        "met": done.search.met,
        "plain_trainings": done.search.plain_trainings,
        "warnings": [str(w.message) for w in caught if str(w.message).startswith("fit:")],
        "validation": done.search.to_json()["trials"],
        "test": weights,
        "seconds": round(time.process_time() - start, 1),
    }


def main() -> None:
    """Measure on one thread what the record lacks, of the tables named."""
    torch.set_num_threads(1)
    folder, named = Path(sys.argv[1]), sys.argv[2:]
    tables = json.loads((folder / "tables.json").read_text())
    known = load_record("auc_budget")["cases"] if (RECORDS / "auc_budget.json").is_file() else []
    for seed in SEEDS:
        for recipe in RECIPES:
            for name in named:
                key = (name, recipe, seed)
                if any((c["table"], c["recipe"], c["seed"]) == key for c in known):
                    continue
                chosen_by = bool(tables[name]["chosen_by"])
                data = loaded(folder, name, tables[name])
                known.append({"table": name, "chosen_by": chosen_by, **case(data, recipe, seed)})
                print(json.dumps(known[-1]["test"]), known[-1]["seconds"], flush=True)
                settings = {"max_auc_drop": ALLOWED, "radius": RADIUS, "proved_rows": PROVED}
                save("auc_budget", {**settings, "epochs": EPOCHS, "cases": known})


if __name__ == "__main__":
    main()
