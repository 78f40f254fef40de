"""fit: data, model, recipe -> a trained model, its history and its record."""

from __future__ import annotations

import copy
import os
import platform
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Literal

import torch
from torch import Tensor, nn

from r2et.data import Data
from r2et.defaults import RADIUS, REASONS, RECIPE
from r2et.errors import require
from r2et.explain import Explainer
from r2et.lock import reserved
from r2et.models import TableMLP, save_model, smooth
from r2et.models.folder import folder_path, make_folder
from r2et.models.storage import NETWORKS
from r2et.models.weights import tensors_digest
from r2et.region import Region
from r2et.train.baselines import fit_baselines
from r2et.train.checkpoint import folder, identity
from r2et.train.defaults import (
    column_groups,
    default_keep,
    reasons_explainer,
    reasons_region,
    scheduled,
    silence,
    table_network,
    usual_epochs,
)
from r2et.train.distributed import distributed_by
from r2et.train.fit_arguments import (
    check_arguments,
    check_data,
    check_model,
    check_retraining,
    whole,
)
from r2et.train.linear_floor import keep_above, linear_weights
from r2et.train.loop import SMALLEST, Keep, Loop, TrainingSettings
from r2et.train.recipe import Recipe
from r2et.train.recipe import recipe as find_recipe
from r2et.train.row_weights import row_weights
from r2et.train.runtime import threads_for
from r2et.train.seen_rows import SeenRows
from r2et.train.teacher import teacher_shares
from r2et.train.trained import Trained, described
from r2et.train.weight_search import WeightSearch, check_budget, fit_within
from r2et.version import __version__

RETRAINING_EPOCHS = 10


@dataclass(frozen=True)
class Fit:
    """A trained model (eval mode, on the CPU or the model's device), and how it came about.

    history: one entry per epoch (loss, penalty, validation AUC, thickness).
    record: settings, versions, durations and outcome, as JSON can hold them.
    trained: the model with what its folder would say of it, for `audit`.
    search: how its weight was found, where fit was given max_auc_drop; print it for the front.
    """

    model: nn.Module
    history: list[dict[str, Any]]
    record: dict[str, Any]
    trained: Trained | None = None
    search: WeightSearch | None = None


