"""load_table on good tables: what is inferred, learned, overridden, and read the same later."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from r2et.data import Column, Schema, apply_schema, load_table


def people(rows=400, seed=0):
    """A table with every kind of column."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    return pd.DataFrame(
        {
            "age": age,
            "pay": rng.normal(2000, 500, rows).round(2),
            "owner": rng.choice(["no", "yes"], rows),
            "job": rng.choice(["clerk", "cook", "nurse"], rows, p=[0.5, 0.3, 0.2]),
            "joined": np.datetime64("2020-01-01") + rng.integers(0, 900, rows),
            "default": np.where(age + rng.normal(0, 9, rows) > 50, "late", "good"),
        }
    )


def parts(data):
    return data.train, data.val, data.test


def kinds(data):
    return {c.name: c.kind for c in data.schema.columns}


def same(a, b):
    return all(
        torch.equal(p.x, q.x) and torch.equal(p.y, q.y)
        for p, q in zip(parts(a), parts(b), strict=True)
    )


def test_kinds_names_groups_and_split():
    data = load_table(people(), "default", positive="late")
    assert kinds(data) == {
        "age": "integer",
        "pay": "number",
        "owner": "binary",
        "job": "category",
        "joined": "date",
    }
    assert data.names == (
        "age",
        "pay",
        "owner",
        "job: clerk",
        "job: cook",
        "job: nurse",
        "joined",
    )
    assert data.groups == ((3, 4, 5),)
    assert data.columns == ("age", "pay", "owner", "job", "joined")
    assert data.classes == ("good", "late")
    assert [len(p.y) for p in parts(data)] == [280, 60, 60]
    assert data.train.x.dtype == torch.float32
    assert data.k == 6
    assert load_table(people(), "default", k=3).k == 3


def test_scale_comes_from_the_training_rows_only():
    frame = people()
    data = load_table(frame, "default")
    assert data.train.x.amin(0).tolist() == [0] * 7
    assert data.train.x.amax(0).tolist() == [1] * 7
    # Blow up a row of the test part: the scale must not move, the row is clipped.
    x, _ = apply_schema(data.schema, frame)
    row = int((x == data.test.x[0]).all(1).nonzero()[0])
    frame.loc[row, "pay"] = 1e9
    wild = load_table(frame, "default")
    assert wild.schema == data.schema
    assert float(wild.test.x[0, 1]) == 1.0


@pytest.mark.parametrize("seed", [0, 1])
def test_a_table_drawn_with_the_same_seed_is_not_split_by_its_own_numbers(seed):
    column = np.random.default_rng(seed).random(1000)
    frame = pd.DataFrame({"a": column, "b": column[::-1], "y": np.arange(1000) % 2})
    data = load_table(frame, "y", seed=seed)
    means = [float(part.x[:, 0].mean()) for part in data.parts]
    assert means == pytest.approx([0.5] * 3, abs=0.1)  # six standard errors of the smallest


def test_the_split_keeps_the_classes_and_repeats_under_a_seed():
    data = load_table(people(), "default")
    share = [float(p.y.float().mean()) for p in parts(data)]
    assert max(share) - min(share) < 0.02
    assert same(data, load_table(people(), "default"))
    assert not same(data, load_table(people(), "default", seed=1))
    half = load_table(people(), "default", parts=(0.5, 0.25, 0.25))
    assert [len(p.y) for p in parts(half)] == [200, 100, 100]


