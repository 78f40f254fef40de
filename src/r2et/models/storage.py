"""Networks on disk: a folder with a JSON description and safetensors weights, nothing that runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_weights
from safetensors.torch import save as format_weights
from torch import Tensor, nn

from r2et.errors import InputError, describe, first_line, require
from r2et.files import write
from r2et.lock import locked
from r2et.models.folder import LOCK, contents, folder_path, make_folder
from r2et.models.gcn import SiameseGCN
from r2et.models.hinge import HingeMLP
from r2et.models.mlp import MLP
from r2et.models.network import Network
from r2et.models.piecewise_linear import rho_of
from r2et.models.resnet import ResNet18
from r2et.models.siamese import SiameseCNN, SiameseMLP
from r2et.models.smooth import smooth
from r2et.models.table import TableMLP
from r2et.version import __version__

FORMAT = 1
DESCRIPTION = "model.json"
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NETWORKS: dict[str, type[Network]] = {
    kind.__name__: kind
    for kind in (HingeMLP, MLP, ResNet18, SiameseCNN, SiameseGCN, SiameseMLP, TableMLP)
}


def save_model(
    model: nn.Module, folder: str | os.PathLike[str], *, extra: Mapping[str, Any] | None = None
) -> None:
    """Store one of our networks, or a smooth copy of one, and anything else that JSON can hold.

    folder: made if missing; a model already in it is replaced. The weights are written first,
    under a name made from their SHA-256, the description that names them last, each by renaming
    a finished file: whenever the writing stops, the folder holds the old model or the new one. Of
    several processes one writes at a time; the file .lock, by which they wait, stays.
    """
    where = "save_model"
    path = folder_path(where, folder)
    is_valid = extra is None or isinstance(extra, Mapping)
    require(is_valid, where, "extra", "a dictionary of what JSON can hold", extra)
    names = ", ".join(NETWORKS)
    kind = type(model).__name__
    known = NETWORKS.get(kind) is type(model)
    require(known, where, "model", f"one of {names} (store others with torch.save)", kind)
    assert isinstance(model, Network)
    description: dict[str, Any] = {
        "format": FORMAT,
        "r2et": __version__,
        "class": kind,
        "settings": model.settings,
        "rho": rho_of(model),
    }
    again = _build(where, "model", description)
    changed = "layers that were changed after it was built"
    require(repr(again) == repr(model), where, "model", "what its settings describe", changed)
    weights = {k: v.detach().cpu().clone().contiguous() for k, v in model.state_dict().items()}
    _check_weights(where, "model", again, weights)
    blob = format_weights(weights)
    description["weights"] = hashlib.sha256(blob).hexdigest()
    description["extra"] = dict(extra or {})
    try:
        text = json.dumps(description, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        reason = describe(first_line(error))
        raise InputError(f"{where}: extra must be what JSON can hold, got {reason}.") from error
    make_folder(where, path)
    with locked(path / LOCK):
        old = _old_weights(path)
        new = _weights_name(description["weights"])
        write(path / new, blob)
        write(path / DESCRIPTION, text.encode())
        if old not in (None, new):
            (path / str(old)).unlink(missing_ok=True)


def load_model(folder: str | os.PathLike[str]) -> nn.Module:
    """The network that save_model stored, on the CPU and in eval mode; smooth if it was.

    Reads the description and the weights and nothing else, and runs nothing that they contain.
    """
    where = "load_model"
    path = folder_path(where, folder)
    try:
        return _load(where, path)
    except InputError:
        if not os.path.isfile(path / LOCK):
            raise
    # Somebody may be replacing the model: between two files that belong together, or not at all.
    with locked(path / LOCK):
        return _load(where, path)


def _load(where: str, folder: Path) -> nn.Module:
    description = _read_description(where, folder)
    model = _build(where, str(folder / DESCRIPTION), description)
    path = folder / _weights_name(description["weights"])
    require(os.path.isfile(path), where, "folder", f"one with {path.name}", f"none in {folder}")
    blob = contents(where, path)
    whole = hashlib.sha256(blob).hexdigest() == description["weights"]
    expected = f"the file that {DESCRIPTION} was written for (by SHA-256)"
    require(whole, where, str(path), expected, f"{len(blob)} bytes that differ from it")
    try:
        weights = parse_weights(blob)
    except (SafetensorError, ValueError, KeyError) as error:
        reason = describe(first_line(error))
        raise InputError(f"{where}: {path} must be safetensors, got {reason}.") from error
    _check_weights(where, str(path), model, weights)
    model.load_state_dict(weights, assign=True)
    return model.eval()


def load_extra(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What was given to save_model as extra, as JSON keeps it (lists for tuples, text for keys)."""
    where = "load_extra"
    extra: dict[str, Any] = _read_description(where, folder_path(where, folder))["extra"]
    return extra


