"""Settings of regions as people give them: numbers, sequences, arrays, tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from r2et.errors import require


def as_number(where: str, name: str, value: Any) -> float:
    """Anything that is a number, and no flag or text, as a float."""
    try:
        is_number = not isinstance(value, bool | str)
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        is_number, number = False, math.nan
    require(is_number and not math.isnan(number), where, name, "a number", value)
    return number


def per_feature(where: str, name: str, value: Any) -> float | tuple[float, ...]:
    """A number, or any sequence of numbers as a tuple: hashable, with a whole repr."""
    if isinstance(value, Tensor):
        value = value.detach().flatten().tolist() if value.ndim else value.item()
    if hasattr(value, "__iter__") and not isinstance(value, str):
        return tuple(as_number(where, name, v) for v in value)
    return as_number(where, name, value)


def indices(where: str, frozen: Any) -> tuple[int, ...]:
    """Feature indices in any form, each once and in order."""
    is_valid = isinstance(frozen, Iterable) and not isinstance(frozen, str)
    values = list(frozen) if is_valid else []
    values = [v.item() if hasattr(v, "item") else v for v in values]
    is_valid = is_valid and all(type(v) is int and v >= 0 for v in values)
    require(is_valid, where, "frozen", "feature indices, each 0 or more", frozen)
    return tuple(sorted(set(values)))