@pytest.mark.parametrize("form", ["csv", "semicolon", "tab", "utf-16", "gz", "parquet", "arrow"])
def test_every_form_of_the_table_gives_the_same_data(tmp_path, form):
    frame = people()
    path = tmp_path / "people.csv"
    if form == "arrow":
        import pyarrow

        source = pyarrow.Table.from_pandas(frame)
    elif form == "parquet":
        source = tmp_path / "people.parquet"
        frame.to_parquet(source)
    else:
        how = {
            "csv": {},
            "semicolon": {"sep": ";", "decimal": ","},
            "tab": {"sep": "\t"},
            "utf-16": {"encoding": "utf-16"},
            "gz": {},
        }
        source = path if form != "gz" else tmp_path / "people.csv.gz"
        frame.to_csv(source, index=False, **how[form])
    data, expected = load_table(source, "default"), load_table(frame, "default")
    assert data.schema.columns == expected.schema.columns
    assert data.schema.dialect.decimal == ("," if form == "semicolon" else None)
    assert same(data, expected)
    assert data.name == ("table" if form == "arrow" else "people")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8-sig"])
def test_encodings_with_and_without_a_mark(tmp_path, encoding):
    path = tmp_path / "t.csv"
    frame = people().rename(columns={"pay": "Vergütung"})
    frame.to_csv(path, index=False, encoding=encoding)
    assert load_table(path, "default").names[:2] == ("age", "Vergütung")


def test_the_schema_reads_later_files_the_same_way(tmp_path):
    frame = people()
    data = load_table(frame, "default")
    stored = Schema.from_json(json.loads(json.dumps(data.schema.to_json())))
    new = people(50, seed=1)
    new.to_csv(tmp_path / "new.csv", index=False)
    from_file, y = apply_schema(stored, tmp_path / "new.csv")
    from_frame, _ = apply_schema(stored, new)
    assert torch.equal(from_file, from_frame)
    assert y.tolist() == [int(v == "late") for v in new["default"]]
    shuffled, none = apply_schema(stored, new.drop(columns="default").iloc[:, ::-1])
    assert torch.equal(shuffled, from_file)
    assert none is None


def test_a_later_file_may_look_like_another_type(tmp_path):
    frame = people()
    frame["ward"] = np.where(frame["age"] % 3 == 0, "7", np.where(frame["age"] % 3 == 1, "8", "X"))
    data = load_table(frame, "default")
    new = frame[frame["ward"] != "X"].astype({"ward": int})
    new.to_csv(tmp_path / "new.csv", index=False)
    x, _ = apply_schema(data.schema, tmp_path / "new.csv")
    assert int(x[:, data.names.index("ward: 7")].sum()) == int((new["ward"] == 7).sum())


def test_missing_numbers_get_the_training_median_and_a_flag():
    frame = people()
    frame.loc[frame.index % 2 == 0, "pay"] = None  # half of them
    data = load_table(frame, "default")
    assert data.names[1:3] == ("pay", "pay: missing")
    column = data.schema.columns[1]
    gone = data.train.x[:, 2] == 1
    assert 0.4 < float(gone.float().mean()) < 0.6
    fill = (column.fill - column.low) / (column.high - column.low)
    torch.testing.assert_close(data.train.x[gone, 1], torch.full((int(gone.sum()),), fill))
    known = data.train.x[~gone, 1]
    assert fill == pytest.approx(float(known.quantile(0.5)), abs=1e-6)
    assert data.schema.decode(data.train.x[gone][0])["pay"] is None


def test_missing_labels_become_a_category():
    frame = people()
    frame.loc[:199, "job"] = None
    frame.loc[200:250, "owner"] = "?"
    data = load_table(frame, "default")
    assert "job: missing" in data.names
    assert "owner: missing" in data.names
    assert kinds(data)["owner"] == "category"
    assert all(bool((p.x[:, g].sum(1) == 1).all()) for p in parts(data) for g in data.groups)


def test_a_column_that_is_one_value_or_nothing_is_binary():
    frame = people()
    frame["bonus"] = [5.0 if i % 3 else None for i in range(len(frame))]
    data = load_table(frame, "default")
    assert kinds(data)["bonus"] == "binary"
    assert "bonus: 5" in data.names