def _build(where: str, source: str, description: Mapping[str, Any]) -> nn.Module:
    """The described network without storage: no memory, no random numbers drawn."""
    kind = NETWORKS[description["class"]]
    try:
        with torch.device("meta"):
            model: nn.Module = kind(**description["settings"])
        rho = description["rho"]
        return model if rho is None else smooth(model, rho)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        expected = f"a description that {kind.__name__} can be built from"
        reason = describe(first_line(error))
        raise InputError(
            f"{where}: {source} must be {expected}, got the error: {reason}."
        ) from error


def _check_weights(where: str, source: str, model: nn.Module, weights: dict[str, Tensor]) -> None:
    """The weights are exactly the model's: names, shapes, kinds of numbers, all finite."""
    own = model.state_dict()
    missing = ", ".join(k for k in own if k not in weights)
    require(not missing, where, source, "complete", f"no weights for {missing}")
    surplus = ", ".join(k for k in weights if k not in own)
    require(not surplus, where, source, "without weights of other networks", surplus)
    for name, weight in weights.items():
        shape = tuple(own[name].shape)
        require(weight.shape == shape, where, f"{source}: {name}", f"of shape {shape}", weight)
        floating = own[name].is_floating_point()
        same = weight.is_floating_point() if floating else weight.dtype == own[name].dtype
        expected = "floating-point" if floating else str(own[name].dtype)
        require(same, where, f"{source}: {name}", expected, weight)
        known = not floating or weight.dtype in FLOATS
        require(known, where, f"{source}: {name}", "of 16 bits or more", weight)
        finite = bool(torch.isfinite(weight).all())
        require(finite, where, f"{source}: {name}", "finite", "NaN or infinity")
    kinds = sorted({str(w.dtype) for w in weights.values() if w.is_floating_point()})
    require(len(kinds) <= 1, where, source, "of one kind of floats", " and ".join(kinds))


def _weights_name(digest: str) -> str:
    return f"weights-{digest[:16]}.safetensors"


def _read_description(where: str, folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    require(os.path.isfile(path), where, "folder", f"one with {DESCRIPTION}", f"none in {folder}")
    try:
        description: dict[str, Any] = json.loads(contents(where, path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        reason = describe(first_line(error))
        raise InputError(f"{where}: {path} must be JSON, got the error: {reason}.") from error
    require(
        isinstance(description, dict), where, str(path), "a JSON object", type(description).__name__
    )
    version: Any = description.get("format")
    require(type(version) is int and version > 0, where, f"{path}: format", "a number", version)
    require(version <= FORMAT, where, f"{path}: format", f"{FORMAT} (update r2et)", version)
    known = isinstance(description.get("class"), str) and description["class"] in NETWORKS
    require(
        known, where, f"{path}: class", f"one of {', '.join(NETWORKS)}", description.get("class")
    )
    for name in ("settings", "extra"):
        is_valid = isinstance(description.get(name), dict)
        require(is_valid, where, f"{path}: {name}", "an object", description.get(name))
    require("rho" in description, where, f"{path}: rho", "a number or null", "nothing")
    digest = description.get("weights")
    is_valid = isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None
    require(is_valid, where, f"{path}: weights", "a SHA-256 in hexadecimal", digest)
    return description


def _old_weights(folder: Path) -> str | None:
    """The name of the weights that the folder's description speaks of, if it has a readable one."""
    try:
        return _weights_name(_read_description("save_model", folder)["weights"])
    except InputError:
        return None
