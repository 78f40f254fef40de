"""Columns and schemas: there and back, as plain data, and what they refuse."""

import json

import numpy as np
import pytest
import torch

from r2et.data import Column, Schema
from r2et.data.values import Labels
from r2et.errors import InputError

AGE = Column("age", "integer", low=20, high=60, fill=30.0, flag=True)
PAY = Column("pay", "number", low=-1.0, high=3.0)
DAY = Column("signed", "date", low=0, high=10)
SEX = Column("sex", "binary", categories=("female", "male"))
JOB = Column("job", "category", categories=("clerk", "cook", "other"), other="other")
PET = Column("pet", "category", categories=("cat", "dog", "missing"), missing="missing")
SCHEMA = Schema((AGE, PAY, DAY, SEX, JOB, PET), "default", ("no", "yes"), (("id", "an id"),))
RAW = {
    "age": [20, 40, None],
    "pay": [3.0, 0.0, -1.0],
    "signed": ["1970-01-01", "1970-01-06", "1970-01-11"],
    "sex": ["male", "female", "male"],
    "job": ["cook", "clerk", "diver"],
    "pet": ["dog", None, "cat"],
}
X = [
    [0.0, 0, 1.0, 0.0, 1, 0, 1, 0, 0, 1, 0],
    [0.5, 0, 0.25, 0.5, 0, 1, 0, 0, 0, 0, 1],
    [0.25, 1, 0.0, 1.0, 1, 0, 0, 1, 1, 0, 0],
]


def test_encode_by_hand():
    x = SCHEMA.encode(RAW)
    assert x.dtype == torch.float32
    assert x.tolist() == X


def test_names_groups_and_steps():
    assert SCHEMA.names == (
        "age",
        "age: missing",
        "pay",
        "signed",
        "sex: male",
        "job: clerk",
        "job: cook",
        "job: other",
        "pet: cat",
        "pet: dog",
        "pet: missing",
    )
    assert SCHEMA.groups == ((5, 6, 7), (8, 9, 10))
    assert SCHEMA.steps == (1 / 40, 1.0, 0.0, 1 / 10, *(1.0,) * 7)
    assert Column("owner", "binary", categories=("no", "Yes")).features == ("owner",)


def test_deviations_are_in_raw_units_and_leave_missing_values_out():
    found = SCHEMA.deviations(torch.tensor(X))
    assert list(found) == ["age", "pay", "signed"]
    assert found["age"] == pytest.approx(np.std([20, 40]))  # the third was missing
    assert found["pay"] == pytest.approx(np.std([3.0, 0.0, -1.0]))
    assert found["signed"] == pytest.approx(np.std([0, 5, 10]))


def test_decode_by_hand():
    decoded = [SCHEMA.decode(torch.tensor(row)) for row in X]
    assert decoded[0] == {
        "age": 20.0,
        "pay": 3.0,
        "signed": "1970-01-01",
        "sex": "male",
        "job": "cook",
        "pet": "dog",
    }
    assert decoded[1]["pet"] == "missing"
    assert decoded[2]["age"] is None
    assert decoded[2]["job"] == "other"


def test_a_perturbed_row_still_reads():
    row = torch.tensor([0.5 + 1 / 400, 0.1, 0.3, 0.52, 0.6, 0.4, 0.7, -0.2, 0.3, 0.2, 0.1])
    got = SCHEMA.decode(row)
    assert got == {
        "age": 40.1,
        "pay": 0.2,
        "signed": "1970-01-06",
        "sex": "male",
        "job": "cook",
        "pet": "cat",
    }


def test_json_round_trip_is_plain_data():
    text = json.dumps(SCHEMA.to_json())
    again = Schema.from_json(json.loads(text))
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert torch.equal(again.encode(RAW), SCHEMA.encode(RAW))


def test_values_outside_the_range_are_clipped():
    schema = Schema((AGE, PAY))
    x = schema.encode({"age": [0, 100], "pay": [-50.0, 50.0]})
    assert x.tolist() == [[0, 0, 0], [1, 0, 1]]


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "1"],
        [1, 2, 1],
        [1.0, 2.0, 1.0],
        np.array([1, 2, 1]),
        np.array([1.0, 2.0, 1.0]),
        np.array(["1", "2.0", "1"]),
        [" 1", "2.00", 1.0],
        Labels(("2", "1"), np.array([1, 0, 1], dtype=np.int32)),
    ],
)
def test_a_label_is_the_same_however_it_is_written(cells):
    schema = Schema((Column("grade", "category", categories=("1", "2")),))
    assert schema.encode({"grade": cells}).tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("nothing", [None, float("nan"), np.nan, np.datetime64("NaT")])
def test_every_form_of_nothing_is_missing(nothing):
    x = Schema((PET, AGE)).encode({"pet": ["cat", nothing], "age": [20, nothing]})
    assert x[1].tolist() == [0, 0, 1, 0.25, 1]


def test_dates_come_as_text_or_as_numpy_dates():
    days = np.array(["1970-01-06T12:00", "1970-01-01"], dtype="datetime64[ns]")
    assert Schema((DAY,)).encode({"signed": days}).flatten().tolist() == pytest.approx([0.55, 0])


def test_booleans_are_labels():
    schema = Schema((Column("old", "binary", categories=("False", "True")),))
    assert schema.encode({"old": np.array([True, False])}).tolist() == [[1], [0]]
    assert schema.encode({"old": [True, False]}).tolist() == [[1], [0]]


