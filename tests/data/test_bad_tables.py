"""Tables as people have them: each is handled, or refused in one sentence that says what to do."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from r2et.data import Column, apply_schema, load_table
from r2et.errors import InputError


def table(rows=60, **columns):
    """Two usable columns and a target, with others added or replaced."""
    base = {
        "size": np.arange(rows) * 1.5 % 7,
        "colour": ["red", "green", "blue"] * (rows // 3),
        "y": [0, 1] * (rows // 2),
    }
    return pd.DataFrame(base | columns)


def refused(sentence, source, target="y", **settings):
    with pytest.raises(InputError) as caught:
        load_table(source, target, **settings)
    text = str(caught.value)
    assert re.search(sentence, text), text
    assert text.startswith("load_table: ")
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("Y", r"target must be one of size, colour, y \(did you mean 'y'\?\), got Y\."),
        ("colur", r"target must be one of .* \(did you mean 'colour'\?\), got colur\."),
        (None, r"target must be one of size, colour, y, got None\."),
    ],
)
def test_missing_target(target, sentence):
    if target == "Y":
        sentence = sentence.replace(r" \(did you mean 'y'\?\)", "")
    refused(sentence, table(), target)


def test_targets_that_are_no_classes():
    refused("target 'y' must be a column of at least two classes, got only '1'", table(y=[1] * 60))
    refused("at least two classes, got nothing", table(y=[None] * 60))
    many = table(300, y=np.linspace(0, 1, 300))
    refused(r"at most 100 classes \(this is a library for classifiers\), got 300", many)
    rare = table(y=["a"] * 30 + ["b"] * 28 + ["c"] * 2)
    refused("with at least 3 rows of each class, got 2 of 'c'", rare)


def test_constant_columns_are_left_out():
    data = load_table(table(same=3, word="x"), "y")
    assert dict(data.schema.dropped) == {
        "same": "it is '3' in every training row",
        "word": "it is 'x' in every training row",
    }


def test_nothing_left_to_learn_from():
    frame = pd.DataFrame({"a": [1] * 40, "name": [f"n{i}" for i in range(40)], "y": [0, 1] * 20})
    refused("at least two features besides the target, got a: it is .*; name: it is text", frame)
    refused("at least two features besides the target, got no other column", frame[["y"]])


def test_half_of_everything_missing():
    rng = np.random.default_rng(0)
    frame = table(600)
    for name in ("size", "colour"):
        frame[name] = frame[name].where(rng.random(600) < 0.5)
    data = load_table(frame, "y")
    assert {"size: missing", "colour: missing"} <= set(data.names)
    assert bool(torch.isfinite(data.train.x).all())


def test_a_category_unseen_at_training():
    schema = load_table(table(), "y").schema
    new = table().assign(colour="mauve")
    sentence = (
        r"^apply_schema: column 'colour' must be one of blue, green, red, got 'mauve' in row 0 and "
        r"59 more\.$"
    )
    with pytest.raises(InputError, match=sentence):
        apply_schema(schema, new)


def test_values_missing_for_the_first_time():
    schema = load_table(table(), "y").schema
    new = table()
    new.loc[4, "size"] = None
    with pytest.raises(InputError, match=r"'size' must be without missing values, got .* row 4"):
        apply_schema(schema, new)


def test_later_tables_that_do_not_fit():
    schema = load_table(table(), "y").schema
    with pytest.raises(InputError, match="the table must be one with column 'colour', got size, y"):
        apply_schema(schema, table().drop(columns="colour"))
    with pytest.raises(
        InputError, match="'size' must be a number in every row, got 'big' in row 0"
    ):
        apply_schema(schema, table(size="big"))
    with pytest.raises(InputError, match="target 'y' must be one of 0, 1, got '2' in row 0"):
        apply_schema(schema, table(y=2))


def test_a_hundred_thousand_categories():
    rng = np.random.default_rng(0)
    rows = 200_000
    frame = pd.DataFrame(
        {
            "size": rng.random(rows),
            "even": rng.integers(0, 100_000, rows).astype(str),
            "steep": rng.zipf(1.5, rows).clip(max=10**5).astype(str),
            "y": rng.integers(0, 2, rows),
        }
    )
    frame["even"] = "c" + frame["even"]
    frame["steep"] = "c" + frame["steep"]
    data = load_table(frame, "y")
    reason = dict(data.schema.dropped)["even"]
    assert reason.startswith("it is text or an identifier, ")
    steep = data.schema.columns[1]
    assert len(steep.categories) == 50
    assert steep.other == "other"
    assert {"c1", "c2", "c3"} <= set(steep.categories)
    wide = load_table(frame, "y", kinds={"even": "category"}, max_categories=10)
    assert len(wide.schema.columns[1].categories) == 10


def test_duplicate_column_names(tmp_path):
    sentence = r"different names \(rename or remove one\), got \['size'\]"
    frame = table()
    frame.columns = ["size", "size", "y"]
    refused(sentence, frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    refused(sentence, tmp_path / "t.csv")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table([[1.0, 2.0], [0, 1], [0, 1]], names=["size", "size", "y"]), tmp_path / "p"
    )
    refused(sentence, tmp_path / "p")


def test_numbers_with_a_typo_among_them_are_not_taken_for_text():
    cells = [str(i) for i in range(60)]
    cells[17] = "12O"
    refused(
        "column 'n' must be a number or empty in every row, .* got '12O' in row 17", table(n=cells)
    )
    data = load_table(table(n=cells), "y", drop=["n"])
    assert "n" not in data.names


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([np.inf, *range(59)], "column 'z' must be finite, got infinity in row 0"),
        ([[1, 2]] * 60, r"column 'z' must be numbers or texts, got \[1, 2\] in row 0"),
        (
            pd.to_timedelta(range(60), unit="s"),
            "column 'z' must be numbers, texts or dates, got time",
        ),
        ([1j] * 60, "column 'z' must be numbers, texts or dates, got complex128"),
    ],
)
def test_cells_that_are_no_cells(column, sentence):
    refused(sentence, table(z=column))


def test_nested_columns_in_parquet(tmp_path):
    table(z=[[1, 2]] * 60).to_parquet(tmp_path / "t.parquet")
    refused("column 'z' must be numbers, texts or dates, got list<", tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "t.csv must be a table, got an empty file"),
        (b"\x1c\n\x1c\n", "t.csv must be a table, got an empty file"),
        (b"a,b,y\n", "the table must be one with rows, got none"),
        (
            b"a,b,y\n1,2,0\n1,2,3,4\n",
            "t.csv must be readable CSV or Parquet .*Expected 3 columns, got 4",
        ),
        (b"PK\x03\x04zzzz", "t.csv must be CSV or Parquet .*, got a zip archive or spreadsheet"),
        (b"PAR1zzzzzzzzzzzz", "t.csv must be readable CSV or Parquet .*, got an error: "),
        (
            "größe,y\n1,0\n".encode("latin-1"),
            r"t.csv must be UTF-8 or UTF-16 text \(or read it with",
        ),
        (
            b"a,b,y\n" + b"1,2,0\n" * 20000 + b"\xe9,2,0\n",
            "t.csv must be readable .*, got an error: ",
        ),
        (b'a,b,y\n"1,2,0\n', "t.csv must be readable|target|one with rows"),
    ],
)
def test_files_that_are_no_tables(tmp_path, content, sentence):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    refused(sentence, path)


def test_a_header_longer_than_the_sample(tmp_path, monkeypatch):
    monkeypatch.setattr("r2et.data.csv_file.SAMPLE", 16)
    table().rename(columns={"size": "size " * 10}).to_csv(tmp_path / "t.csv", index=False)
    assert load_table(tmp_path / "t.csv", "y").names[0] == ("size " * 10).strip()


@pytest.mark.parametrize("source", ["nowhere.csv", ".", 3, None, {"a": [1]}, np.zeros((3, 3))])
def test_sources_that_are_no_tables(source):
    refused("source must be (a file that exists|a path or a DataFrame), got ", source)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"kinds": {"size": "text"}},
            "kinds must be of number, integer, .*, or a Column, got text",
        ),
        ({"kinds": {"sise": "number"}}, r"column name must be one of .*did you mean 'size'"),
        (
            {"kinds": {"colour": "number"}},
            "'colour' must be a number in every row, got 'red' in row 0",
        ),
        ({"kinds": {"colour": "date"}}, "'colour' must be a date such as .*, got 'red' in row 0"),
        ({"kinds": {"colour": "binary"}}, "column 'colour' must be two labels, got "),
        ({"kinds": {"size": Column("z", "number")}}, "kinds must be a Column named 'size', got z"),
        ({"drop": "size"}, "drop must be a list of column names, got size"),
        ({"drop": ["sise"]}, "column name must be one of .*, got sise"),
        ({"drop": ["y"]}, "target must be no feature or dropped column, got y"),
        ({"positive": "2"}, "positive must be one of 0, 1, got 2"),
        ({"parts": (0.5, 0.5, 0.5)}, "parts must be three positive shares"),
        ({"parts": (1.0, 0.0, 0.0)}, "parts must be three positive shares"),
        ({"seed": -1}, "seed must be a whole number from 0, got -1"),
        ({"k": 4}, "k must be in 1..3 for 4 features, got 4"),
        ({"k": 0}, "k must be in 1..3 for 4 features, got 0"),
        ({"max_categories": 1}, "max_categories must be a whole number from 2, got 1"),
    ],
)
def test_bad_settings(settings, sentence):
    refused(sentence, table(), **settings)


BIG = """
import os, sys
from pathlib import Path
import pyarrow.csv, pyarrow.parquet
from r2et.data import load_table

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

