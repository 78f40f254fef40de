"""What an audit was of: files and data sets with their digests, so that others can check."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from r2et.models.weights import tensors_digest, weights_digest
from r2et.results import Inputs, Source

TEST_PART = "test part of the model's training"  # what is audited where no data are named
DESCRIPTION = "model.json"
PIECE = 2**20  # bytes read at a time


def inputs_of_tensors(model: nn.Module, x: Tensor | None, y: Tensor | None) -> Inputs:
    """Of a model and rows in memory; of a stream nothing but the weights."""
    given: dict[str, Any] = {} if x is None else {"x": x, **({} if y is None else {"y": y})}
    return {
        "data": {"name": None, "sha256": tensors_digest(given) if given else None, "of": "tensors"},
        "weights": {"name": None, "sha256": weights_digest(model), "of": "tensors"},
        "rows": None if x is None else len(x),
        "command": None,
    }


def inputs_of_files(
    known: Inputs,
    model: str,
    weights: str | None,
    data: str | None,
    command: str | None,
    files: dict[str, str] | None = None,
) -> Inputs:
    """Of a command line: the digests of files where there are such, as any tool computes them.

    files: those of the model's folder, from when it was opened.
    """
    named: Source = {**known["data"], "name": TEST_PART if data is None else data}
    source = None if data is None else _file(Path(data), known["data"])
    inputs: Inputs = {
        "data": source or named,
        "weights": _weights(model, weights, known["weights"]) or known["weights"],
        "rows": known["rows"],
        "command": command,
    }
    if files is not None:
        inputs["files"] = files
    return inputs


def folder_digests(folder: Path) -> dict[str, str]:
    """By name, the SHA-256 of the files of a model's folder that are read: see `folder_names`."""
    digests = {name: file_digest(folder / name) for name in folder_names(folder)}
    return {name: own for name, own in digests.items() if own is not None}


def folder_names(folder: Path) -> list[str]:
    """Files that `load_trained` reads of a folder: the description first, and what it names."""
    value = json.loads((folder / DESCRIPTION).read_bytes())
    names = [f"weights-{value['weights'][:16]}.safetensors", value["extra"].get("rows")]
    there = (str(name) for name in names if name is not None and (folder / str(name)).is_file())
    return [DESCRIPTION, *there]


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file, as any tool computes it; None where there is none."""
    sha256 = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                sha256.update(piece)
    except OSError:
        return None
    return sha256.hexdigest()


def _weights(model: str, weights: str | None, known: Source) -> Source | None:
    if weights is not None:
        return _file(Path(weights), known)
    if not Path(model).is_dir():
        return None
    digest = str(json.loads((Path(model) / DESCRIPTION).read_text())["weights"])
    return _file(Path(model) / f"weights-{digest[:16]}.safetensors", known)


def _file(path: Path, known: Source) -> Source | None:
    """A file's name and SHA-256; None where it is no file, or is gone by now."""
    own = file_digest(path)
    if own is None:
        return None
    return {"name": path.name, "sha256": own, "of": "file", "tensors": known["sha256"]}
