"""What a training step of each recipe costs, in plain steps: writes perf/records/steps.json."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from r2et.data import Data, Origin, Split
from r2et.models import MLP, SiameseCNN
from r2et.train import recipe
from r2et.train.distributed import SingleProcess
from r2et.train.loop import Loop, TrainingSettings
from r2et.train.recipe import Recipe
from recording import save

RECIPES = {
    "vanilla": recipe("vanilla"),
    "r2et, every batch": recipe("r2et", every=1),
    "r2et, every batch, exact product": recipe("r2et", every=1, by="product"),
    "r2et, every other batch": recipe("r2et", every=2),
    "r2et": recipe("r2et"),
    "r2et-nh": recipe("r2et-nh"),
    "r2et-ball": recipe("r2et-ball"),
    "est-h": recipe("est-h"),
    "at": recipe("at"),
    "certified, every batch": recipe("certified", every=1),
    "certified": recipe("certified"),
    "certified-individual": recipe("certified-individual"),
    "ssr": recipe("ssr"),
    "exact-h": recipe("exact-h"),
}
TABLES_ONLY = ("certified", "certified, every batch", "certified-individual", "ssr", "exact-h")
BLOCK = 10
DEAR = ("ssr", "exact-h")  # with many features


def loop(model: nn.Module, x: Tensor, y: Tensor, chosen: Recipe, k: int) -> Loop:
    """A training of one batch over and over."""
    part = Split(x, y)
    data = Data("batch", part, part, part, (), (), k, Origin("random numbers"))
    settings = TrainingSettings(
        k=k,
        radius=1.0,
        epochs=1,
        seed=0,
        keep="last",
        threshold=None,
        retrain=False,
        agree=0.9,
        save_every=float("inf"),
        progress=False,
    )
    return Loop(model, data, chosen.prepared(k, 1.0), settings, SingleProcess(x.device), None)


def ratios(make: Callable[[], nn.Module], x: Tensor, k: int, rounds: int) -> dict[str, float]:
    """Processor time of a step over that of a plain one, medians of blocks of steps.

    All recipes take turns. Asking for the time can take as long as a plain step of a small network.
    """
    y, rows = torch.randint(0, 2, (len(x),)), torch.arange(len(x))
    table = x.ndim == 2
    loops = {
        title: loop(make(), x, y, chosen, k)
        for title, chosen in RECIPES.items()
        if table or title not in TABLES_ONLY
        if x.shape[1] < 100 or title not in DEAR
    }
    times: dict[str, list[float]] = {title: [] for title in loops}
    for _ in range(1 + rounds):
        for title, one in loops.items():
            start = time.process_time()
            for _ in range(BLOCK):
                one.state.step = 0  # a batch with the penalty
                one._step(rows, 10**6)
            times[title].append((time.process_time() - start) / BLOCK)
    times = {title: some[1:] for title, some in times.items()}  # the first ones warm up
    plain = statistics.median(times["vanilla"])
    found = {}
    for title, some in times.items():
        every = loops[title].recipe.every
        found[title] = (statistics.median(some) / plain + every - 1) / every
    return found


def main() -> None:
    """Measure, print, record."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    measured = {
        "28-32-2, 256 rows": ratios(lambda: MLP(28), torch.rand(256, 28), 8, 20),
        "107-32-2, 256 rows": ratios(lambda: MLP(107), torch.rand(256, 107), 8, 10),
        "SiameseCNN, 64 pairs": ratios(SiameseCNN, torch.rand(64, 2, 28, 28), 50, 5),
    }
    for title, some in measured.items():
        print(title)
        for name, ratio in some.items():
            print(f"  {ratio:8.2f}  {name}")
    save("steps", {"plain steps": measured})


if __name__ == "__main__":
    main()
