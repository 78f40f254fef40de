"""The same training again and again: how far its models agree on people's reasons."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from r2et.data import Data
from r2et.errors import require
from r2et.files import write_result
from r2et.metrics import share_interval
from r2et.reason.difference import WHERE, difference
from r2et.reason.principal_reasons import reasons
from r2et.reason.training import class_index, most_reasons
from r2et.train import Recipe, load_trained
from r2et.train.run import TrainingRun, train

ROWS = 200  # test rows on which retrained models are compared
MOST = 100  # trainings at once
NAME = "agreement.json"


def agreement(models: Sequence[Any], rows: Any, **settings: Any) -> dict[str, Any]:
    """How far retrained models agree on the reasons of the same rows.

    Means over all pairs: `changed_share` of the people both decide alike get other reasons,
    `decision_changed_share` are decided otherwise, `shared` of the reasons are named by both.
    Over all models together: `all_alike` people are decided alike by every one, `same_share` of
    them get the same reasons from every one, with the ends of its exact 95 % interval.

    models: two or more, such as one recipe with several seeds. settings: those of `reasons`; of
    `only_decided` rows could not be compared.
    """
    is_list = isinstance(models, Sequence) and not isinstance(models, str)
    require(is_list, WHERE, "models", "a list of two or more", type(models).__name__)
    require(len(models) > 1, WHERE, "models", "two or more", len(models))
    every = not settings.get("only_decided", False)
    require(every, WHERE, "only_decided", "left out where several models decide", True)
    by_model = [reasons(model, rows, **settings) for model in models]
    pairs = [difference(a, b).summary() for a, b in combinations(by_model, 2)]
    means: dict[str, Any] = {"models": len(models), "pairs": len(pairs), "rows": pairs[0]["rows"]}
    for name in ("changed_share", "decision_changed_share", "shared"):
        values = [pair[name] for pair in pairs if pair[name] is not None]
        means[name] = sum(values) / len(values) if values else None
    people = list(zip(*by_model, strict=True))
    alike = [own for own in people if len({person.decision for person in own}) == 1]
    same = [own for own in alike if len({frozenset(person.columns) for person in own}) == 1]
    ends = share_interval(len(same), len(alike)) if alike else None
    means["all_alike"] = len(alike)
    means["same_share"] = len(same) / len(alike) if alike else None
    means["same_share_low"] = None if ends is None else ends.low
    means["same_share_high"] = None if ends is None else ends.high
    return means


@dataclass(frozen=True)
class Retraining:
    """Trainings that differ in nothing but their seed.

    folder: holds the model of each seed in a folder of its own, and agreement.json.
    seeds: of the trainings.
    runs: what each came to.
    k: reasons at most that were compared.
    toward: the class that they are of; None for the one each row is decided for.
    agreement: on test rows, see `agreement`.
    """

    folder: str
    seeds: tuple[int, ...]
    runs: tuple[TrainingRun, ...]
    k: int
    toward: str | None
    agreement: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain: dict[str, Any] = {**vars(self), "seeds": list(self.seeds)}
        return {**plain, "runs": [run.to_dict() for run in self.runs]}


def retrained(
    data: Data,
    chosen: Recipe,
    out: str | os.PathLike[str],
    seeds: int,
    *,
    seed: int = 0,
    k: int | None = None,
    toward: str | None = None,
    rows: int = ROWS,
    **settings: Any,
) -> Retraining:
    """Train once per seed, from `seed` on, and compare the reasons of the first test rows.

    settings: those of r2et.train.run.train. A run that was stopped goes on where it was.
    """
    is_valid = type(seeds) is int and 1 < seeds <= MOST
    require(is_valid, "train", "seeds", f"a whole number in 2..{MOST}", seeds)
    last = seed + seeds - 1
    require(last < 2**32, "train", "seed", f"at most {2**32 - seeds}", seed)
    table = data.train.x.ndim == 2
    require(table, "train", "seeds", "left out for data that are no table of columns", data.name)
    index = None if toward is None else class_index(data, toward)
    folder = Path(out)
    numbers = tuple(range(seed, seed + seeds))
    runs = tuple(
        train(data, chosen, folder / f"seed-{number}", seed=number, k=k, **settings)
        for number in numbers
    )
    most = most_reasons(data) if k is None else k
    models = [load_trained(run.folder) for run in runs]
    common = agreement(models, data.test.x[:rows], k=most, toward=index)
    done = Retraining(os.fspath(out), numbers, runs, most, toward, common)
    write_result("train", folder / NAME, json.dumps(done.to_dict(), allow_nan=False) + "\n")
    return done
