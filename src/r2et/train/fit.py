"""fit: data, model, recipe -> a trained model, its history and its record."""

from __future__ import annotations

import copy
import math
import os
import platform
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import torch
from torch import nn

from r2et.checks import check_k
from r2et.data import Data
from r2et.errors import require
from r2et.explain import Explainer
from r2et.models import MLP, save_model, smooth
from r2et.models.storage import NETWORKS
from r2et.train.checkpoint import folder, identity
from r2et.train.loop import Keep, Loop, Settings
from r2et.train.processes import processes
from r2et.train.recipe import Recipe
from r2et.train.recipe import recipe as find_recipe
from r2et.train.threads import threads_for
from r2et.version import __version__

USUAL_STEPS = 3000
RETRAINING_EPOCHS = 10


@dataclass(frozen=True)
class Fit:
    """A trained model (eval mode, on the CPU or the model's device), and how it came about.

    history: one entry per epoch (loss, penalty, validation AUC, thickness). record: settings,
    versions, durations and outcome, as JSON can hold them.
    """

    model: nn.Module
    history: list[dict[str, Any]]
    record: dict[str, Any]


def fit(
    model: nn.Module | None,
    data: Data,
    recipe: str | Recipe = "certified",
    *,
    k: int | None = None,
    radius: float = 0.3,
    epochs: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    fabric: Any = None,
    explainer: Explainer | None = None,
    retrain: bool = False,
    agree: float = 0.9,
    keep: Keep = "last",
    threshold: float | None = None,
    save_every: float = 30.0,
    progress: bool = True,
) -> Fit:
    """Train a copy of the model on data.train by a recipe; the model given is left as it is.

    model: its weights are where training starts; None makes the papers' network for tables from
    the seed. k: by default the data's. radius: the ball in which explanations are to hold still,
    for recipes that have one. explainer: the explanation, by default the recipe's.

    retrain: preserve the rankings of the model as given, for at most 10 epochs; stop when P@k with
    them falls below `agree`, or the validation AUC by 0.01. keep: which epoch's weights to return:
    the last, the best by validation AUC, or the last whose AUC is not below `threshold` ("above").

    out: a folder for checkpoints (every `save_every` seconds, and at Ctrl-C), the record, and the
    trained model. A later call with the same settings goes on where the last one stopped, to the
    same weights bit by bit; resume=False starts anew. fabric: a lightning_fabric.Fabric to train
    with; under torchrun one is made.
    """
    chosen = find_recipe(recipe)
    n = _check_data(data)
    k = data.k if k is None else k
    check_k("fit", k, n) if explainer is None else None
    good = isinstance(radius, int | float) and 0 < radius < math.inf
    require(good, "fit", "radius", "positive and finite", radius)
    require(type(seed) is int and 0 <= seed < 2**32, "fit", "seed", "in 0..2^32 - 1", seed)
    require(keep in ("last", "best", "above"), "fit", "keep", "last, best or above", keep)
    good = (threshold is not None) == (keep == "above")
    require(good, "fit", "threshold", "given with keep='above', and only then", threshold)
    good = explainer is None or isinstance(explainer, Explainer)
    require(good, "fit", "explainer", "None or an Explainer", explainer)
    chosen = chosen.prepared(k, radius, explainer)
    start = _network(model, data, chosen, seed)
    settings = Settings(
        k=k,
        radius=float(radius),
        epochs=_epochs(epochs, chosen, len(data.train.y), retrain),
        seed=seed,
        keep=keep,
        threshold=threshold,
        retrain=bool(retrain),
        agree=agree,
        save_every=save_every,
        progress=progress,
    )
    told = {"recipe": repr(chosen), **_told(settings)}
    device = next((p.device for p in start.parameters()), torch.device("cpu"))
    together = processes(fabric, device)
    place = folder(out, identity(start, data, told)) if together.rank == 0 or out else None
    with threads_for(start):
        loop = Loop(start, data, chosen, settings, together, place)
        saved = None if place is None else place.load(resume)
        if saved is not None:
            loop.restore(saved)
        loop.run()
    start.load_state_dict(loop.kept)
    start.eval()
    record = _record(loop, data, told)
    if place is not None and together.rank == 0:
        place.record(record)
        if NETWORKS.get(type(start).__name__) is type(start):
            save_model(start, place.path, extra=_extra(record, data))
    together.wait()
    return Fit(start, loop.state.history, record)


def _check_data(data: Data) -> int:
    """Training and validation rows of two classes or more; returns the number of features."""
    require(isinstance(data, Data), "fit", "data", "a Data (see load, load_table)", data)
    for part in ("train", "val"):
        require(len(getattr(data, part).y) > 0, "fit", f"data.{part}", "of one row or more", "none")
    labels = torch.unique(data.train.y)
    what = "of two classes or more"
    require(len(labels) > 1, "fit", "data.train.y", what, f"only class {labels.tolist()}")
    return data.train.x[0].numel()


def _network(model: nn.Module | None, data: Data, recipe: Recipe, seed: int) -> nn.Module:
    """A network to train: a copy of the model, the papers' one for tables, or a linear one."""
    shape = tuple(data.train.x.shape[1:])
    if model is None or recipe.linear:
        table = len(shape) == 1
        name = "model" if model is None else "recipe"
        require(table, "fit", name, f"given for inputs of shape {shape}", "linear or no model")
        count = max(len(data.classes), int(data.train.y.max()) + 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            found: nn.Module = MLP(shape[0], () if recipe.linear else (32,), classes=count)
    else:
        good = isinstance(model, nn.Module)
        require(good, "fit", "model", "None or a torch.nn.Module", type(model).__name__)
        found = copy.deepcopy(model)
    return found if recipe.rho is None or recipe.linear else smooth(found, recipe.rho)


def _epochs(epochs: int | None, recipe: Recipe, rows: int, retrain: bool) -> int:
    good = epochs is None or (type(epochs) is int and epochs > 0)
    require(good, "fit", "epochs", "None or a positive whole number", epochs)
    if retrain:
        return min(epochs or RETRAINING_EPOCHS, RETRAINING_EPOCHS)
    usual = math.ceil(USUAL_STEPS / math.ceil(rows / recipe.batch))
    return epochs or recipe.epochs or min(max(usual, 10), 200)


def _told(settings: Settings) -> dict[str, Any]:
    """The settings that decide about the weights."""
    return {n: v for n, v in vars(settings).items() if n not in ("save_every", "progress")}


def _record(loop: Loop, data: Data, told: dict[str, Any]) -> dict[str, Any]:
    state = loop.state
    last = [entry for entry in state.history if entry["epoch"] == state.kept_epoch]
    return {
        "data": data.name,
        **told,
        "name": loop.recipe.name,
        "processes": loop.together.size,
        "rows": len(data.train.y),
        "epochs_done": state.epoch,
        "epoch_kept": state.kept_epoch,
        "stopped": state.stopped or None,
        "auc": last[0]["auc"] if last else loop.start and loop.start.auc,
        "seconds": round(state.seconds, 3),
        "history": state.history,
        "r2et": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def _extra(record: dict[str, Any], data: Data) -> dict[str, Any]:
    """What a stored model needs to explain later rows: see r2et.data.apply_schema."""
    return {
        "k": record["k"],
        "radius": record["radius"],
        "recipe": record["name"],
        "data": data.name,
        "names": list(data.names),
        "groups": [list(group) for group in data.groups],
        "classes": list(data.classes),
        "schema": None if data.schema is None else data.schema.to_json(),
        "auc": record["auc"],
    }
