"""A published table as a data set: rows shuffled, split 70:15:15, numbers scaled on the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from r2et.data.column import MEASURED, Column
from r2et.data.dataset import Data, Origin
from r2et.data.schema import Schema
from r2et.data.shuffle import parts, shuffled


def rows_of(name: str, contents: bytes) -> list[dict[str, str]]:
    """The rows of a CSV file, each by column name, its cells as they are written.

    Of two columns of one name it is the last.
    """
    from r2et.data.csv_file import read_csv  # brings pyarrow, which takes time

    text = read_csv("load", name, contents, missing=())
    columns = [column.to_pylist() for column in text.table.columns]
    return [dict(zip(text.names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def as_data(
    name: str,
    raw: Mapping[str, Sequence[str]],
    columns: Sequence[Column],
    *,
    target: str,
    classes: tuple[str, str],
    k: int,
    source: Origin,
    dropped: Sequence[tuple[str, str]] = (),
) -> Data:
    """The table `raw`, texts by column name, as a data set.

    columns: how to read each; the range of a number is learned on the training part.
    """
    order = shuffled(len(raw[target]), name)
    values = {column: [cells[i] for i in order] for column, cells in raw.items()}
    train, val, test = parts(len(order))
    fitted = [_fitted(column, values[column.name][train]) for column in columns]
    schema = Schema(tuple(fitted), target, classes, tuple(dropped))
    x, y = schema.encode(values), schema.encode_target(values[target])
    sizes = [part.stop - part.start for part in (train, val, test)]
    return Data.from_schema(name, schema, x, y, sizes, k=k, source=source)


def _fitted(column: Column, cells: Sequence[str]) -> Column:
    if column.kind not in MEASURED:
        return column
    numbers = [float(cell) for cell in cells]
    return replace(column, low=min(numbers), high=max(numbers))
