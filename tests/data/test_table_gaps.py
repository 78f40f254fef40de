"""Columns and calls between the usual ones: each read rightly, or refused in the house form."""

import numpy as np
import pandas as pd
import pytest
import torch

from r2et.data import Schema, apply_schema, load_table
from r2et.errors import InputError


def table(rows=200, **columns):
    rng = np.random.default_rng(0)
    base = {
        "a": rng.normal(size=rows),
        "b": rng.integers(0, 9, rows),
        "c": rng.choice(["x", "y", "z"], rows),
        "y": rng.permutation(np.arange(rows) % 2),
    }
    return pd.DataFrame(base | columns)


def refused(sentence, act, *settings, **named):
    with pytest.raises(InputError, match=sentence) as caught:
        act(*settings, **named)
    assert str(caught.value).endswith(".")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"parts": None}, "parts must be three positive shares that add up to 1, got None"),
        ({"parts": "abc"}, "parts must be three positive shares that add up to 1, got abc"),
        ({"parts": (0.5, 0.5, "x")}, "parts must be three positive shares"),
        ({"drop": None}, "drop must be a list of column names, got None"),
        ({"drop": 3}, "drop must be a list of column names, got 3"),
        ({"kinds": ["number"]}, r"kinds must be a dictionary of kinds by column name, got \['nu"),
        ({"kinds": {"a": ["number"]}}, r"kinds must be of number, .*, got \['number'\]"),
        ({"max_categories": None}, "max_categories must be a whole number from 2, got None"),
    ],
)
def test_settings_of_the_wrong_type(settings, sentence):
    refused(f"^load_table: {sentence}", load_table, table(), "y", **settings)


def test_a_schema_may_come_as_plain_data():
    schema = load_table(table(), "y").schema
    x, y = apply_schema(schema.to_json(), table())
    expected = apply_schema(schema, table())
    assert torch.equal(x, expected[0])
    assert torch.equal(y, expected[1])
    for wrong in (None, "schema.json", [schema]):
        refused(
            r"^apply_schema: schema must be a Schema or its to_json\(\), got",
            apply_schema,
            wrong,
            table(),
        )
    refused(
        "unlabelled must be 'drop' or 'keep', got no",
        apply_schema,
        schema,
        table(),
        unlabelled="no",
    )


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y %H:%M"])
def test_dates_that_repeat_but_are_not_iso_are_left_out_by_name(form):
    days = pd.Timestamp("2024-01-28") + pd.to_timedelta(np.arange(200) % 9, unit="D")
    data = load_table(table(due=days.strftime(form)), "y")
    assert dict(data.schema.dropped) == {"due": "its dates are not written as in 2024-02-29"}
    asked = load_table(table(due=days.strftime(form)), "y", kinds={"due": "category"})
    assert sum(name.startswith("due") for name in asked.names) == 9


def test_a_word_among_few_numbers_is_refused_and_labels_that_are_numbers_are_not():
    cells = [str(i % 12) for i in range(200)]
    cells[30] = "ten"
    refused(
        "'n' must be a number or empty .*, got 'ten' in row 30", load_table, table(n=cells), "y"
    )
    data = load_table(table(n=cells), "y", kinds={"n": "category"})
    assert "n: 11" in data.names
    wards = np.where(np.arange(200) % 4 == 0, "X", (np.arange(200) % 9).astype(str))
    assert "n: X" in load_table(table(n=wards), "y").names