def fit(
    model: nn.Module | None,
    data: Data,
    recipe: str | Recipe = RECIPE,
    *,
    k: int | None = None,
    radius: float = RADIUS,
    epochs: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    fabric: Any = None,
    explainer: Explainer | None = None,
    region: Region | None = None,
    retrain: bool = False,
    agree: float = 0.9,
    check_every: int | None = None,
    keep: Keep | None = None,
    threshold: float | None = None,
    save_every: float = 30.0,
    progress: bool = True,
    baselines: bool | None = None,
    class_weight: Literal["balanced"] | Mapping[str | int, float] | None = None,
    sample_weight: Any = None,
    max_auc_drop: float | None = None,
    heavier: bool = True,
) -> Fit:
    """Train a copy of the model on data.train by a recipe; the model given is left as it is.

    model: its weights are where training starts; None makes the network for tables from the seed
    (r2et.train.defaults.table_network), which learns from boosting, too, where that knows more
    (r2et.train.teacher). k: by default the data's. radius: the ball in which
    explanations are to hold still, for recipes that have one. explainer: the explanation, by
    default the recipe's. region: the changes for which reasons are to stay, for recipes of
    reasons; by default what a table's rows are usually off by (Schema.usual_moves).

    retrain: preserve the rankings of the model as given, for at most 10 epochs; stop when P@k with
    them falls below `agree`, or the validation AUC by 0.01, checked after every epoch or, finer,
    after every `check_every` batches; what is kept is the last that passed. keep: which epoch's
    weights to return: the last, the best by validation AUC, or the last whose AUC is not below
    `threshold` ("above"; where none is, the best, with a warning). By default, of a table whose
    validation rows have two classes the best, of other data and of a retraining the last. No epoch
    is the best before the penalty has its full strength; of those after, the last within 0.002 of
    the highest AUC. A network made here, penalised and clearly below a logistic regression of the
    same rows is not returned: that is, with a warning (r2et.train.linear_floor).

    out: a folder for checkpoints (every `save_every` seconds, and at Ctrl-C), the record, and the
    trained model (of networks that are not ours, the weights). A later call with the same settings
    goes on where the last one stopped, to the same weights bit by bit; resume=False starts anew.
    fabric: a lightning_fabric.Fabric to train with; under torchrun one is made.
    baselines: of a table, fit logistic regression and boosting on the same rows too, and keep what
    they reach with the model; by default boosting only where there is a folder to keep it in.
    sample_weight: (rows,) what each training row counts for in the loss, by default data.weights or
    all alike. class_weight: the same for each class, by its name or number, or "balanced": as if
    every class had as many rows. Penalties look at all rows alike.
    max_auc_drop: find the weight instead of taking the recipe's: of several trainings the stablest
    whose validation AUC is at most this far below that at weight 0 (see WeightSearch); where none
    is, the most accurate, with a warning. heavier: look for it beyond the recipe's own weight, too;
    otherwise that is taken unless its drop is larger by more than a standard error.
    """
    chosen = find_recipe(recipe)
    if max_auc_drop is not None:
        asked = {"keep": keep, "threshold": threshold, "retrain": retrain, "fabric": fabric}
        check_budget(max_auc_drop, chosen, data, **asked)
        found: Fit = fit_within(
            fit,
            model,
            data,
            chosen,
            max_auc_drop,
            heavier=heavier,
            out=out,
            resume=resume,
            baselines=baselines,
            k=k,
            radius=radius,
            epochs=epochs,
            seed=seed,
            explainer=explainer,
            region=region,
            save_every=save_every,
            progress=progress,
            class_weight=class_weight,
            sample_weight=sample_weight,
        )
        return found
    check_data(data, labelled=keep in ("best", "above"))
    keep = default_keep(data, retrain=bool(retrain)) if keep is None else keep
    check_arguments(radius, keep, threshold, explainer, agree, save_every)
    check_retraining(retrain, check_every)
    of_reasons = chosen.penalty is not None and chosen.penalty.of_reasons
    require(region is None or of_reasons, "fit", "region", "left out for this recipe", region)
    if of_reasons:
        assert chosen.penalty is not None
        explainer = explainer or reasons_explainer(data, chosen.penalty.explainer)
        region = reasons_region(data, region, chosen.penalty)
    usual_k = min(REASONS, len(column_groups(data)) - 1) if of_reasons else data.k
    k = whole("k", usual_k if k is None else k)
    chosen = chosen.prepared(k, float(radius), explainer, region)
    seed = whole("seed", seed)
    require(0 <= seed < 2**32, "fit", "seed", "in 0..2^32 - 1", seed)
    weights = row_weights(data, class_weight, sample_weight)
    start = _network(model, data, chosen, seed, weights)
    chosen = scheduled(chosen, start)
    usual = usual_epochs(start, len(data.train.y), chosen.batch, plain=chosen.penalty is None)
    floored = model is None and chosen.active and keep == "best"
    linear = linear_weights(start, data, weights) if floored else None
    settings = TrainingSettings(
        k=k,
        radius=float(radius),
        epochs=_epochs(epochs, chosen, retrain, usual),
        seed=seed,
        keep=keep,
        threshold=threshold,
        retrain=bool(retrain),
        agree=agree,
        check_every=check_every,
        save_every=save_every,
        progress=progress,
    )
    config: dict[str, Any] = {
        # The network itself says how wide it is, whoever chose that.
        "recipe": replace(chosen, hidden=None).config(),
        "settings": settings.config(),
        "explainer": (explainer or chosen.explainer).config(),
    }
    if weights is not None:
        config["weights"] = tensors_digest({"weights": weights})
    device = next((p.device for p in start.parameters()), torch.device("cpu"))
    distributed = distributed_by(fabric, device)
    most = min(chosen.batch, SMALLEST, len(data.train.y))
    expected = (
        f"of at most {most} processes for {len(data.train.y)} rows in batches of {chosen.batch}"
    )
    require(distributed.size <= most, "fit", "fabric", expected, distributed.size)
    shares = None
    if model is None and chosen.penalty is None and isinstance(start, TableMLP):
        show = progress and distributed.rank == 0
        shares = teacher_shares(start, data, seed, weights, progress=show)
    if shares is not None:
        config["teacher"] = tensors_digest({"shares": shares})
    with threads_for(start), _reserved(out, distributed.rank) as free:
        require(free, "fit", "out", "a folder that no other training is writing to", out)
        check_model(start, data, k, explainer or chosen.explainer)
        place = folder(out, identity(start, data, config))
        if place is not None and distributed.rank == 0:
            place.sweep()
            if not resume:
                place.clear()
        distributed.wait()
        saved = None if place is None else place.load()
        loop = Loop(start, data, chosen, settings, distributed, place, explainer, weights, shares)
        if saved is not None:
            loop.restore(saved)
        loop.run()
        if linear is not None:
            keep_above(loop, linear)
        start.load_state_dict(loop.kept)
        start.eval()
        record = _record(loop, data, config)
        is_table = data.train.x.ndim == 2
        extra = _extra(record, data)
        seen = SeenRows.of(data) if is_table or place is not None else None
        if baselines is not False and is_table and distributed.rank == 0:
            boosting = bool(baselines) or place is not None
            extra["baselines"] = fit_baselines(
                data, seed=seed, boosting=boosting, weights=weights
            ).to_json()
        if place is not None and distributed.rank == 0:
            place.record(record)
            if NETWORKS.get(type(start).__name__) is type(start):
                assert seen is not None
                extra["rows"] = seen.save(place.path)
                save_model(start, place.path, extra=extra)
                place.forget_rows(but=extra["rows"])
            else:
                place.weights(start)
        distributed.wait()
    if keep == "above" and not loop.state.met:
        warnings.warn(
            f"fit: no epoch reached the validation AUC {threshold}; the weights are those of the "
            f"best, epoch {record['epoch_kept']} with {record['auc']}.",
            stacklevel=2,
        )
    return Fit(start, loop.state.history, record, described(start, extra, seen))


