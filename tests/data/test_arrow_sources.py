"""Arrow tables and Parquet files as other programs make them."""

import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from r2et.data import apply_schema, load_table


def frame(rows=200):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=rows),
            "word": rng.choice([" red", "green", "blue"], rows),
            "kind": rng.choice(["x", "y", "z"], rows),
            "text": rng.normal(size=rows).astype(str),
            "y": rng.choice(["no", "yes"], rows),
        }
    )


def as_views(table):
    """The table as polars hands it over: texts as views, categories as dictionaries of views."""
    columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if name == "kind":
            coded = column.dictionary_encode()
            words = coded.dictionary.cast(pa.string_view())
            column = pa.DictionaryArray.from_arrays(coded.indices, words)
        elif name != "a":
            column = column.cast(pa.string_view())
        columns[name] = pa.chunked_array([column.slice(0, 90), column.slice(90)])
    return pa.table(columns)


def test_views_and_dictionaries_of_views():
    plain = pa.table(frame())
    views = as_views(plain)
    assert str(views.schema.field("text").type) == "string_view"
    assert "string_view" in str(views.schema.field("kind").type)
    expected, data = load_table(plain, "y"), load_table(views, "y")
    assert data.schema == expected.schema
    assert torch.equal(data.train.x, expected.train.x)
    assert torch.equal(apply_schema(data.schema, views)[0], apply_schema(data.schema, plain)[0])


def test_polars():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    made = polars.from_pandas(frame()).with_columns(polars.col("kind").cast(polars.Categorical))
    assert load_table(made, "y").schema == load_table(frame(), "y").schema


def test_fractions_of_a_microsecond(tmp_path):
    days = pd.to_datetime(np.arange(200) * 86_400_000_000_000 + 123)
    table = pa.table(frame().assign(day=days))
    assert table.schema.field("day").type == pa.timestamp("ns")
    pq.write_table(table, tmp_path / "t.parquet")
    data = load_table(tmp_path / "t.parquet", "y")
    assert data.schema.columns[-1].kind == "date"


def wide(path, columns, rows=60):
    rng = np.random.default_rng(0)
    made = {f"c{i}": rng.random(rows) for i in range(columns)} | {"y": np.arange(rows) % 2}
    pq.write_table(pa.table(made), path)
    return path


def test_a_wide_file_is_opened_once(tmp_path, monkeypatch):
    opened = []
    plain = pq.ParquetFile

    def count(*args, **settings):
        opened.append(args)
        return plain(*args, **settings)

    monkeypatch.setattr(pq, "ParquetFile", count)
    monkeypatch.setattr(pq, "read_table", None)
    load_table(wide(tmp_path / "t.parquet", 50), "y")
    assert len(opened) == 1


def test_time_grows_with_the_columns_and_no_faster(tmp_path):
    def seconds(columns):
        path = wide(tmp_path / f"{columns}.parquet", columns)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            load_table(path, "y")
            times.append(time.perf_counter() - start)
        return min(times)

    # Eight times the columns; a footer read for each of them would make it sixty-four times.
    assert seconds(400) < 20 * seconds(50)
