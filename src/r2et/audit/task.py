"""One audit from the outside: files in, a result and a verdict out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2et.audit.opening import modules_here, open_model, open_rows
from r2et.audit.result import Audit
from r2et.audit.run import audit, weights_digest
from r2et.errors import require
from r2et.region import L2, Linf

WHERE = "audit"
GATES = (
    *("precision_strong", "precision_er", "precision_noise", "certified_share"),
    *("certified_precision", "auc_clean", "auc_attacked"),
)


@dataclass(frozen=True)
class Request:
    """What a command line asks for; what is None is as in the model's training."""

    model: str
    data: str
    k: int | None = None
    radius: float | None = None
    norm: str = "l2"
    weights: str | None = None
    target: str | None = None
    name: str | None = None
    gate: str = "precision_strong"
    fail_under: float | None = None

    def __post_init__(self) -> None:
        require(self.norm in ("l2", "linf"), WHERE, "norm", "l2 or linf", self.norm)
        bar = self.fail_under
        require(bar is None or 0 <= bar <= 1, WHERE, "fail_under", "in 0..1, as 0.95", bar)
        require(self.gate in GATES, WHERE, "gate", f"one of {', '.join(GATES)}", self.gate)

    def run(
        self, beside: str | None, *, rows: int | None, budget: str, seed: int, **settings: Any
    ) -> tuple[Audit, Path]:
        """Open the model and the rows, and audit. beside: a file that is to be written.

        Gives the result and, in the same folder, what a stopped audit goes on from; it may go when
        the result is written.
        """
        # Workers read the model after this process has made it: its module must be there for both.
        with modules_here():
            return self._audited(beside, rows=rows, budget=budget, seed=seed, **settings)

    def _audited(
        self, beside: str | None, *, rows: int | None, budget: str, seed: int, **settings: Any
    ) -> tuple[Audit, Path]:
        opened = open_model(self.model, self.weights)
        data = open_rows(opened, self.data, self.target)
        trained = opened.trained
        k = self.k if self.k is not None or trained is None else trained.k
        what = "given for a model that `r2et train` did not write"
        require(k is not None, WHERE, "k", what, "nothing")
        radius = self.radius
        if radius is None:
            radius = 0.3 if trained is None else trained.radius
        region = L2(radius) if self.norm == "l2" else Linf(radius)
        assert k is not None
        # Another audit, or the same of a network trained anew, has a file of its own.
        asked = repr((self, rows, budget, seed, weights_digest(opened.model)))
        folder = Path() if beside in (None, "-") else Path(str(beside)).parent
        mark = hashlib.sha256(asked.encode()).hexdigest()[:12]
        partial = folder / f".r2et-audit-{mark}.partial"
        found = audit(
            opened.model,
            data.x,
            data.y,
            k=k,
            region=region,
            rows=rows,
            budget=budget,  # type: ignore[arg-type]
            seed=seed,
            names=data.names,
            classes=data.classes,
            name=self.name or opened.name,
            partial=partial,
            **settings,
        )
        return found, partial


def failed(found: Audit, gate: str, fail_under: float | None) -> str | None:
    """Why the gate is shut, in a sentence; None where it is open."""
    if fail_under is None:
        return None
    value = found.summary()[gate]
    if value is None:
        return f"audit: {gate} must be {fail_under:g} or more, got nothing: it was not measured."
    if value < fail_under:
        return f"audit: {gate} must be {fail_under:g} or more, got {value:.4f}."
    return None