def test_every_feature_varies_in_training():
    frame = people()
    frame.loc[7, "job"] = "astronaut"  # in one part only, whichever that is
    frame.loc[8, "pay"] = None
    for seed in range(8):
        data = load_table(frame, "default", seed=seed)
        assert bool((data.train.x.amin(0) < data.train.x.amax(0)).all())
        assert all(bool((p.x[:, g].sum(1) == 1).all()) for p in parts(data) for g in data.groups)


def test_a_label_outside_training_goes_to_other_with_the_rarest():
    frame = people()
    seen = set()
    frame.loc[7, "job"] = "astronaut"
    for seed in range(12):
        column = load_table(frame, "default", seed=seed).schema.columns[3]
        seen.add(column.categories)
        if "other" in column.categories:
            assert column.other == "other"
            x, _ = apply_schema(Schema((column,)), pd.DataFrame({"job": ["diver", "nurse"]}))
            assert x.tolist() == [[0, 0, 1]] * 2
    assert seen == {("clerk", "cook", "other"), ("astronaut", "clerk", "cook", "nurse")}


def test_what_carries_nothing_is_left_out_by_name(capsys):
    frame = people()
    rows = len(frame)
    frame["row"] = range(rows)
    frame["customer id"] = np.random.default_rng(0).permutation(rows) * 7 + 10**6
    frame["remark"] = [f"called on day {i} and said {i * i}" for i in range(rows)]
    frame["planet"] = "earth"
    frame["empty"] = None
    frame["due"] = [f"{i % 28 + 1:02}/03/{1600 + i}" for i in range(rows)]
    data = load_table(frame, "default", drop=["pay"])
    assert dict(data.schema.dropped) == {
        "pay": "as asked",
        "row": "it numbers the rows",
        "customer id": "it is an identifier, different in every row",
        "remark": "it is text or an identifier, 400 values in 400 rows",
        "planet": "it is 'earth' in every training row",
        "empty": "it is empty",
        "due": "its dates are not written as in 2024-02-29",
    }
    data.describe()
    said = capsys.readouterr().out
    assert "remark: left out, it is text or an identifier, 400 values in 400 rows" in said
    assert "job: category, clerk, cook, nurse\n" in said
    assert "joined: date, 2020-01-" in said


def test_what_was_inferred_can_be_overridden():
    own = Column("pay", "number", low=0, high=10_000)
    frame = people()
    frame["grade"] = frame["age"] % 4
    data = load_table(frame, "default", kinds={"grade": "category", "pay": own, "age": "number"})
    assert kinds(data)["grade"] == "category"
    assert kinds(data)["age"] == "number"
    assert data.schema.columns[1] == own
    x, _ = apply_schema(data.schema, frame)
    torch.testing.assert_close(x[:, 1], torch.tensor(frame["pay"].to_numpy() / 10_000).float())
    forced = load_table(frame, "default", kinds={"pay": "category"}, max_categories=5)
    assert len(forced.schema.columns[1].categories) == 5


def test_codes_with_leading_zeros_are_labels(tmp_path):
    frame = people()
    frame["zip"] = [f"0{i % 4}12" for i in range(len(frame))]
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source in (frame, tmp_path / "t.csv"):
        data = load_table(source, "default")
        assert "zip: 0312" in data.names


def test_targets_of_many_classes_numbers_and_booleans():
    frame = people()
    frame["grade"] = frame["age"] % 11
    many = load_table(frame, "grade", drop=["age"])
    assert many.classes == tuple(str(i) for i in range(11))
    assert sorted(set(many.train.y.tolist())) == list(range(11))
    frame["old"] = frame["age"] > 50
    assert load_table(frame, "old", drop=["age"]).classes == ("False", "True")
    frame["old"] = np.where(frame["age"] > 50, 0.0, 1.0)
    assert load_table(frame, "old", positive=0).classes == ("1", "0")


