"""A decision at a cut-off other than a half: the same model, its log-odds moved by a constant."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def shift_of(cutoff: float | None) -> float:
    """The log-odds of class 1 from which on it is decided for; 0 for a half, or none."""
    return 0.0 if cutoff is None else math.log(cutoff / (1 - cutoff))


class AtCutoff(nn.Module):
    """A model of two classes that predicts class 1 where its probability reaches a cut-off.

    log-odds'(x) = log-odds(x) - log(c / (1 - c)): gradients of the log-odds, and what ranks rows
    and reasons, are the model's own; what is decided, and so what an attack has to leave as it is,
    is on the same side of the cut-off.
    """

    shift: Tensor

    def __init__(self, model: nn.Module, cutoff: float) -> None:
        super().__init__()
        self.model = model
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        shift = torch.tensor([0.0, shift_of(cutoff)], dtype=like.dtype, device=like.device)
        self.register_buffer("shift", shift)
        self.train(model.training)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.model(x)
        single = out.ndim == 1 or out.shape[1] == 1
        return out - self.shift[1] if single else out - self.shift


def own_logits(logits: Tensor, cutoff: float | None) -> Tensor:
    """(B, C) the model's own logits, from those at a cut-off: they say how sure it is."""
    if cutoff is None:
        return logits
    moved = logits.clone()
    moved[:, -1] += shift_of(cutoff)
    return moved