def test_target_codes():
    assert SCHEMA.encode_target(["yes", "no"]).tolist() == [1, 0]
    assert SCHEMA.encode_target(["yes", "no"]).dtype == torch.int64


BAD_CELLS = [
    (
        {"age": ["x"]},
        r"^Schema.encode: column 'age' must be a number in every row, got 'x' in row 0",
    ),
    (
        {"pay": [None]},
        r"column 'pay' must be without missing values, got a missing value in row 0\.",
    ),
    ({"pay": [np.inf]}, r"column 'pay' must be finite, got infinity in row 0\."),
    ({"pay": ["2020-01-01"]}, r"column 'pay' must be a number in every row"),
    ({"pay": [[1]]}, r"column 'pay' must be numbers or texts, got \[1\] in row 0\."),
    ({"signed": ["03/04/2021"]}, r"column 'signed' must be a date such as 2024-02-29 in every row"),
    ({"sex": ["diver"]}, r"column 'sex' must be one of female, male, got 'diver' in row 0\."),
    ({"sex": [None]}, r"column 'sex' must be without missing values"),
    ({"pet": ["cow"]}, r"column 'pet' must be one of cat, dog, missing, got 'cow' in row 0\."),
    ({"pet": ["cat", "cat"]}, r"column 'pet' must be 1 rows, got 2\."),
]


@pytest.mark.parametrize(("change", "sentence"), BAD_CELLS)
def test_bad_cells_get_one_sentence(change, sentence):
    raw = {name: cells[:1] for name, cells in RAW.items()} | change
    with pytest.raises(InputError, match=sentence):
        SCHEMA.encode(raw)


def test_the_sentence_counts_bad_rows():
    with pytest.raises(InputError, match=r"got 'cow' in row 1 and 1 more\.$"):
        Schema((PET,)).encode({"pet": ["cat", "cow", "emu"]})


def test_a_lacking_column_is_named():
    with pytest.raises(InputError, match="the table must be one with column 'pay', got age"):
        SCHEMA.encode({"age": [1]})


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [("maybe", "'maybe' in row 1"), (None, "a missing value in row 1")],
)
def test_unknown_classes_are_refused(cell, sentence):
    with pytest.raises(
        InputError, match=f"target 'default' must be one of no, yes, got {sentence}"
    ):
        SCHEMA.encode_target(["no", cell])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Column("", "number"), "Column: name must be text"),
        (lambda: Column("a", "text"), "Column 'a': kind must be one of number, integer, date"),
        (lambda: Column("a", "number", low=1, high=1), "low and high must be finite numbers"),
        (lambda: Column("a", "number", low=float("nan")), "low and high must be finite"),
        (lambda: Column("a", "number", flag=True), "flag must be False, or True together"),
        (lambda: Column("a", "binary", categories=("x",)), "categories must be two labels"),
        (lambda: Column("a", "category", categories=("x",)), "categories must be at least two"),
        (lambda: Column("a", "category", categories=("x", "x")), "categories must be distinct"),
        (
            lambda: Column("a", "category", categories=("x", "y"), other="z"),
            "other must be None or a",
        ),
        (
            lambda: Column("a", "category", categories="abc"),
            "Column 'a': categories must be a list, got abc",
        ),
        (lambda: Column("a", "category", categories=("1", "01")), "categories must be distinct"),
        (
            lambda: Column("a", "binary", categories=("x", "y"), other_share=2),
            "other_share must be None or a share from 0 to 1, got 2",
        ),
        (lambda: Schema(()), "Schema: columns must be at least one Column"),
        (lambda: Schema((PAY, PAY)), r"Schema: columns must be named differently, got \['pay'\]"),
        (lambda: Schema((PAY,), "y", ("a",)), "classes must be two or more distinct texts"),
        (lambda: Schema((PAY,), "y", ([], [])), "classes must be two or more distinct texts"),
        (lambda: Column("a", "number", low=0, high=10**400), "Column 'a': low and high must be"),
        (lambda: Schema.from_json({}), "data must be an object with columns"),
        (lambda: Schema.from_json({"columns": [], "format": 9}), "format must be 1, got 9"),
        (
            lambda: Schema.from_json(SCHEMA.to_json() | {"dropped": ["id"]}),
            "classes and dropped must be a list, and one of pairs",
        ),
        (
            lambda: Schema.from_json(SCHEMA.to_json() | {"target": 3}),
            "target must be a column name",
        ),
        (
            lambda: Schema.from_json(SCHEMA.to_json() | {"columns": [3]}),
            "with name and kind, got 3",
        ),
        (lambda: Column.from_json({"name": "a"}), "an object with name and kind"),
        (
            lambda: Column.from_json({"name": "a", "kind": "category", "categories": 5}),
            "Column 'a': categories must be a list, got 5",
        ),
        (
            lambda: Column.from_json({"name": "a", "kind": "number", "run": 1}),
            r"data must be made of known fields, got \['run'\]",
        ),
        (lambda: SCHEMA.decode(torch.zeros(3)), r"row must be of shape \(11,\), got \(3,\)"),
    ],
)
def test_bad_schemas_get_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_a_label_that_fills_the_screen_is_cut():
    long = Column("job", "category", categories=("x" * 9000, "cook"))
    with pytest.raises(InputError) as caught:
        Schema((long,)).encode({"job": ["diver"]})
    assert len(str(caught.value)) < 2000
