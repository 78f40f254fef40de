"""Numbers as text: which mark is the decimal one, thousands, percent, and codes that are none."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import torch

from r2et.data import Schema, apply_schema, load_table
from r2et.data.numerals import Marks, is_number, rewritten, same_number, spelling
from r2et.errors import InputError

EUROPE = Marks(",", ".")
ALL = (0.98, 0.01, 0.01)  # nearly every row is a training row


def write(path, separator=";", **columns):
    """A text file of these columns, with two more that hold no mark, and a target."""
    rows = len(next(iter(columns.values())))
    columns |= {"b": [str(i % 7) for i in range(rows)], "y": ["no", "yes"] * (rows // 2)}
    lines = [separator.join(columns), *map(separator.join, zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(sentence, act, *settings, **named):
    with pytest.raises(InputError) as caught:
        act(*settings, **named)
    assert re.search(sentence, str(caught.value)), caught.value


def scale(data, name):
    column = next(c for c in data.schema.columns if c.name == name)
    return column.kind, column.low, column.high


THOUSANDS = [f"{12 + i}.{i:03}" for i in range(60)]  # 12.000 to 71.059
RATES = [f"{i % 9},{i % 83:02}" for i in range(60)]


def test_one_column_with_a_comma_decides_for_the_whole_file(tmp_path):
    data = load_table(write(tmp_path / "t.csv", rate=RATES, income=THOUSANDS), "y", parts=ALL)
    assert scale(data, "rate")[0] == "number"
    kind, low, high = scale(data, "income")
    assert kind == "integer"
    assert 12_000 <= low < 14_000
    assert 70_000 < high <= 71_059


@pytest.mark.parametrize("cells", [THOUSANDS, [c.replace(".", ",") for c in THOUSANDS]])
def test_three_digits_after_every_mark_are_refused_until_somebody_says(tmp_path, cells):
    path = write(tmp_path / "t.csv", income=cells)
    sentence = (
        r"^load_table: t.csv must be a file whose numbers show which mark is the decimal one "
        r"\(or give decimal=\), got '12[.,]000' in column 'income', which can be read both ways\.$"
    )
    refused(sentence, load_table, path, "y")
    mark = cells[0][2]
    small, large = (load_table(path, "y", decimal=d) for d in (mark, ".,".replace(mark, "")))
    assert scale(small, "income")[2] < 100
    assert scale(large, "income")[2] > 60_000
    assert scale(load_table(path, "y", thousands=mark), "income") == scale(large, "income")
    dropped = load_table(write(tmp_path / "u.csv", income=cells, c=RATES[::-1]), "y", drop=["c"])
    assert scale(dropped, "income")[2] == scale(small if mark == "," else large, "income")[2]


def test_two_decimal_marks_in_one_file_are_refused(tmp_path):
    points = [c.replace(",", ".") for c in RATES]
    path = write(tmp_path / "t.csv", rate=RATES, other=points)
    sentence = r"same decimal mark \(or give decimal=\), got '0,00' in .*'rate' and '0.00' in .*'ot"
    refused(sentence, load_table, path, "y")


@pytest.mark.parametrize(
    ("cells", "marks"),
    [
        (["0,123", "1,234"], ","),
        (["1.234,5", "6"], ","),
        (["1.234.567", "1.234"], ","),
        (["1234,567", "1"], ","),
        (["1,5e3", "2"], ","),
        ([",5", "1.000"], ","),
        (["12,5 %", "1,234%"], ","),
        (["0.123", "1.234"], "."),
        (["1,234.5", "6"], "."),
        (["1,234,567", "1,234"], "."),
    ],
)
def test_what_proves_a_decimal_mark(tmp_path, cells, marks):
    data = load_table(write(tmp_path / "t.csv", n=cells * 30), "y")
    assert data.schema.dialect.decimal == ("," if marks == "," else None)
    assert data.schema.columns[0].kind == "binary"


def test_quoted_thousands_in_a_file_with_commas(tmp_path):
    cells = [f'"{c.replace(".", ",")}"' for c in THOUSANDS]
    rates = [c.replace(",", ".") for c in RATES]
    data = load_table(write(tmp_path / "t.csv", ",", income=cells, rate=rates), "y")
    assert scale(data, "income")[2] > 60_000
    refused("can be read both ways", load_table, write(tmp_path / "u.csv", ",", n=cells), "y")


def test_points_alone_are_decimal_where_cells_are_not_cut_by_semicolons(tmp_path):
    for separator in ",\t|":
        data = load_table(write(tmp_path / "t.csv", separator, n=THOUSANDS), "y")
        assert scale(data, "n")[2] < 100


def test_an_audit_refuses_what_it_cannot_tell_and_remembers_what_was_proved(tmp_path):
    frame = pd.DataFrame({"inc": range(1000, 1060), "b": [i % 7 for i in range(60)]})
    frame["y"] = ["no", "yes"] * 30
    numbers = load_table(frame.sample(frac=1, random_state=0), "y").schema
    later = tmp_path / "later.csv"
    later.write_text("inc;b;y\n1,034;2;no\n")
    refused(
        "^apply_schema: later.csv must be .*'1,034' in column 'inc'", apply_schema, numbers, later
    )
    x, _ = apply_schema(numbers, later, thousands=",")
    assert numbers.decode(x[0])["inc"] == pytest.approx(1034)

    comma = load_table(
        write(tmp_path / "t.csv", inc=[f"{i % 50},5" for i in range(60)]), "y"
    ).schema
    assert comma.dialect.marks == EUROPE
    stored = Schema.from_json(json.loads(json.dumps(comma.to_json())))
    later.write_text("inc;b;y\n1,034;2;no\n")
    assert stored.decode(apply_schema(stored, later)[0][0])["inc"] == pytest.approx(1.034)
    later.write_text("inc;b;y\n12.5;2;no\n")  # a file that shows its marks is believed
    assert stored.decode(apply_schema(stored, later)[0][0])["inc"] == pytest.approx(12.5)
    texts = pd.DataFrame({"inc": ["12,5"], "b": [2]})
    assert stored.decode(apply_schema(stored, texts)[0][0])["inc"] == pytest.approx(12.5)


def test_columns_the_schema_does_not_read_cannot_make_a_file_doubtful(tmp_path):
    schema = load_table(write(tmp_path / "t.csv", ",", n=[str(i) for i in range(60)][::-1]), "y")
    later = tmp_path / "later.csv"
    later.write_text("n;b;remark\n3;2;1.234\n")
    x, y = apply_schema(schema.schema, later)
    assert (len(x), y) == (1, None)


def test_marks_of_text_in_a_frame():
    frame = pd.DataFrame({"n": RATES, "m": THOUSANDS, "y": ["no", "yes"] * 30})
    data = load_table(frame, "y", decimal=",")
    assert scale(data, "n")[0] == "number"
    assert scale(data, "m")[2] > 60_000
    again = Schema.from_json(data.schema.to_json())
    assert torch.equal(apply_schema(again, frame)[0], apply_schema(data.schema, frame)[0])
    mixed = frame.assign(n=[RATES[0], 7.5, *RATES[2:]])
    assert data.schema.decode(apply_schema(again, mixed)[0][1])["n"] == pytest.approx(7.5)


def test_thousands_of_any_kind(tmp_path):
    swiss = write(tmp_path / "t.csv", n=[c.replace(".", "'") + ".25" for c in THOUSANDS])
    assert scale(load_table(swiss, "y", thousands="'"), "n")[2] > 60_000
    french = write(tmp_path / "t.csv", n=[c.replace(".", " ") + ",25" for c in THOUSANDS])
    assert scale(load_table(french, "y", decimal=",", thousands=" "), "n")[2] > 60_000
    wrong = write(
        tmp_path / "t.csv", n=["1.5"] + [c.replace(".", " ") + ",25" for c in THOUSANDS[1:]]
    )
    refused("got '1.5' in row 0", load_table, wrong, "y", decimal=",", thousands=" ")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"decimal": "x"}, "decimal must be '.' or ',', got x"),
        ({"thousands": "1"}, "thousands must be one character that is neither .*, got 1"),
        ({"decimal": ",", "thousands": ","}, "thousands must be one character"),
        ({"missing": "NA"}, "missing must be a list of texts or numbers, got NA"),
        ({"missing": [None]}, r"missing must be a list of texts or numbers, got \[None\]"),
    ],
)
def test_marks_that_are_none(settings, sentence):
    frame = pd.DataFrame({"a": range(6), "y": [0, 1] * 3})
    refused(f"^load_table: {sentence}", load_table, frame, "y", **settings)


def test_a_typo_among_decimal_commas_is_refused_by_name(tmp_path):
    cells = [*RATES[:17], "1,2O", *RATES[18:]]
    path = write(tmp_path / "t.csv", rate=cells)
    refused("column 'rate' must be a number or .*, got '1,2O' in row 17", load_table, path, "y")


@pytest.mark.parametrize("form", ["12%", "12 %", "12,5%"])
def test_percentages_are_numbers(tmp_path, form):
    cells = [form.replace("12", str(i % 50)) for i in range(60)]
    data = load_table(write(tmp_path / "t.csv", share=cells), "y", parts=ALL)
    kind, low, high = scale(data, "share")
    assert kind == ("number" if "," in form else "integer")
    assert (low, high) == pytest.approx((0.5, 49.5) if "," in form else (0, 49), abs=1)
    mixed = write(tmp_path / "u.csv", share=["7", *cells[1:]])
    refused("'share' must be a number .*, got '7' in row 0", load_table, mixed, "y")


@pytest.mark.parametrize("cells", [("2_10", "2_11", "3_1"), ("2023_01", "2023_02", "2023_03")])
def test_codes_with_underscores_are_labels(tmp_path, cells):
    frame = pd.DataFrame({"n": range(60), "code": list(cells) * 20, "y": [0, 1] * 30})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source in (frame, tmp_path / "t.csv"):
        assert load_table(source, "y").names[-3:] == tuple(f"code: {c}" for c in cells)


def test_spelling_agrees_with_float():
    rng = np.random.default_rng(0)
    numbers = [*rng.normal(size=50), *rng.normal(size=50) * 10.0 ** rng.integers(-30, 30, 50), 0.0]
    for number in numbers:
        for text in (repr(float(number)), f"{number:.25e}", f"+{abs(float(number))!r}"):
            once = spelling(text)
            assert float(once) == float(text)
            assert spelling(once) == once
            assert float(same_number(once)) == float(text)
    for marks in (EUROPE, Marks(".", ","), Marks(".", "'"), Marks(",", " ")):
        for number in (1234567.25, -1234.5, 999.0, 0.125):
            text = f"{number:,}".replace(",", "T").replace(".", marks.decimal)
            assert float(rewritten(text.replace("T", marks.thousands), marks)) == number


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("1.5", EUROPE),
        ("1,5", Marks()),
        ("12.34.567", EUROPE),
        ("1234.567", EUROPE),
        ("1_0", Marks()),
        ("\uff11", Marks()),
        ("0x10", Marks()),
        ("", Marks()),
        ("-", Marks()),
        ("%", Marks()),
    ],
)
def test_what_is_no_number(text, marks):
    assert not is_number(text, marks)
    assert spelling(text, marks) == text