for path in sys.argv[1:]:
    if not os.fork():  # each from the same start, and the imports only once
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far was that of the imports
        base = memory("VmRSS")
        data = load_table(path, "y")
        rows = len(data.train.y) + len(data.val.y) + len(data.test.y)
        print(rows, len(data.names), memory("VmHWM") - base, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
def test_a_million_rows_in_bounded_memory(tmp_path):
    """Beside the features, and the text of a CSV, only a few columns are ever held.

    Text takes longest to write and read, so it proves the same with fewer rows; what is not in
    proportion to them, some 90 MB, is what the reader of text takes for itself.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read from /proc")
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    rows, fewer = 10**6, 200_000
    columns = {f"n{i}": rng.integers(0, 10**4, rows) / 10**4 for i in range(6)}
    columns |= {f"i{i}": rng.integers(0, 1000, rows) for i in range(4)}
    words = pa.array([f"label {j}" for j in range(10)])
    for i in range(4):
        columns[f"c{i}"] = words.take(pa.array(rng.integers(0, 10, rows)))
    notes = pa.array(rng.integers(0, 10**9, rows)).cast("string")
    columns["text"] = pa.compute.binary_join_element_wise("note", notes, " ")
    columns["y"] = rng.integers(0, 2, rows)
    made = pa.table(columns)
    text, parquet = tmp_path / "big.csv", tmp_path / "big.parquet"
    pa.csv.write_csv(made.slice(0, fewer), text)
    pa.parquet.write_table(made, parquet)

    command = [sys.executable, "-c", BIG, str(text), str(parquet)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [shape for *shape, _ in found] == [[fewer, 50], [rows, 50]]
    # A forked process copies what it touches of its imports, about 30 MB.
    extra = (2 * text.stat().st_size + 120e6, 40e6)
    for (count, features, grown), more in zip(found, extra, strict=True):
        result = count * features * 4
        print(f"{grown / 1e6:.0f} MB for {result / 1e6:.0f} MB of features")
        assert result < grown < result + 300 * count + more
