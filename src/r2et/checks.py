"""The checks that functions taking tensors share, so that bad input reads the same everywhere."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor, nn

from r2et.errors import require


def check_input(where: str, x: Tensor, name: str = "x") -> None:
    """A batch of inputs: a non-empty, finite, floating (B, ...) tensor."""
    require(isinstance(x, Tensor), where, name, "a torch.Tensor", type(x).__name__)
    require(x.device.type != "meta", where, name, "a tensor with values", x)
    require(x.is_floating_point(), where, name, "a floating-point tensor (use x.float())", x)
    require(x.ndim >= 2, where, name, "a batch of shape (B, features, ...)", x)
    require(x.numel() > 0, where, name, "a batch of at least one row and one feature", x)
    if not all_finite(x):
        bad = (~torch.isfinite(x)).flatten(1).any(1).nonzero().flatten()
        value = f"NaN or infinity in {len(bad)} of {len(x)} rows, first in row {int(bad[0])}"
        require(False, where, name, "finite", value)


def all_finite(x: Tensor) -> bool:
    """No NaN and no infinity: a finite sum says so at a tenth of the cost of looking at each."""
    return bool(x.detach().sum().isfinite()) or bool(torch.isfinite(x).all())


def check_scores(where: str, scores: Tensor, name: str = "scores") -> None:
    """Explanations: a finite, floating (B, n) tensor."""
    check_input(where, scores, name)
    require(scores.ndim == 2, where, name, "of shape (B, n)", scores)


def as_whole(value: Any) -> Any:
    """A whole number of NumPy's, or of anybody's, as Python's; anything else as it is."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return int(value) if whole else value


def as_real(value: Any) -> Any:
    """The same for numbers of any kind."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    return float(value) if real else value


def check_k(where: str, k: int, n: int) -> None:
    """How many features a person looks at: a whole number in 1..n-1."""
    whole = isinstance(k, int) and not isinstance(k, bool)
    require(whole, where, "k", "a whole number", k)
    require(n > 1, where, "x", "explained by at least 2 scores", f"{n} score")
    require(0 < k < n, where, "k", f"in 1..{n - 1} for {n} features", k)


def check_same_shape(where: str, a: Tensor, b: Tensor, name: str, other: str) -> None:
    """Two tensors that are compared element by element."""
    require(isinstance(a, Tensor), where, name, "a torch.Tensor", type(a).__name__)
    require(a.shape == b.shape, where, name, f"of the shape of {other}, {tuple(b.shape)}", a)
    require(a.device == b.device, where, name, f"on the device of {other}, {b.device}", a)


def check_model_input(where: str, model: nn.Module, x: Tensor) -> None:
    """A batch of inputs that lives where the model does."""
    require(isinstance(model, nn.Module), where, "model", "a torch.nn.Module", type(model).__name__)
    weight = next(model.parameters(), None)
    if isinstance(x, Tensor) and weight is not None and weight.device != x.device:
        require(False, where, "x", f"on the model's device {weight.device}", x)
    check_input(where, x)
