"""A training that can be killed: its whole state in one file, replaced whole or not at all."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from safetensors.torch import save as format_weights
from torch import Tensor, nn

from r2et.config import first_difference
from r2et.data import Data
from r2et.errors import InputError, require
from r2et.files import write
from r2et.models.folder import contents, folder_path, make_folder
from r2et.models.storage import DESCRIPTION
from r2et.models.weights import copied_weights, tensors_digest, weights_digest
from r2et.train.seen_rows import PATTERN

FORMAT = "r2et-checkpoint/2"
NAME = "checkpoint.pt"
RECORD = "fit.json"
WEIGHTS = "weights.safetensors"


class Folder:
    """Where a training keeps its checkpoint, its record and its network."""

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self.path = folder_path("fit", path)
        self.identity = identity
        make_folder("fit", self.path)

    @property
    def holds_checkpoint(self) -> bool:
        """Whether there is something to go on from."""
        return (self.path / NAME).is_file()

    def sweep(self) -> None:
        """Remove what a killed process was in the middle of writing."""
        for part in self.path.glob(".*.part"):
            part.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove what an earlier training left: its checkpoint, record and network."""
        try:
            for name in (NAME, RECORD, DESCRIPTION, WEIGHTS):
                (self.path / name).unlink(missing_ok=True)
            self.forget_rows()
        except OSError as error:
            place = f"{self.path} ({error.strerror or error})"
            raise InputError(f"fit: out must be a folder to write in, got {place}.") from error

    def forget_rows(self, but: str | None = None) -> None:
        """Remove files of rows that no model speaks of."""
        for file in self.path.glob(PATTERN):
            if file.name != but:
                file.unlink(missing_ok=True)

    def load(self) -> dict[str, Any] | None:
        """The state of an earlier run of the same training, if there is one."""
        path, fresh = self.path / NAME, self._fresh()
        if not path.exists():
            return None
        try:
            blob = io.BytesIO(contents("fit", path))
            state: dict[str, Any] = torch.load(blob, map_location="cpu", weights_only=True)
            identity: dict[str, Any] = json.loads(state["identity"])
            whole = {"model", "kept", "optimizer", "state"} <= state.keys()
            whole &= isinstance(identity, dict)
        except InputError:
            raise
        except Exception as error:  # a file may be broken in more ways than can be listed
            checkpoint = f"a file that cannot be read ({type(error).__name__})"
            raise InputError(f"fit: out must be {fresh}, got {checkpoint}.") from error
        require(whole, "fit", "out", fresh, "a checkpoint of another program")
        known = identity.get("format") == FORMAT
        require(known, "fit", "out", fresh, "a checkpoint of another version of r2et")
        difference = first_difference(identity, self.identity)
        checkpoint = f"the checkpoint of another training ({difference})"
        require(difference is None, "fit", "out", fresh, checkpoint)
        return state

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """What goes wrong with the parts of a checkpoint is one sentence."""
        try:
            yield
        except Exception as error:  # torch raises many kinds for a part that is another's
            checkpoint = f"a checkpoint that does not fit this training ({type(error).__name__})"
            raise InputError(f"fit: out must be {self._fresh()}, got {checkpoint}.") from error

    def _fresh(self) -> str:
        start = "start anew with resume=False (--no-resume), which replaces"
        return f"another folder, or {start} {self.path / NAME}"

    def save(self, state: dict[str, Any]) -> None:
        """Replace the checkpoint; one with NaN in it is not worth keeping."""
        if not all(_finite(value) for value in state["model"].values()):
            return
        blob = io.BytesIO()
        torch.save({**state, "identity": json.dumps(self.identity)}, blob)
        self._write(NAME, blob.getvalue())

    def record(self, record: dict[str, Any]) -> None:
        """Write what was done, as JSON."""
        self._write(RECORD, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())

    def weights(self, model: nn.Module) -> None:
        """Write a network that only its owner's code can build: its weights alone."""
        self._write(WEIGHTS, format_weights(copied_weights(model)))

    def _write(self, name: str, content: bytes) -> None:
        try:
            write(self.path / name, content)
        except OSError as error:
            place = f"{self.path} ({error.strerror or error}); what was there before is unchanged"
            raise InputError(f"fit: out must be writable, got {place}.") from error


def _finite(value: Tensor) -> bool:
    return not value.is_floating_point() or bool(torch.isfinite(value).all())


def identity(model: nn.Module, data: Data, config: dict[str, Any]) -> dict[str, Any]:
    """What makes two trainings the same: network, first weights, data and settings' configs."""
    return {
        "format": FORMAT,
        # Before the weights: a network for tables has its bins from the data.
        "data": tensors_digest({"x": data.train.x, "y": data.train.y}),
        "validation": tensors_digest({"x": data.val.x, "y": data.val.y}),
        "model": repr(model),
        "weights": weights_digest(model),
        **config,
    }


def folder(out: str | os.PathLike[str] | None, identity: dict[str, Any]) -> Folder | None:
    """The folder `out`, if the training is to be kept."""
    return None if out is None else Folder(out, identity)
