"""One audit from the outside: files in, a result and a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from r2et.audit.measures import LATE
from r2et.audit.opening import Opened, Rows, check_rows, modules_here, open_model, open_rows
from r2et.audit.result import Audit
from r2et.audit.run import audit, weights_digest
from r2et.config import Configurable, config_key
from r2et.errors import InputError, require
from r2et.files import check_writable
from r2et.region import L2, Linf, NormBall
from r2et.wording import rows_text

WHERE = "audit"
# What a bar can be set for, and the measure that it takes.
GATES = {
    "precision_strong": "strong",
    "precision_er": "papers",
    "precision_noise": "noise",
    "certified_share": "certified",
    "certified_precision": "certified",
    "auc_clean": "clean",
    "auc_attacked": "strong",
}


@dataclass(frozen=True)
class Request(Configurable):
    """What a command line asks for; what is None is as in the model's training.

    bounds: "low,high" of all features. frozen: names of columns that stay, with commas between.
    """

    # The bar to pass, and what the result is called, change nothing that is measured.
    config_excluded: ClassVar[tuple[str, ...]] = ("name", "gate", "fail_under")

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
    bounds: str | None = None
    frozen: str | None = None

    def __post_init__(self) -> None:
        require(self.norm in ("l2", "linf"), WHERE, "norm", "l2 or linf", self.norm)
        bar = self.fail_under
        require(bar is None or 0 <= bar <= 1, WHERE, "fail_under", "in 0..1, as 0.95", bar)
        require(self.gate in GATES, WHERE, "gate", f"one of {', '.join(GATES)}", self.gate)
        _pair(self.bounds)

    def run(
        self,
        outputs: dict[str, str | None],
        *,
        rows: int | None,
        budget: str,
        seed: int,
        note: Callable[[str], None] = lambda _: None,
        **settings: Any,
    ) -> tuple[Audit, Path | None]:
        """Open the model and the rows, and audit.

        outputs: the files that are to be written, by the option that names them; they are tried
        first. note: told what is worth knowing. Gives the result and, beside the first output, what
        a stopped audit goes on from, which may go when the result is written; None where there can
        be none.
        """
        paths = {name: path for name, path in outputs.items() if path not in (None, "-")}
        for name, path in paths.items():
            check_writable(WHERE, name, str(path))
        places = [Path(str(path)).absolute() for path in paths.values()]
        other = len(set(places)) == len(places)
        require(other, WHERE, " and ".join(paths), "two files", str(next(iter(places), "")))
        # Workers read the model after this process has made it: its module must be there for both.
        with modules_here():
            opened = open_model(self.model, self.weights)
            data = open_rows(opened, self.data, self.target)
            check_rows(opened, data, self.data, self.target)
            k, region = self._asked(opened, data)
            # Another audit, or the same of a network trained anew, has a file of its own.
            asked = {"rows": rows, "budget": budget, "seed": seed, "request": self.config()}
            mark = config_key({**asked, "weights": weights_digest(opened.model)})[:12]
            folder = Path(str(next(iter(paths.values()), "."))).parent
            partial = _keepable(folder / f".r2et-audit-{mark}.partial", note)
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

    def _asked(self, opened: Opened, data: Rows) -> tuple[int, NormBall]:
        """k and the region, from the options or else from the training."""
        trained = opened.trained
        k = self.k if self.k is not None or trained is None else trained.k
        what = "given for a model that `r2et train` did not write"
        require(k is not None, WHERE, "k", what, "nothing")
        assert k is not None
        radius = self.radius
        if radius is None:
            radius = 0.3 if trained is None else trained.radius
        ball = L2 if self.norm == "l2" else Linf
        frozen = [] if self.frozen is None else columns_called(self.frozen, data.names, data.x[0])
        return k, ball(radius, bounds=_pair(self.bounds), frozen=frozen)


def columns_called(text: str, names: tuple[str, ...] | None, row: Any) -> list[int]:
    """Places of the columns called so; a column of categories is called by its own name.

    Without names, columns are called by their numbers.
    """
    known = tuple(map(str, range(row.numel()))) if names is None else names
    found: list[int] = []
    for part in [text] if text in known else [part.strip() for part in text.split(",")]:
        places = [i for i, n in enumerate(known) if n == part or n.startswith(f"{part}: ")]
        few = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        require(bool(places), WHERE, "frozen", f"names of columns ({few}), as a,b", part)
        found += places
    return sorted(set(found))


def late(found: Audit, measures: Iterable[str] | None = None) -> bool:
    """Whether there was no time for some rows, or for some of these measures; by default any."""
    of = None if measures is None else {"rows", *measures}
    return any(LATE in s["why"] and (of is None or s["what"] in of) for s in found.skipped)


def goes_on(found: Audit, partial: Path) -> bool:
    """Whether there was no time for all, and more of it would go on from what is in the file."""
    return late(found) and partial.exists() and partial.read_bytes().count(b"\n") > 1


def failed(found: Audit, gate: str, fail_under: float | None) -> str | None:
    """Why the gate is shut, in a sentence; None where it is open."""
    if fail_under is None:
        return None
    value = found.summary()[gate]
    if value is None:
        return f"audit: {gate} must be {fail_under:g} or more, got nothing: it was not measured."
    told = f"{value:.4f}"
    behind, asked = found.found["counts"][gate], found.found["settings"]["rows_asked"]
    # A figure of the rows that there was time for says nothing about the others.
    part = late(found, [GATES[gate]])
    if part:
        told += f" of {behind} of {rows_text(asked)}: give it more minutes, or fewer rows"
    if value < fail_under:
        return f"audit: {gate} must be {fail_under:g} or more, got {told}."
    if part:
        return f"audit: {gate} must be measured on all rows to pass, got {told}."
    return None


def _pair(text: str | None) -> tuple[float, float] | None:
    """Two numbers with a comma between."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        what = "two numbers with a comma between, as 0,1"
        raise InputError(f"{WHERE}: bounds must be {what}, got {text}.") from None
    return low, high


def _keepable(partial: Path, note: Callable[[str], None]) -> Path | None:
    """The file if it can be written: nobody asked for it, so that the audit goes on without."""
    try:
        check_writable(WHERE, "partial", partial)
    except InputError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        note(f"Note: nothing can be kept in this folder ({reason}); once stopped, it starts anew.")
        return None
    return partial
