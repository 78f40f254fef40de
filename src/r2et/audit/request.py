"""One audit from the outside: files in, a result and a verdict out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from r2et.audit.chosen_columns import chosen_column
from r2et.audit.gates import Gate
from r2et.audit.inputs import folder_digests, inputs_of_files
from r2et.audit.loading import (
    LabelledRows,
    LoadedModel,
    check_rows,
    modules_here,
    open_model,
    open_rows,
)
from r2et.audit.model_audit import Audit
from r2et.audit.moves import feasible_moves
from r2et.audit.run import audit
from r2et.config import Configurable, config_key
from r2et.defaults import RADIUS
from r2et.errors import InputError, require
from r2et.files import check_writable
from r2et.models.weights import weights_digest
from r2et.region import L2, Linf, Region

WHERE = "audit"


@dataclass(frozen=True)
class Request(Configurable):
    """What a command line asks for; what is None is as in the model's training.

    model: a folder of `r2et train`, or package.module:factory.
    data: a file, or a named data set; None is the test part of the model's training.
    k: how many reasons.
    radius, norm: of the ball in which inputs may move.
    weights: a safetensors file for a factory.
    target: the label's column.
    name: what to call the model.
    id_column: the column that says who a row is.
    by: columns whose groups are looked at one by one.
    command: what was typed, for the result to repeat.
    gates: bounds that figures of the summary must keep; what became of them is in the result.
    bounds: "low,high" of all features.
    frozen: names of columns that stay, with commas between.
    moves, switches: in place of a ball, how far columns of the table may move, as "age=2,hours=2",
        and how many categories may change.
    all_rows: audit rows that the model was trained on, too.
    cutoff: the probability of class 1 from which on it is decided for.
    only: the class that rows must be decided for, as refused.
    reasons: audit what people are given, one contribution per column of the table.
    """

    # The bar to pass, and what the result is called, change nothing that is measured.
    config_excluded: ClassVar[tuple[str, ...]] = ("name", "gates", "id_column", "by", "command")

    model: str
    data: str | None = None
    k: int | None = None
    radius: float | None = None
    norm: str = "l2"
    weights: str | None = None
    target: str | None = None
    name: str | None = None
    id_column: str | None = None
    by: tuple[str, ...] = ()
    command: str | None = None
    gates: tuple[Gate, ...] = ()
    bounds: str | None = None
    frozen: str | None = None
    moves: str | None = None
    switches: int | None = None
    all_rows: bool = False
    cutoff: float | None = None
    only: str | None = None
    reasons: bool = False

    def __post_init__(self) -> None:
        require(self.norm in ("l2", "linf"), WHERE, "norm", "l2 or linf", self.norm)
        _pair(self.bounds)
        # Known rows would help to keep the bound: the exit code of such a gate says nothing.
        sound = not (self.gates and self.all_rows)
        expected = "left out with --all-rows, since training rows would help to pass them"
        given_gates = ", ".join(map(str, self.gates))
        require(sound, WHERE, "gates", expected, given_gates)
        is_valid = self.switches is None or self.switches >= 0
        require(is_valid, WHERE, "switches", "0 or more", self.switches)
        of_ball = {"radius": self.radius, "bounds": self.bounds}
        of_ball["norm"] = None if self.norm == "l2" else self.norm
        given = [name for name, value in of_ball.items() if value is not None]
        is_valid = not (given and self._of_table)
        expected = "left out with --moves and --switches, which are no ball"
        require(is_valid, WHERE, " and ".join(given), expected, "given")

    @property
    def _of_table(self) -> bool:
        """Whether changes are those of a table's own columns."""
        return self.moves is not None or self.switches is not None

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
        for name, path in outputs.items():
            printed = path == "-" and name != "--json"
            require(not printed, WHERE, name, "a file: --json alone is printed", str(path))
        paths = {name: path for name, path in outputs.items() if path not in (None, "-")}
        for name, path in paths.items():
            check_writable(WHERE, name, str(path))
        places = [Path(str(path)).absolute() for path in paths.values()]
        other = len(set(places)) == len(places)
        require(other, WHERE, " and ".join(paths), "two files", str(next(iter(places), "")))
        # Workers read the model after this process has made it: its module must be there for both.
        with modules_here():
            opened = open_model(self.model, self.weights)
            files = None if opened.trained is None else folder_digests(Path(self.model))
            data = open_rows(opened, self.data, self.target, id_column=self.id_column, by=self.by)
            check_rows(opened, data, self.data or "the test part", self.target)
            k, region = self._asked(opened, data)
            ids, by = self._columns(opened, data)
            # Another audit, or the same of a network trained anew, has a file of its own.
            asked = {"rows": rows, "budget": budget, "seed": seed, "request": self.config()}
            mark = config_key({**asked, "weights": weights_digest(opened.model)})[:12]
            folder = Path(str(next(iter(paths.values()), "."))).parent
            partial = _keepable(folder / f".r2et-audit-{mark}.partial", note)
            result = audit(
                opened.trained or opened.model,
                data.x,
                data.y,
                k=k,
                region=region,
                rows=rows,
                budget=budget,  # type: ignore[arg-type]
                seed=seed,
                names=None if self.reasons else data.names,  # its scores are of columns
                classes=data.classes,
                name=self.name or opened.name,
                schema=None if opened.trained is None else opened.trained.schema,
                partial=partial,
                ids=ids,
                by=by,
                all_rows=self.all_rows,
                cutoff=self.cutoff,
                only=self._only(opened),
                explainer="reasons" if self.reasons else None,
                note=lambda sentence: note(f"Note: {sentence}."),
                **settings,
            )
        known = result.result["inputs"]
        inputs = inputs_of_files(known, self.model, self.weights, self.data, self.command, files)
        result = Audit({**result.result, "inputs": inputs})
        if self.gates:
            verdicts = [verdict.to_dict() for verdict in result.check(self.gates)]
            result = Audit({**result.result, "gates": verdicts})
        return result, partial

    def _columns(
        self, opened: LoadedModel, data: LabelledRows
    ) -> tuple[list[Any] | None, dict[str, list[Any]]]:
        """The rows' identifiers, and what they are grouped by."""

        def column(option: str, name: str) -> list[Any]:
            return chosen_column(option, name, opened, self.data, data)

        ids = None if self.id_column is None else column("id", self.id_column)
        return ids, {name: column("by", name) for name in self.by}

    def _only(self, opened: LoadedModel) -> str | int | None:
        """The class to look at by its label, or by its number where no label reads so."""
        labels = () if opened.trained is None else opened.trained.classes
        if self.only is None or self.only in labels or not self.only.isdecimal():
            return self.only
        return int(self.only)

    def _asked(self, opened: LoadedModel, data: LabelledRows) -> tuple[int | None, Region]:
        """k and the region, from the options or else from the training; None for usual reasons."""
        trained = opened.trained
        table = trained is not None and trained.mean is not None
        expected = "left out for a model that `r2et train` did not make of a table"
        require(table or not self.reasons, WHERE, "reasons", expected, opened.name)
        k = self.k if self.k is not None or trained is None or self.reasons else trained.k
        expected = "given for a model that `r2et train` did not write"
        require(k is not None or self.reasons, WHERE, "k", expected, "nothing")
        if self._of_table:
            schema = None if trained is None else trained.schema
            option = "moves" if self.moves is not None else "switches"
            expected = "given for a model that `r2et train` made of a table, whose columns it knows"
            require(schema is not None, WHERE, option, expected, opened.name)
            assert schema is not None
            return k, feasible_moves(schema, self.moves, self.switches, self.frozen)
        radius = self.radius
        if radius is None:
            radius = RADIUS if trained is None else trained.radius
        ball = L2 if self.norm == "l2" else Linf
        frozen = [] if self.frozen is None else columns_called(self.frozen, data.names, data.x[0])
        return k, ball(radius, bounds=_pair(self.bounds), frozen=frozen)


def columns_called(text: str, names: tuple[str, ...] | None, row: Any) -> list[int]:
    """Places of the columns called so; a column of categories is called by its own name.

    Without names, columns are called by their numbers.
    """
    known = tuple(map(str, range(row.numel()))) if names is None else names
    columns: list[int] = []
    for part in [text] if text in known else [part.strip() for part in text.split(",")]:
        places = [i for i, n in enumerate(known) if n == part or n.startswith(f"{part}: ")]
        few = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        require(bool(places), WHERE, "frozen", f"names of columns ({few}), as a,b", part)
        columns += places
    return sorted(set(columns))


def _pair(text: str | None) -> tuple[float, float] | None:
    """Two numbers with a comma between."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        expected = "two numbers with a comma between, as 0,1"
        raise InputError(f"{WHERE}: bounds must be {expected}, got {text}.") from None
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
