"""Tables, mutated: only our own errors, whether they are trained on or read by a schema."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutated import mutated_bytes, only_ours
from r2et.audit.loading import LoadedModel, open_rows
from r2et.data import apply_schema, load_table
from r2et.models import MLP
from r2et.reason.codes import reason_codes

ROWS = [
    (20 + i, i / 7 - 3, "abc"[i % 3], f"20{i % 30:02d}-03-0{1 + i % 9}", i % 2) for i in range(40)
]
FRAME = pd.DataFrame(ROWS, columns=["age", "pay", "job", "since", "paid"])
STRANGE = (
    "", "NaN", "inf", "-inf", "1e999", "9" * 400, "1,5", "1.234,5", "true", "=1+1", "\0", '"', "'",
    "\u2028", "2020-13-45", "\ufeff", "\ud800", "None", "\\N", "1_000", "0x1F",
)  # fmt: skip
CELLS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(STRANGE),
    st.floats().map(str),
    st.integers().map(str),
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text(FRAME.to_csv(index=False))
    return load_table(path, target="paid").schema


def read(path, schema):
    """Every reader of a table."""

    def learn():
        data = load_table(path, target="paid")
        assert all(part.x.isfinite().all() for part in data.parts)

    only_ours(learn)
    only_ours(lambda: apply_schema(schema, path))
    only_ours(lambda: open_rows(LoadedModel("m", MLP(4)), str(path), "paid"))


@given(st.data())
def test_bytes_of_csv_files(schema, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(data.draw(mutated_bytes(FRAME.to_csv(index=False).encode())))
    read(path, schema)


@given(st.data())
def test_cells_of_csv_files(schema, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    cells = [list(FRAME.columns), *(list(map(str, row)) for row in ROWS)]
    for _ in range(data.draw(st.integers(1, 4))):
        row, column = data.draw(st.integers(0, len(ROWS))), data.draw(st.integers(0, 4))
        cells[row][column] = data.draw(CELLS)
    sign = data.draw(st.sampled_from([",", ";", "\t", "|"]))
    text = "\n".join(sign.join(row) for row in cells)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    read(path, schema)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow"])
@given(data=st.data())
def test_bytes_of_arrow_files(suffix, schema, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("table") / f"t.{suffix}"
    {"parquet": FRAME.to_parquet}.get(suffix, FRAME.to_feather)(path)
    path.write_bytes(data.draw(mutated_bytes(path.read_bytes())))
    read(path, schema)


@given(st.data())
def test_bytes_of_arrays(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("arrays") / "rows.npz"
    kind = data.draw(st.sampled_from(["f4", "i8", ">f8", "?", "c8", "O", "U3"]))
    x = np.array([[1, 2, 3, 4]] * 5).astype(kind)
    np.savez(path, x=x, y=np.arange(5) % 2)
    if data.draw(st.booleans()):
        path.write_bytes(data.draw(mutated_bytes(path.read_bytes())))
    only_ours(lambda: open_rows(LoadedModel("m", MLP(4)), str(path)))


@given(st.data())
def test_lists_of_reason_codes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("codes") / "codes.csv"
    text = "column,code,sentence\nage,R01,Your age of {value}\npay,R02,{column} is {value}\n"
    path.write_bytes(data.draw(mutated_bytes(text.encode())))
    only_ours(lambda: reason_codes(str(path), ["age", "pay"]))
