"""Reasons from the outside: a stored model and a file in, reasons and their files out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from r2et.audit.chosen_columns import chosen_column
from r2et.audit.loading import LabelledRows, LoadedModel, open_model, open_rows
from r2et.audit.moves import feasible_moves
from r2et.errors import InputError, require
from r2et.files import check_writable
from r2et.reason.columns import WHERE
from r2et.reason.difference import ReasonsDifference, difference
from r2et.reason.principal_reasons import reasons
from r2et.reason.result import Reasons
from r2et.reason.table_rows import TableRows
from r2et.region import Region

WRITTEN = (".csv", ".json", ".html")


@dataclass(frozen=True)
class ReasonsCommand:
    """What a command line asks for.

    model: a folder of `r2et train`.
    data: a file or a named data set; None is the test part of the model's training.
    k: how many reasons at most.
    toward: the class that they are of; None is the one each row is decided for.
    only_decided: leave out rows that are decided otherwise.
    moves, switches, frozen: the changes to prove them for, as "age=2,hours=2".
    baseline: whom rows are compared with.
    codes: a CSV file of column, code, sentence.
    exclude: columns that must not be named, with commas between.
    rows: at most so many, from the first on.
    chosen: rows by their number or identifier.
    id_column: the column that says who a row is.
    cutoff: the probability of class 1 from which on it is decided for.
    """

    model: str
    data: str | None = None
    k: int = 4
    toward: str | None = None
    only_decided: bool = False
    moves: str | None = None
    switches: int | None = None
    frozen: str | None = None
    baseline: str = "mean"
    codes: str | None = None
    exclude: str | None = None
    rows: int | None = None
    chosen: tuple[str, ...] = ()
    id_column: str | None = None
    cutoff: float | None = None

    def run(
        self, outputs: Sequence[str | None], *, progress: bool, x: TableRows | None = None
    ) -> Reasons:
        """Open the model and the rows, and find the reasons; outputs are tried first.

        x: encoded rows to take instead of the data.
        """
        for path in filter(None, outputs):
            expected = f"a file that ends in {', '.join(WRITTEN)}"
            require(Path(path).suffix in WRITTEN, WHERE, "out", expected, path)
            check_writable(WHERE, "out", path)
        require(self.rows is None or self.rows > 0, WHERE, "rows", "1 or more", self.rows)
        with asked_by(WHERE):
            opened = open_model(self.model)
        trained = opened.trained
        expected = "given with --only-refused, as --toward refused"
        require(
            not self.only_decided or self.toward is not None, WHERE, "toward", expected, "nothing"
        )
        table = trained is not None and trained.schema is not None
        require(table, WHERE, "MODEL", "a folder that `r2et train` wrote of a table", self.model)
        assert trained is not None
        assert trained.schema is not None
        ids: list[Any] | None = None
        if x is None:
            x, ids = self._rows(opened)
        return reasons(
            trained,
            x,
            k=self.k,
            toward=self._toward(trained.classes),
            baseline=self.baseline,
            region=self._region(trained.schema),
            codes=self.codes,
            exclude=_names(self.exclude, [c.name for c in trained.schema.columns]),
            ids=ids,
            cutoff=self.cutoff,
            only_decided=self.only_decided,
            limit=self.rows,
            progress=progress,
        )

    def _region(self, schema: Any) -> Region | None:
        if self.moves is None and self.switches is None:
            require(self.frozen is None, WHERE, "frozen", "given with --moves", self.frozen)
            return None
        return feasible_moves(schema, self.moves, self.switches, self.frozen, where=WHERE)

    def _rows(self, opened: LoadedModel) -> tuple[TableRows, list[Any]]:
        """The rows asked for, and what they are called."""
        rows = _read(opened, self.data)
        ids: list[Any] = list(range(len(rows.x)))
        if self.id_column is not None:
            labelled = LabelledRows(rows.x, None)
            with asked_by(WHERE):
                ids = chosen_column("id", self.id_column, opened, self.data, labelled)
        if not self.chosen:
            return rows, ids
        places: dict[str, list[int]] = {}
        for place, own in enumerate(ids):
            places.setdefault(str(own), []).append(place)
        for name in self.chosen:
            few = ", ".join(list(places)[:5]) + (", ..." if len(places) > 5 else "")
            require(name in places, WHERE, "row", f"one of the rows ({few})", name)
        wanted = [place for name in dict.fromkeys(self.chosen) for place in places[name]]
        return rows.some(wanted), [ids[place] for place in wanted]

    def _toward(self, classes: Sequence[str]) -> str | int | None:
        """A class by its label, or by its number where no label reads so."""
        label = self.toward
        if label is None or label in classes or not label.isdigit():
            return label
        return int(label)


@dataclass(frozen=True)
class DiffCommand:
    """What `r2et diff` is asked.

    old, new: folders of `r2et train`.
    data: a file or a named data set; None is the test part of the new model's training.
    k, toward, baseline, exclude, rows, id_column, cutoff: as of ReasonsCommand, for both models.
    """

    old: str
    new: str
    data: str | None = None
    k: int = 4
    toward: str | None = None
    baseline: str = "mean"
    exclude: str | None = None
    rows: int | None = None
    id_column: str | None = None
    cutoff: float | None = None

    def run(self, out: str | None, *, progress: bool) -> ReasonsDifference:
        """The reasons of both models for the same rows, compared."""
        if out is not None:
            is_valid = Path(out).suffix in WRITTEN[:2]
            require(is_valid, "diff", "out", "a file that ends in .csv or .json", out)
        if self.data is None:
            schemas = [_schema(folder) for folder in (self.old, self.new)]
            expected = "given where the models were trained on different columns"
            require(schemas[0] == schemas[1], "diff", "DATA", expected, "nothing")
        common = {n: v for n, v in vars(self).items() if n not in ("old", "new", "data")}
        if self.data is not None:
            sides = [(self.old, self.data), (self.new, self.data)]
            both = [ReasonsCommand(m, d, **common).run([out], progress=progress) for m, d in sides]
            return difference(*both)
        after = ReasonsCommand(self.new, **common)
        before = replace(after, model=self.old)
        require(self.id_column is None, "diff", "id", "given with DATA", self.id_column)
        kept = TableRows(open_rows(open_model(self.new), None, where="diff").x)
        both = [each.run([out], progress=progress, x=kept) for each in (before, after)]
        return difference(*both)


def _schema(folder: str) -> Any:
    with asked_by("diff"):
        trained = open_model(folder).trained
    schema = None if trained is None else trained.schema
    return None if schema is None else [column.to_json() for column in schema.columns]


def _read(opened: LoadedModel, data: str | None) -> TableRows:
    """The rows of a file, all of them, or of a named data set, or the stored test rows."""
    trained = opened.trained
    table = data is not None and Path(data).is_file() and Path(data).suffix != ".npz"
    if table and trained is not None and trained.schema is not None:
        return TableRows.read(trained.schema, data)
    return TableRows(open_rows(opened, data, where=WHERE).x)


def _names(text: str | None, known: Sequence[str]) -> list[str]:
    """Names of columns with commas between; a name may hold a comma itself."""
    names: list[str] = []
    begun = ""
    for piece in [] if text is None else text.split(","):
        begun = f"{begun},{piece}" if begun else piece
        goes_on = any(name.startswith(f"{begun.strip()},") for name in known)
        if begun.strip() in known or not goes_on:
            names.append(begun.strip())
            begun = ""
    return [*names, begun.strip()] if begun else names


@contextmanager
def asked_by(where: str) -> Iterator[None]:
    """An error of the audit's readers begins with the command that was given."""
    try:
        yield
    except InputError as error:
        text = str(error)
        if not text.startswith("audit: "):
            raise
        raise InputError(f"{where}: {text.removeprefix('audit: ')}") from error


def write(result: Reasons | ReasonsDifference, path: str) -> None:
    """As the file's ending says."""
    ending = Path(path).suffix
    if ending == ".html" and isinstance(result, Reasons):
        result.to_html(path)
    elif ending == ".csv":
        result.to_csv(path)
    else:
        result.to_json(path)
