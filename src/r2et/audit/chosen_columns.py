"""Columns of the data that an audit only speaks of: who the rows are, and of which group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from r2et.audit.loading import WHERE, LabelledRows, LoadedModel
from r2et.errors import require


def chosen_column(
    option: str, column: str, opened: LoadedModel, source: str | None, rows: LabelledRows
) -> list[Any]:
    """The values of a column, one for each row that was read; None where a cell is empty.

    option: what asked for it. Of a table, any column; of an .npz file, any array with an entry per
    row; of a named data set, a feature, or a column of categories.
    """
    if source is None:  # the test part of the training, of which the folder keeps the features
        expected = (
            "given with DATA, a file that has the column: the stored test part has features only"
        )
        require(option != "id", WHERE, option, expected, column)
        return _of_features(option, column, rows)
    path = Path(source)
    if not path.is_file():
        return _of_features(option, column, rows)
    if path.suffix == ".npz":
        return _of_archive(option, column, path, len(rows.x))
    return _of_table(option, column, opened, path, len(rows.x))


def _of_table(option: str, column: str, opened: LoadedModel, path: Path, rows: int) -> list[Any]:
    from r2et.data.table_source import open_table  # brings pyarrow, which takes time

    schema = None if opened.trained is None else opened.trained.schema
    known = {} if schema is None else {"known": schema.dialect}
    table = open_table(WHERE, path, wanted=lambda name: name == column, **known)
    _check_known(option, column, table.names)
    labels = table.labels(column)
    numbers = None if option == "id" or table.coded(column) else table.numbers(column)
    if numbers is None:
        names = [*labels.names, None]  # the code of an empty cell is -1
        values: list[Any] = [names[code] for code in labels.codes.tolist()]
    else:
        values = [None if v != v else v for v in numbers.tolist()]
    target = None if schema is None else schema.target
    if len(values) != rows and target in table.names:
        # Rows without a label were left out when the others were read.
        there = table.labels(str(target), table.sure).codes >= 0
        values = [value for value, kept in zip(values, there.tolist(), strict=True) if kept]
    require(len(values) == rows, WHERE, option, f"a column of {rows} rows", f"{len(values)}")
    return values


def _of_archive(option: str, column: str, path: Path, rows: int) -> list[Any]:
    with np.load(path, allow_pickle=False) as archive:
        _check_known(option, column, archive.files)
        array = archive[column]
    is_valid = array.ndim == 1 and len(array) == rows
    require(is_valid, WHERE, option, f"an array of {rows} entries", f"{column} {array.shape}")
    listed: list[Any] = array.tolist()
    return listed


def _of_features(option: str, column: str, rows: LabelledRows) -> list[Any]:
    """A named data set has features alone: numbers, or the categories of a column."""
    names = rows.names or ()
    require(option != "id", WHERE, option, "left out for a named data set", column)
    if column in names:
        listed: list[Any] = rows.x[:, names.index(column)].tolist()
        return listed
    places = [i for i, name in enumerate(names) if name.startswith(f"{column}: ")]
    _check_known(option, column, [column] if places else names)
    categories = [names[i].removeprefix(f"{column}: ") for i in places]
    return [categories[i] for i in rows.x[:, places].argmax(1).tolist()]


def _check_known(option: str, column: str, names: Sequence[str]) -> None:
    few = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    require(column in names, WHERE, option, f"one of the columns {few}", column)
