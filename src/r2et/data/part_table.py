"""Rows of one part of a data set, written as a table in their own units."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from r2et.data.dataset import Data, Split
from r2et.errors import InputError, require
from r2et.files import write

WHERE = "write_part"
MAGIC = b"PAR1"


def write_part(
    data: Data,
    path: str | os.PathLike[str],
    part: Literal["train", "val", "test"] = "test",
    source: str | os.PathLike[str] | None = None,
) -> None:
    """Write the rows of a part, as Parquet where the path ends so, else as CSV.

    source: the file that the data were loaded from; its rows are then copied cell by cell. Without
    it, cells are read back from the features: within the training's range, rare labels as "other".
    """
    is_table = data.schema is not None
    require(is_table, WHERE, "data", "those of a table", f"{data.name}, which has no columns")
    copied = source is not None and data.row_numbers is not None
    table = (
        _copied(data, Path(str(source)), part) if copied else _decoded(data, getattr(data, part))
    )
    target = Path(path)
    try:
        write(target, _packed(table, parquet=target.suffix == ".parquet"))
    except OSError as error:
        got = f"{target} ({error.strerror or error})"
        raise InputError(f"{WHERE}: path must be a file to write, got {got}.") from error


def _copied(data: Data, source: Path, part: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from r2et.data.csv_file import read_csv

    assert data.row_numbers is not None
    numbers = data.row_numbers[("train", "val", "test").index(part)]
    with source.open("rb") as file:
        is_parquet = file.read(4) == MAGIC
    if is_parquet:
        return pq.read_table(source).take(pa.array(numbers.numpy()))
    text = read_csv(WHERE, source.name, source, [])
    return text.table.rename_columns(text.names).take(pa.array(numbers.numpy()))


def _decoded(data: Data, split: Split) -> Any:
    import pyarrow as pa

    schema = data.schema
    assert schema is not None
    rows = [schema.decode(row) for row in split.x]
    columns: dict[str, Any] = {c.name: [row[c.name] for row in rows] for c in schema.columns}
    labels = np.array(schema.classes or data.classes)[split.y.numpy()]
    return pa.table({**columns, schema.target or "target": labels})


def _packed(table: Any, *, parquet: bool) -> bytes:
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    if parquet:
        pq.write_table(table, buffer)
    else:
        pc.write_csv(table, buffer)
    return buffer.getvalue()
