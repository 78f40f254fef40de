"""A training in one process or several: python parallel_training.py FILE RECIPE [FABRIC]"""

import dataclasses
import sys

import torch

from r2et.data import Data, Split
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.train import fit, recipe
from r2et.train.recipe import Recipe
from training_data import small


def chosen(name: str) -> Recipe:
    """Sizes that do not divide: 301 rows in batches of 64, the last one of 45."""
    changes = {} if name == "vanilla" else {"weight": 0.3, "every": 1}
    if name == "adaptive":
        return recipe("r2et", batch=64, adaptive=True, **changes)
    return recipe(name, batch=64, **changes)


def data(dtype: torch.dtype) -> Data:
    """In float64 what two processes add up in another order stays the same for many steps."""
    parts = {p: getattr(small(rows=301), p) for p in ("train", "val", "test")}
    exact = {name: Split(part.x.to(dtype), part.y) for name, part in parts.items()}
    return dataclasses.replace(small(), **exact)


def main(out: str, name: str, with_fabric: bool = False) -> None:
    dtype = torch.float32 if name == "r2et" else torch.float64
    torch.set_num_threads(1)
    torch.manual_seed(0)
    fabric = None
    if with_fabric:
        from lightning_fabric import Fabric

        fabric = Fabric(accelerator="cpu", devices=1)
    found = fit(
        MLP(8, (16,), activation="tanh").to(dtype),
        data(dtype),
        chosen(name),
        epochs=4,
        fabric=fabric,
        explainer=Gradient(of="probability") if name != "r2et-ball" else None,
        out=f"{out}.folder",
        progress=False,
    )
    if torch.distributed.is_initialized() and torch.distributed.get_rank():
        return
    torch.save({"weights": found.model.state_dict(), "processes": found.record["processes"]}, out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], len(sys.argv) > 3)