def test_rows_without_a_target_are_left_out_and_counted():
    frame = people()
    frame.loc[:9, "default"] = None
    with pytest.warns(UserWarning, match=r"^load_table: 10 of 400 rows without a default left"):
        data = load_table(frame, "default")
    assert sum(len(p.y) for p in parts(data)) == 390
    assert data.notes == ("10 of 400 rows without a default left out",)


def any_column(rng, rows):
    """A column of a random kind, with some, most or all of its values gone."""
    makers = (
        lambda: rng.normal(size=rows),
        lambda: rng.integers(-3, 9, rows),
        lambda: rng.choice(list("abc"), rows),
        lambda: rng.random(rows) > 0.5,
        lambda: np.datetime64("2020-01-01") + rng.integers(0, 50, rows),
        lambda: [f"t{i}" for i in rng.integers(0, rows * 2, rows)],
        lambda: [f"0{i}" for i in rng.integers(0, 30, rows)],
        lambda: rng.choice(["other", "missing", "x", "?", "", " x", "1.0", "1"], rows),
        lambda: rng.choice([1e-300, 1e300, 0.0], rows),
    )
    column = pd.Series(makers[rng.integers(len(makers))]())
    if rng.random() < 0.6:
        return column
    column = column if column.dtype.kind in "fM" else column.astype(object)
    return column.mask(rng.random(rows) < rng.choice([0.02, 0.5, 0.95, 1.0]), None)


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_keep_every_promise(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(20, 120))
    frame = pd.DataFrame({f"f{i}": any_column(rng, rows) for i in range(6)})
    frame["z"], frame["y"] = rng.random(rows), rng.permutation(np.arange(rows) % 3)
    frame["w"] = rng.random(rows)  # so that two features are left, whatever the others are
    frame.to_csv(tmp_path / "t.csv", index=False, sep=str(rng.choice(list(",;\t|"))))
    data = load_table(frame, "y", max_categories=5)
    from_file = load_table(tmp_path / "t.csv", "y", max_categories=5)
    assert from_file.schema == data.schema
    assert same(from_file, data)
    everything = torch.cat([p.x for p in parts(data)])
    assert 0 <= float(everything.min()) <= float(everything.max()) <= 1
    assert bool((data.train.x.amin(0) < data.train.x.amax(0)).all())
    assert all(bool((everything[:, g].sum(1) == 1).all()) for g in data.groups)
    again, _ = apply_schema(Schema.from_json(data.schema.to_json()), tmp_path / "t.csv")
    assert sorted(again.tolist()) == sorted(everything.tolist())
    people = [data.schema.decode(row) for row in everything]
    raw = {name: [person[name] for person in people] for name in people[0]}
    torch.testing.assert_close(data.schema.encode(raw), everything, rtol=0, atol=1e-5)


def test_the_callers_frame_is_untouched():
    frame = people()
    before = frame.copy(deep=True)
    load_table(frame, "default")
    pd.testing.assert_frame_equal(frame, before)


def test_pandas_types_read_alike():
    frame = people()
    plain = load_table(frame, "default")
    typed = frame.astype({"age": "Int64", "pay": "Float64", "job": "category", "owner": "string"})
    typed["joined"] = typed["joined"].dt.tz_localize("UTC")
    assert same(load_table(typed, "default"), plain)
    assert same(load_table(frame.astype({"age": object, "pay": str}), "default"), plain)


@pytest.mark.parametrize(
    ("file", "target", "least"),
    [
        ("bank/bank-additional-full.csv.gz", "y", 0.92),
        ("bank/bank-full.csv.gz", "y", 0.89),
    ],
)
def test_real_tables_at_the_first_try(file, target, least):
    folder = os.environ.get("R2ET_DATA")
    if not folder:
        pytest.skip("R2ET_DATA is not set: no real tables")
    data = load_table(Path(folder) / file, target)
    linear = LogisticRegression(max_iter=500).fit(data.train.x.numpy(), data.train.y.numpy())
    scores = linear.decision_function(data.test.x.numpy())
    assert roc_auc_score(data.test.y, scores) > least
