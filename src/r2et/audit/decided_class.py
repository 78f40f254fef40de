"""Only the rows that are decided for one class, such as the refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from r2et.audit.decision import AtCutoff
from r2et.audit.settings import WHERE
from r2et.errors import require
from r2et.models.output import batched_logits, classes


@dataclass(frozen=True, eq=False)
class DecidedClass:
    """Which rows a model decides for a class.

    model: which decides by its largest logit, at a cut-off where one is given.
    index: of the class.
    label: what it is called.
    """

    model: nn.Module
    index: int
    label: str

    @staticmethod
    def of(
        model: nn.Module, only: str | int, labels: Sequence[str] | None, cutoff: float | None
    ) -> DecidedClass:
        """A class by its label, or by its number."""
        known = [] if labels is None else list(map(str, labels))
        named = isinstance(only, str) and only in known
        number = type(only) is int and only >= 0
        number = number and (not known or only < len(known))  # type: ignore[operator]
        listed = ", ".join(known) if known else "by its number, 0, 1, ..."
        require(named or number, WHERE, "only", f"a class of the model ({listed})", only)
        index = known.index(str(only)) if named else int(only)
        label = known[index] if known else f"class {index}"
        return DecidedClass(model if cutoff is None else AtCutoff(model, cutoff), index, label)

    def __call__(self, x: Tensor) -> Tensor:
        """(B,) bool, on the CPU: rows x (B, ...) that are decided for it."""
        return (classes(batched_logits(self.model, x, WHERE)) == self.index).cpu()

    @property
    def note(self) -> str:
        """What a reader must know of the figures."""
        return (
            f"only rows decided {self.label} were audited: AUC and calibration are of these alone,"
            " and say little of the model; its own scores chose these rows, which lowers its AUC on"
            " them and not that of logistic regression: the two are no comparison here"
        )
