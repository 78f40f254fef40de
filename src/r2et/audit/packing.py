"""The pack of an audit that a command line asked for, or that was made in Python."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save as format_weights
from torch import Tensor, nn

from r2et.audit.inputs import TEST_PART
from r2et.audit.loading import modules_here, open_model
from r2et.audit.model_audit import Audit
from r2et.audit.pack import write_pack
from r2et.audit.request import Request
from r2et.audit.subject import Subject
from r2et.errors import InputError, require
from r2et.files import check_new, check_writable, scratch
from r2et.models.weights import weights_digest
from r2et.results.archive import NAME

WHERE = "audit"
FOLDER, FACTORY, MODULE = "folder", "factory", "module"  # kinds of models
TEST, NAMED, FILE, MEMORY = "test part", "data set", "file", "memory"  # kinds of data
WEIGHTS, DESCRIPTION = "weights.safetensors", "model.json"
SAME = "one whose weights are the same each time (or given by --weights) for --pack"
MOST_SOURCE = 2**20  # bytes of a factory's module that are kept to read


def check_pack(path: str, request: Request) -> None:
    """Before work is done for it: it could be written where there is none, and be repeated."""
    check_new(WHERE, "--pack", path)
    check_writable(WHERE, "--pack", path)
    if not Path(request.model).is_dir() and request.weights is None and path != "-":
        first, second = (weights_digest(open_model(request.model).model) for _ in range(2))
        require(first == second, WHERE, "MODEL", SAME, f"other weights of {request.model}")


def pack_request(path: str, audit: Audit, request: Request, run: Mapping[str, Any]) -> str | None:
    """Write the pack of what a command line asked for; gives why it has no PDF, if so.

    run: rows, budget and seed, as they were given.
    """
    known = audit.result["inputs"]["weights"]
    kind, files = _model_files(request, known.get("tensors") or known["sha256"])
    data: dict[str, Any] = {"kind": TEST, "name": TEST_PART}
    if request.data is not None:
        is_file = Path(request.data).is_file()
        data = {"kind": FILE if is_file else NAMED, "name": request.data}
        if is_file:
            data["path"] = os.path.abspath(request.data)
    asked = {
        item.name: getattr(request, item.name)
        for item in dataclasses.fields(request)
        if item.name not in ("model", "data", "weights", "command")
    }
    asked["gates"] = [f"{gate.name}{gate.sign}{gate.bound!r}" for gate in request.gates]
    repeat = {
        "model": {"kind": kind, "name": request.model},
        "data": data,
        "request": {**asked, "by": list(request.by)},
        "run": dict(run),
    }
    return write_pack(WHERE, path, audit, model=files, repeat=repeat)


def pack_audit(path: str | os.PathLike[str], audit: Audit, model: Any = None) -> str | None:
    """Write the pack of an audit made in Python, with the weights of its model where given."""
    where = "to_pack"
    check_new(where, "path", path)
    check_writable(where, "path", path)
    files: dict[str, bytes] = {}
    if model is not None:
        network = Subject.of(model).model
        known: Mapping[str, Any] = (audit.to_dict().get("inputs") or {}).get("weights") or {}
        own, recorded = weights_digest(network), known.get("tensors") or known.get("sha256")
        got = f"one whose weights are {own[:16]}..."
        expected = f"the one that was audited (weights {str(recorded)[:16]}...)"
        require(own == recorded, where, "model", expected, got)
        files = {WEIGHTS: _weights(network), "model.txt": f"{network}\n".encode()}
    repeat = {"model": {"kind": MODULE}, "data": {"kind": MEMORY}, "request": None, "run": None}
    return write_pack(where, path, audit, model=files, repeat=repeat)


def folder_files(folder: Path) -> dict[str, bytes]:
    """What `load_trained` reads of a folder."""
    try:
        description = (folder / DESCRIPTION).read_bytes()
        value = json.loads(description)
        names = [f"weights-{value['weights'][:16]}.safetensors", value["extra"].get("rows")]
        files = {DESCRIPTION: description}
        for name in names:
            if name is not None and (folder / str(name)).is_file():
                files[str(name)] = (folder / str(name)).read_bytes()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        got = f"{folder}, which was changed since"
        sentence = f"{WHERE}: MODEL must be as it was audited for --pack, got {got}."
        raise InputError(sentence) from error
    return files


def _model_files(request: Request, digest: str | None) -> tuple[str, dict[str, bytes]]:
    """The kind of the model and its files, which are the very weights that were audited."""
    folder = Path(request.model)
    if folder.is_dir():
        files = folder_files(folder)
        with scratch(WHERE, "r2et-pack-", files) as place:
            kind, model = FOLDER, open_model(str(place)).model
    else:
        with modules_here():
            kind, model = FACTORY, open_model(request.model, request.weights).model
            files = {WEIGHTS: _weights(model), **_source(request.model)}
    expected = SAME if kind == FACTORY and request.weights is None else "as it was audited"
    same = weights_digest(model) == digest
    require(same, WHERE, "MODEL", expected, f"other weights of {request.model}")
    return kind, files


def _weights(model: nn.Module) -> bytes:
    state = {n: v for n, v in model.state_dict().items() if isinstance(v, Tensor)}
    return format_weights({n: v.detach().cpu().clone().contiguous() for n, v in state.items()})


def _source(spec: str) -> dict[str, bytes]:
    """The text of a factory's module, to be read by people; it is never imported from a pack."""
    module = spec.partition(":")[0]
    try:
        source = inspect.getsourcefile(__import__(module, fromlist=["_"]))
        content = Path(source or "").read_bytes()
    except (ImportError, OSError, TypeError):
        return {}
    name = f"{module.rpartition('.')[2]}.py.txt"
    fits = len(content) <= MOST_SOURCE and NAME.fullmatch(name) is not None
    return {name: content} if fits else {}
