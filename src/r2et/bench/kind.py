"""What every kind of measurement is, and how its numbers are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from r2et.bench.case import Case
from r2et.data import Data


def numbers(values: Tensor, digits: int = 6) -> list[float | None]:
    """One number per row as JSON holds it, to a few digits; None where infinite."""
    found = values.detach().double().cpu().tolist()
    return [float(f"{v:.{digits}g}") if abs(v) < float("inf") else None for v in found]


def mean(values: Tensor) -> float:
    """The mean over rows."""
    return float(f"{float(values.double().mean()):.8g}")


class Kind(ABC):
    """A kind of measurement. `settings` says, beside the options, what its result hangs on."""

    @abstractmethod
    def settings(self, case: Case, **options: Any) -> dict[str, Any]:
        """Its explanation, attack and the like, as their repr."""

    @abstractmethod
    def __call__(self, case: Case, model: nn.Module, data: Data, **options: Any) -> dict[str, Any]:
        """Measure."""
