"""Labels: the same however they are written, never eaten as missing, yes only beside its no."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from r2et.data import Column, Schema, apply_schema, load_table
from r2et.data.values import Labels, as_labels, tidy


def table(rows=200, **columns):
    rng = np.random.default_rng(0)
    base = {"size": rng.normal(size=rows), "y": rng.permutation(np.arange(rows) % 2)}
    return pd.DataFrame(base | columns)


def shares(data, name):
    """How often each label of a column occurs, over all rows."""
    x = torch.cat([data.train.x, data.val.x, data.test.x])
    return {n: int(x[:, i].sum()) for i, n in enumerate(data.names) if n.startswith(name)}


def one_hot(schema, source):
    return apply_schema(schema, source)[0]


def test_codes_survive_a_reader_that_takes_them_for_numbers(tmp_path):
    """pandas reads 01000 as 1000: the file and the frame must give the same features."""
    path = tmp_path / "t.csv"
    table(400, zip=[f"0{1000 + i % 5}" for i in range(400)]).to_csv(path, index=False)
    schema = load_table(path, "y").schema
    assert "zip: 01000" in schema.names
    frame = pd.read_csv(path)
    assert frame["zip"].dtype.kind == "i"
    assert torch.equal(one_hot(schema, frame), one_hot(schema, path))
    assert torch.equal(one_hot(schema, frame.astype({"zip": float})), one_hot(schema, path))


@pytest.mark.parametrize(
    "cells",
    [
        ["0.10", "0.50", "0.25", "1.00"],
        ["0.00001", "1e-05", "2.5e-05", "0.0000250"],
        ["1e+16", "10000000000000000", "3", "4.0"],
        ["-0.0", "0", "1", "+1"],
    ],
)
def test_text_and_what_pandas_makes_of_it_agree(tmp_path, cells):
    path = tmp_path / "t.csv"
    table(g=cells * 50).to_csv(path, index=False)
    numbers = pd.read_csv(path)
    kinds = {"g": "category"}
    from_text, from_numbers = (load_table(s, "y", kinds=kinds) for s in (path, numbers))
    assert from_text.schema == from_numbers.schema
    for source in (path, numbers, table(g=cells * 50)):
        assert torch.equal(one_hot(from_text.schema, source), one_hot(from_numbers.schema, path))


def test_three_spellings_of_two_numbers_are_two_labels():
    data = load_table(table(g=["1.5", "1.50", "2", "x"] * 50), "y")
    assert shares(data, "g") == {"g: 1.5": 100, "g: 2": 50, "g: x": 50}
    codes = tidy(Labels(("01", "1", "1.0", "001"), np.arange(4, dtype=np.int32)))
    assert codes.names == ("1",)
    assert codes.codes.tolist() == [0] * 4


def test_a_float32_is_written_as_short_as_it_can_be():
    cells = np.tile(np.array([0.1, 0.2, 0.7], dtype=np.float32), 80)
    frame = table(240, g=cells)
    expected = ("g: 0.1", "g: 0.2", "g: 0.7")
    schema = load_table(frame, "y", kinds={"g": "category"}).schema
    assert schema.names[-3:] == expected
    gaps = frame.assign(g=frame["g"].mask(frame.index < 20))
    for source in (gaps, gaps.astype({"g": "Float32"}), pa.table(gaps), gaps.astype(str)):
        data = load_table(source, "y", kinds={"g": "category"})
        assert data.names[1:] == (*expected, "g: missing")
        assert shares(data, "g")["g: missing"] == 20


def test_decimal_commas_are_no_part_of_a_label(tmp_path):
    path = tmp_path / "t.csv"
    frame = table(g=[0.5, 1.5, 2.5, 3.0] * 50)
    frame.to_csv(path, index=False, sep=";", decimal=",")
    data = load_table(path, "y", kinds={"g": "category"})
    assert data.names[1:] == ("g: 0.5", "g: 1.5", "g: 2.5", "g: 3")
    assert torch.equal(one_hot(data.schema, frame), one_hot(data.schema, path))


def test_times_as_labels_are_the_same_in_a_file_and_its_frame(tmp_path):
    times = pd.Timestamp("2024-01-01 10:30") + pd.to_timedelta(np.arange(200) % 3 * 3, unit="h")
    frame = table(at=times)
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load_table(frame, "y", kinds={"at": "category"})
    assert data.names[1] == "at: 2024-01-01 10:30:00"
    assert load_table(tmp_path / "t.csv", "y", kinds={"at": "category"}).schema == data.schema


def test_whole_numbers_beyond_a_float_are_the_same_as_int_and_float():
    schema = Schema((Column("g", "category", categories=("10000000000000000", "5")),))
    for cells in ([10**16, 5], [1e16, 5.0], np.array([1e16, 5]), ["1e+16", "05"]):
        assert schema.encode({"g": cells}).tolist() == [[1, 0], [0, 1]]
    assert as_labels("", "", [1e300]).names == ("1e+300",)


def test_positive_and_target_are_compared_as_numbers():
    b = np.arange(200) % 7
    data = load_table(table(b=b, y=["01", "02"] * 100), "y", positive=1)
    assert data.classes == ("02", "01")
    _, y = apply_schema(data.schema, table(b=b, y=[1, 2] * 100))
    assert y.tolist() == [1, 0] * 100


def test_an_audit_full_of_unknown_labels_warns():
    rng = np.random.default_rng(0)
    jobs = rng.choice([f"job {i}" for i in range(80)], 400)
    data = load_table(table(400, job=jobs), "y")
    column = data.schema.columns[1]
    share = float(data.train.x[:, data.names.index("job: other")].mean())
    assert column.other_share == pytest.approx(share)
    assert Schema.from_json(data.schema.to_json()) == data.schema
    one_hot(data.schema, table(400, job=jobs))  # as at training: no warning
    sentence = (
        r"^apply_schema: column 'job' is 'other' in 400 of 400 rows, but was in \d+\.\d% at "
        r"training: its labels may be written otherwise\.$"
    )
    with pytest.warns(UserWarning, match=sentence):
        one_hot(data.schema, table(400, job=[j.upper() for j in jobs]))
    one_hot(data.schema, table(2, job="new"))  # two rows prove nothing


def test_an_audit_in_another_unit_warns():
    data = load_table(table(b=np.arange(200) % 7), "y")
    later = table(b=3).assign(size=lambda t: t["size"] * 1000)
    with pytest.warns(
        UserWarning, match=r"'size' is outside its training range in \d+ of 200 rows"
    ):
        one_hot(data.schema, later)


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_classes_that_look_like_missing_values_stay(tmp_path, form):
    grades = np.array(["None", "Mild", "Severe"])[np.arange(200) % 3]
    signs = np.array(["+", "-"])[np.arange(200) % 2]
    for y, classes in ((grades, ("Mild", "None", "Severe")), (signs, ("-", "+"))):
        source = table(b=np.arange(200) % 7, y=y)
        if form == "csv":
            source.to_csv(tmp_path / "t.csv", index=False)
            source = tmp_path / "t.csv"
        data = load_table(source, "y")
        assert data.classes == classes
        assert sum(len(p.y) for p in (data.train, data.val, data.test)) == 200
        assert len(apply_schema(data.schema, source)[1]) == 200


def test_in_a_file_a_dash_is_missing_and_in_a_frame_it_is_a_label(tmp_path):
    frame = table(g=["+", "-", "0", "."] * 50)
    assert set(shares(load_table(frame, "y"), "g")) == {"g: +", "g: -", "g: 0", "g: ."}
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    from_file = load_table(path, "y")
    assert shares(from_file, "g") == {"g: +": 50, "g: 0": 50, "g: missing": 100}
    asked = load_table(path, "y", missing=())
    assert set(shares(asked, "g")) == {"g: +", "g: -", "g: 0", "g: ."}
    # Each schema reads the other form as it read its own.
    for data in (from_file, asked, load_table(frame, "y")):
        assert torch.equal(one_hot(data.schema, frame), one_hot(data.schema, path))


def test_numbers_and_words_may_mean_missing():
    cells = np.where(np.arange(200) % 10 == 0, -999, np.arange(200) % 50)
    for source in (table(n=cells), pa.table(table(n=cells)), table(n=cells.astype(float))):
        data = load_table(source, "y", missing=[-999, "refused"])
        column = data.schema.columns[1]
        assert (column.low >= 0, column.flag) == (True, True)
        assert data.schema.dialect.missing == ("-999", "refused")
        again = Schema.from_json(data.schema.to_json())
        assert torch.equal(one_hot(again, source), one_hot(data.schema, source))
    words = np.where(np.arange(200) % 10 == 0, "refused", cells.astype(str))
    data = load_table(table(n=words), "y", missing=["-999", "refused"])
    assert data.schema.columns[1].kind == "integer"


@pytest.mark.parametrize(
    ("labels", "pair"),
    [
        ((1, 2), ("1", "2")),
        ((0, 1), ("0", "1")),
        ((-1, 1), ("-1", "1")),
        (("yes", "No"), ("No", "yes")),
        (("T", "F"), ("F", "T")),
        (("y", "n"), ("n", "y")),
        (("y", "x"), ("x", "y")),
        (("t", "z"), ("t", "z")),
        (("yes", "perhaps"), ("perhaps", "yes")),
    ],
)
def test_yes_is_one_only_beside_its_no(labels, pair):
    frame = table(s=np.array(labels, dtype=object)[np.arange(200) // 2 % 2])
    column = load_table(frame, "y").schema.columns[1]
    assert column.categories == pair
    plain = pair not in {("1", "2"), ("x", "y"), ("t", "z"), ("perhaps", "yes")}
    assert column.features == (("s",) if plain else (f"s: {pair[1]}",))
    assert load_table(frame.drop(columns="y").assign(b=np.arange(200) % 7), "s").classes == pair