def test_numbers_too_long_for_a_float_are_identifiers(tmp_path):
    numbers = [2**64 - 1 - 7 * i for i in range(200)]
    for frame in (table(n=np.array(numbers, dtype=np.uint64)), table(n=[str(n) for n in numbers])):
        frame.to_csv(tmp_path / "t.csv", index=False)
        for source in (frame, tmp_path / "t.csv"):
            reason = dict(load_table(source, "y").schema.dropped)["n"]
            assert reason == "it is an identifier, with numbers too long to tell apart"
    few = table(n=np.array([2**60, 2**61], dtype=np.int64)[np.arange(200) // 2 % 2])
    assert load_table(few, "y").schema.columns[-1].kind == "binary"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_times_with_a_zone_are_the_same_in_a_frame_its_file_and_utc(tmp_path, zone):
    hours = pd.to_timedelta(np.arange(200) * 7, unit="h")
    utc = pd.Timestamp("2024-03-01 23:30") + hours
    frame = table(at=utc.tz_localize("UTC").tz_convert(zone))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    expected = load_table(table(at=utc), "y")
    for source in (frame, tmp_path / "t.csv", tmp_path / "t.parquet"):
        data = load_table(source, "y")
        assert data.schema.columns[-1].kind == "date"
        assert data.schema.columns[-1].low == pytest.approx(expected.schema.columns[-1].low)
        assert data.schema.columns[-1].high == pytest.approx(expected.schema.columns[-1].high)
        for later in (frame, tmp_path / "t.csv"):
            x, _ = apply_schema(data.schema, later)
            torch.testing.assert_close(x, apply_schema(expected.schema, table(at=utc))[0])


def test_later_rows_without_a_target():
    schema = load_table(table(), "y").schema
    x, y = apply_schema(schema, table())
    gaps = table()
    gaps["y"] = gaps["y"].astype(object).mask(gaps.index < 3, None)
    with pytest.warns(UserWarning, match=r"^apply_schema: 3 of 200 rows without a y left out\.$"):
        some, classes = apply_schema(schema, gaps)
    assert torch.equal(some, x[3:])
    assert torch.equal(classes, y[3:])
    every, none = apply_schema(schema, gaps, unlabelled="keep")
    assert torch.equal(every, x)
    assert none is None
    every, none = apply_schema(schema, table(y=None))
    assert torch.equal(every, x)
    assert none is None


def test_columns_named_by_numbers_or_tuples():
    numbers = table().set_axis(range(4), axis=1)
    data = load_table(numbers, 3, drop=[0], kinds={1: "number"})
    assert data.names == ("1", "2: x", "2: y", "2: z")
    assert len(apply_schema(data.schema, numbers)[1]) == 200
    pairs = table().set_axis([("p", n) for n in "abcy"], axis=1)
    assert load_table(pairs, ("p", "y")).names[0] == "('p', 'a')"
    refused("target must be one of 0, 1, 2, 3, got 7", load_table, numbers, 7)


@pytest.mark.parametrize("content", ["a,b,y", "a,b,y\n", "\na,b,y\n\n"])
def test_a_header_and_nothing_else(tmp_path, content):
    (tmp_path / "t.csv").write_text(content)
    refused(
        "^load_table: the table must be one with rows, got none",
        load_table,
        tmp_path / "t.csv",
        "y",
    )


def test_line_breaks_and_terminal_codes_are_spelled_out():
    red = "\x1b[31mred"
    frame = table(c=["two\nlines", red, "z", "z"] * 50, y=["no\nway", "yes"] * 100)
    data = load_table(frame.rename(columns={"a": "a\rb"}), "y")
    assert all(line.isprintable() for line in str(data).split("\n"))
    assert "no\\nway" in str(data)
    assert "\\x1b[31mred" in str(data)
    assert len(str(data).split("\n")) == 6
    refused(
        r"must be one of \\x1b\[31mred, two\\nlines",
        apply_schema,
        data.schema,
        (frame.rename(columns={"a": "a\rb"}).assign(c="new")),
    )


@pytest.mark.parametrize("parts", [(0.98, 0.01, 0.01), (0.01, 0.98, 0.01), (0.01, 0.01, 0.98)])
def test_each_part_has_a_row_of_each_class(parts):
    y = ["a"] * 100 + ["b"] * 90 + ["c"] * 7 + ["d"] * 3
    for seed in range(5):
        data = load_table(table(y=y), "y", parts=parts, seed=seed, kinds={"c": "category"})
        for part in (data.train, data.val, data.test):
            assert set(part.y.tolist()) == {0, 1, 2, 3}
        assert sum(len(p.y) for p in (data.train, data.val, data.test)) == 200


def test_a_schema_written_before_marks_were_remembered_still_reads():
    old = {
        "format": 1,
        "columns": [{"name": "a", "kind": "number"}, {"name": "b", "kind": "number"}],
        "target": None,
        "classes": [],
        "dropped": [],
    }
    schema = Schema.from_json(old)
    assert schema.to_json() == old
    refused(
        "writing must be an object with decimal, thousands or missing, got 3",
        Schema.from_json,
        old | {"writing": 3},
    )
    refused(
        "decimal must be '.' or ',', got x", Schema.from_json, old | {"writing": {"decimal": "x"}}
    )
