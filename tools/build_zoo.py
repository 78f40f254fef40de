"""Train the networks of zoo/ and write their claims: `python tools/build_zoo.py [NAME ...]`.

Each is trained on the built-in Adult data from a seed, by one call of `fit`, and is stored without
the rows it was trained on. `--evaluate` measures what is there anew and trains nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import torch

from r2et.bench.evaluation import add, evaluate
from r2et.bench.networks import papers_network
from r2et.data import load
from r2et.models import load_extra, load_model, save_model
from r2et.train import fit, recipe

ZOO = Path(__file__).parents[1] / "zoo"
SEED, EPOCHS = 0, 8
# The recipe of each, and its settings where they are not the usual ones.
NETWORKS = {
    "adult-vanilla": ("vanilla", {}),
    "adult-linear": ("linear", {}),
    "adult-wd": ("wd", {"weight_decay": 1e-3}),
    "adult-r2et": ("r2et", {"weight": 0.1}),
    "adult-r2et-ball": ("r2et-ball", {"weight": 0.03}),
    "adult-certified": ("certified", {"weight": 0.1}),
}


def train(name: str) -> None:
    """One network into zoo/models."""
    kind, changes = NETWORKS[name]
    data, chosen = load("adult"), recipe(kind, **changes)
    start = None if kind == "linear" else papers_network(data, chosen.hidden, SEED)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"radius": 1.0, "epochs": EPOCHS, "seed": SEED, "out": folder}
        fit(start, data, chosen, **settings, baselines=False, progress=False)
        extra = load_extra(folder)
        extra.pop("rows", None)  # 800 kB that say which rows it was trained on: data.train
        shutil.rmtree(ZOO / "models" / name, ignore_errors=True)
        save_model(load_model(folder), ZOO / "models" / name, extra=extra)
    (ZOO / "models" / name / ".lock").unlink(missing_ok=True)


def main() -> None:
    """Train and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    parser.add_argument("--evaluate", action="store_true")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in NETWORKS]
    if unknown:
        sys.exit(f"zoo: NAME must be one of {', '.join(NETWORKS)}, got {', '.join(unknown)}.")
    torch.set_num_threads(1)
    for name in asked.names:
        if not asked.evaluate:
            train(name)
        model = load_model(ZOO / "models" / name)
        row = name.removeprefix("adult-")
        claim = evaluate(model, row, by="r2et", source=f"zoo/models/{name}")
        print(add(claim, ZOO / "claims", replace=True).relative_to(ZOO), flush=True)
        print({key: values.mean for key, values in claim.numbers.items()}, flush=True)
        (ZOO / "models" / name / ".lock").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
