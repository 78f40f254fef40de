"""The pack of an audit that a command line asked for, or that was made in Python."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save as format_weights
from torch import Tensor, nn

from r2et.audit.inputs import TEST_PART, folder_names
from r2et.audit.loading import modules_here, open_model
from r2et.audit.model_audit import Audit
from r2et.audit.pack import write_pack
from r2et.audit.pack_claims import (
    FACTORY,
    FILE,
    FOLDER,
    MEMORY,
    MODULE,
    NAMED,
    TEST,
    TEXT,
    WEIGHTS,
    module_text,
)
from r2et.audit.request import Request
from r2et.audit.subject import Subject
from r2et.errors import require
from r2et.files import check_new, check_writable, scratch
from r2et.models.weights import weights_digest
from r2et.results import Inputs
from r2et.results.archive import NAME, digest

WHERE = "audit"
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
    kind, files = _model_files(request, audit.result["inputs"])
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
        files = {WEIGHTS: _weights(network), TEXT: f"{network}\n".encode()}
    repeat = {"model": {"kind": MODULE}, "data": {"kind": MEMORY}, "request": None, "run": None}
    return write_pack(where, path, audit, model=files, repeat=repeat)


def folder_files(folder: Path, recorded: Mapping[str, str]) -> dict[str, bytes]:
    """What `load_trained` reads of a folder, whose files are those that were audited."""
    try:
        files = {name: (folder / name).read_bytes() for name in folder_names(folder)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        files = {}
    same = {name: digest(content) for name, content in files.items()} == recorded
    got = f"{folder}, which was changed since"
    require(same, WHERE, "MODEL", "as it was audited for --pack", got)
    return files


def _model_files(request: Request, known: Inputs) -> tuple[str, dict[str, bytes]]:
    """The kind of the model and its files, which are the very weights that were audited."""
    folder = Path(request.model)
    if folder.is_dir():
        files = folder_files(folder, known.get("files") or {})
        with scratch(WHERE, "r2et-pack-", files) as place:
            kind, model = FOLDER, open_model(str(place)).model
    else:
        with modules_here():
            kind, model = FACTORY, open_model(request.model, request.weights).model
            files = {WEIGHTS: _weights(model), **module_source(request.model)}
    expected = SAME if kind == FACTORY and request.weights is None else "as it was audited"
    recorded = known["weights"].get("tensors") or known["weights"]["sha256"]
    same = weights_digest(model) == recorded
    require(same, WHERE, "MODEL", expected, f"other weights of {request.model}")
    return kind, files


def _weights(model: nn.Module) -> bytes:
    state = {n: v for n, v in model.state_dict().items() if isinstance(v, Tensor)}
    return format_weights({n: v.detach().cpu().clone().contiguous() for n, v in state.items()})


def module_source(spec: str) -> dict[str, bytes]:
    """The text of a factory's module, to be read by people; it is never imported from a pack."""
    module = spec.partition(":")[0]
    try:
        source = inspect.getsourcefile(__import__(module, fromlist=["_"]))
        content = Path(source or "").read_bytes()
    except (ImportError, OSError, TypeError):
        return {}
    name = module_text(spec)
    fits = len(content) <= MOST_SOURCE and NAME.fullmatch(name) is not None
    return {name: content} if fits else {}
