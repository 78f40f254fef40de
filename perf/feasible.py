"""How far feasible changes move Adult's reasons: writes perf/records/feasible.json."""

from __future__ import annotations

import time
from typing import Any

import torch

from r2et.attack import FeasibleSearch
from r2et.data import load
from r2et.demo import train
from r2et.explain import Gradient
from r2et.region import Feasible
from recording import save

MOVES = {"age": 2, "hours per week": 2}
BORN = ("race", "sex", "native country")
CASES: tuple[tuple[int, tuple[str, ...]], ...] = ((0, ()), (1, ()), (1, BORN), (2, ()))
SEARCHED = 500  # rows for which the search is compared with the truth


def measure() -> list[dict[str, Any]]:
    """All test rows, every point tried; then some rows by search, as if there were too many."""
    data = load("adult")
    model, x = train(data, seed=0), data.test.x
    records = []
    for switches, frozen in CASES:
        region = Feasible(data.schema, moves=MOVES, switches=switches, frozen=frozen)
        attack = FeasibleSearch(region)
        start = time.perf_counter()
        worst = attack(model, Gradient(), x, k=data.k).precision
        middle = time.perf_counter()
        part = FeasibleSearch(region, limit=0)(model, Gradient(), x[:SEARCHED], k=data.k).precision
        records.append(
            {
                "switches": switches,
                "frozen": frozen,
                "points": region.most,
                "exact": attack.exact(x).double().mean().item(),
                "changed": (worst < 1).double().mean().item(),
                "precision": worst.double().mean().item(),
                "lowest": worst.min().item(),
                "seconds": middle - start,
                "search_finds": (part <= worst[:SEARCHED]).double().mean().item(),
                "search_seconds": time.perf_counter() - middle,
            }
        )
        print(records[-1], flush=True)
    return records


def main() -> None:
    """Measure on one thread and write the record."""
    torch.set_num_threads(1)
    save(
        "feasible",
        {
            "what": "FeasibleSearch, Adult's test rows, Gradient, k = 8, r2et.demo.train(data, 0)",
            "moves": MOVES,
            "rows": len(load("adult").test.y),
            "searched": SEARCHED,
            "cases": measure(),
        },
    )


if __name__ == "__main__":
    main()