@contextmanager
def _reserved(out: str | os.PathLike[str] | None, rank: int) -> Iterator[bool]:
    """Whether the folder is this training's alone, for as long as it runs."""
    if out is None or rank:
        yield True
        return
    path = folder_path("fit", out)
    # Path("") is the folder one is in: nothing is to be written there by mistake.
    require(os.fspath(out) != "", "fit", "out", "a folder's name", "an empty text")
    make_folder("fit", path)
    with reserved(path / ".training") as free:
        yield free


def _network(
    model: nn.Module | None, data: Data, recipe: Recipe, seed: int, weights: Tensor | None
) -> nn.Module:
    """A network to train: a copy of the model, the usual one for tables, or a linear one."""
    shape = tuple(data.train.x.shape[1:])
    if model is None or recipe.linear:
        table = len(shape) == 1
        name = "model" if model is None else "recipe"
        require(table, "fit", name, f"given for inputs of shape {shape}", "linear or no model")
        network = table_network(data, recipe, seed=seed, weights=weights)
        silence(network, (data.train.x == 0).all(0))
    else:
        is_valid = isinstance(model, nn.Module)
        require(is_valid, "fit", "model", "None or a torch.nn.Module", type(model).__name__)
        network = copy.deepcopy(model)
    return network if recipe.rho is None or recipe.linear else smooth(network, recipe.rho)


def _epochs(epochs: int | None, recipe: Recipe, retrain: bool, usual: int) -> int:
    epochs = None if epochs is None else whole("epochs", epochs)
    is_valid = epochs is None or epochs > 0
    require(is_valid, "fit", "epochs", "None or a positive whole number", epochs)
    if retrain:
        return min(epochs or RETRAINING_EPOCHS, RETRAINING_EPOCHS)
    return epochs or recipe.epochs or usual


def _record(loop: Loop, data: Data, config: dict[str, Any]) -> dict[str, Any]:
    state = loop.state
    last = [entry for entry in state.history if entry["epoch"] == state.kept_epoch]
    return {
        "data": data.name,
        "recipe": repr(loop.recipe),  # for people to read; the config for programs
        **{n: v for n, v in vars(loop.settings).items() if n in config["settings"]},
        "name": loop.recipe.name,
        "config": config,
        "processes": loop.distributed.size,
        "rows": len(data.train.y),
        "epochs_done": state.epoch,
        "epoch_kept": state.kept_epoch,
        "stopped": state.stopped or None,
        "threshold_met": state.met if loop.settings.keep == "above" else None,
        "auc": _kept_auc(loop, last),
        "seconds": round(state.seconds, 3),
        "history": state.history,
        "r2et": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def _kept_auc(loop: Loop, last: list[dict[str, Any]]) -> float | None:
    """Validation AUC of the kept weights: of an epoch, of the middle of one, or of the start."""
    if loop.state.kept_auc is not None:
        return loop.state.kept_auc
    if last:
        auc: float | None = last[0]["auc"]
        return auc
    return None if loop.reference is None else loop.reference.auc


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
        "mean": data.train.x.double().mean(0).tolist() if data.train.x.ndim == 2 else None,
    }
