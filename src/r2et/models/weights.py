"""A model's weights: told apart by a digest, and kept as they are now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def tensors_digest(tensors: Mapping[str, Any]) -> str:
    """SHA-256 of tensors and their names, types and shapes; of what is no tensor, of its name."""
    sha256 = hashlib.sha256()
    for name, value in tensors.items():
        if not isinstance(value, Tensor):  # extra state of somebody's module
            sha256.update(name.encode())
            continue
        value = value.detach().cpu().contiguous()
        sha256.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        sha256.update(value.flatten().view(torch.uint8).numpy().tobytes())
    return sha256.hexdigest()


def weights_digest(model: nn.Module) -> str:
    """What tells a model's weights and buffers from others."""
    return tensors_digest(model.state_dict())


def copied_weights(model: nn.Module) -> dict[str, Tensor]:
    """The model's state_dict on the CPU, which later steps do not change."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
