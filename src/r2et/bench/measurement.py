"""What every measurement is, and how its numbers are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.data import Data


def rounded(values: Tensor, digits: int = 6) -> list[float | None]:
    """One number per row as JSON holds it, to a few digits; None where infinite."""
    rows = values.detach().double().cpu().tolist()
    return [float(f"{v:.{digits}g}") if abs(v) < float("inf") else None for v in rows]


def mean(values: Tensor) -> float:
    """The mean over rows."""
    return float(f"{float(values.double().mean()):.8g}")


class Measurement(ABC):
    """Something measured of a trained network. Its options are those of a table's column.

    version: raised when the same settings come to mean another measurement.
    """

    version: ClassVar[int] = 1

    @abstractmethod
    def settings(self, benchmark: BenchmarkConfig, **options: Any) -> dict[str, Any]:
        """All that its result depends on beside the network: explainer, attack, rows and the like.

        Values are what `r2et.config.plain` takes.
        """

    @abstractmethod
    def __call__(
        self, benchmark: BenchmarkConfig, model: nn.Module, data: Data, **options: Any
    ) -> dict[str, Any]:
        """Measure."""
