import csv
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from linear_person import GROUPS, NAMES, Linear, contributions, people
from r2et import reasons
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients
from r2et.files import csv_text
from r2et.reason import ReasonCode
from r2et.reason.search import Search
from r2et.region import L2

COLUMNS = ("age", "job", "debt", "years")
SETTINGS = {"groups": GROUPS, "names": NAMES, "baseline": 0.5}
BASELINE = torch.full((6,), 0.5, dtype=torch.float64)


def test_contributions_are_those_of_the_closed_form():
    x = people()
    result = reasons(Linear(), x, k=3, toward=1, **SETTINGS)
    expected = contributions(x, BASELINE)
    for person, row in zip(result, expected, strict=True):
        order = [i for i in row.argsort(descending=True).tolist() if row[i] > 0][:3]
        assert person.columns == tuple(COLUMNS[i] for i in order)
        told = torch.tensor([r.contribution for r in person.reasons], dtype=torch.float64)
        assert torch.allclose(told, row[order])
        assert [r.rank for r in person.reasons] == list(range(1, len(order) + 1))


def test_what_helps_is_never_a_reason_against():
    result = reasons(Linear(), people(60), k=4, toward=1, **SETTINGS)
    assert all(r.contribution > 0 for person in result for r in person.reasons)
    assert any(len(person.reasons) < 4 for person in result)


def test_by_default_each_row_is_told_why_it_was_decided_so():
    x = people(40)
    result = reasons(Linear(), x, **SETTINGS)
    decided = (x @ Linear().weight.detach() - 0.2 > 0).long()
    assert 0 < decided.sum() < 40
    for person, own, row in zip(result, decided.tolist(), x, strict=True):
        assert person.decision == person.toward == f"class {own}"
        assert person.probability >= 0.5
        scores = contributions(row[None], BASELINE, 1.0 if own else -1.0)[0]
        assert person.columns[0] == COLUMNS[int(scores.argmax())]


def test_only_decided_and_limit_leave_the_others_out():
    x = people(40)
    every = reasons(Linear(), x, toward=1, **SETTINGS)
    some = reasons(Linear(), x, toward=1, only_decided=True, **SETTINGS)
    assert [p.row for p in some] == [p.row for p in every if p.decision == "class 1"]
    first = reasons(Linear(), x, toward=1, only_decided=True, limit=2, **SETTINGS)
    assert [p.row for p in first] == [p.row for p in some][:2]


def test_a_cutoff_moves_the_decision_and_not_the_contributions():
    x = people(40)
    plain = reasons(Linear(), x, toward=1, **SETTINGS)
    strict = reasons(Linear(), x, toward=1, cutoff=0.9, **SETTINGS)
    assert [p.columns for p in plain] == [p.columns for p in strict]
    odds = x @ Linear().weight.detach() - 0.2
    expected = ["class 1" if p >= 0.9 else "class 0" for p in odds.sigmoid().tolist()]
    assert [p.decision for p in strict] == expected
    assert "class 1" in expected


def test_excluded_columns_are_never_named_and_this_is_said():
    x = people(30)
    full = reasons(Linear(), x, k=2, toward=1, **SETTINGS)
    left = reasons(Linear(), x, k=2, toward=1, exclude="age", **SETTINGS)
    assert left.excluded == ("age",)
    assert "Never named: age." in str(left)
    assert any("age" in person.columns for person in full)
    for before, after in zip(full, left, strict=True):
        assert "age" not in after.columns
        assert after.excluded == (("age",) if "age" in before.columns else ())


def test_words_of_columns_without_a_schema():
    x = people(1)
    person = reasons(Linear(), x, toward=1, k=4, **SETTINGS)[0]
    job = ("clerk", "cook", "none")[int(x[0, 1:4].argmax())]
    values = {r.column: r.value for r in person.reasons}
    assert values.get("job", job) == job
    assert values["years"] == f"{float(x[0, 5]):.4g}"
    usual = {r.column: r.reference for r in person.reasons}
    assert usual["years"] == "0.5 on average"


def test_a_baseline_is_a_row_a_number_or_the_mean_of_reference_rows():
    x, other = people(8), people(50, seed=3)
    row = torch.linspace(0, 1, 6, dtype=torch.float64)
    common = {"groups": GROUPS, "names": NAMES, "toward": 1, "k": 4}
    for given, expected in (
        ({"baseline": row}, row),
        ({"baseline": row.tolist()}, row),
        ({"baseline": 0.0}, torch.zeros(6, dtype=torch.float64)),
        ({"reference": other}, other.mean(0)),
        ({"baseline": "accepted", "reference": other}, accepted(other)),
        ({"baseline": "border", "reference": other}, border(other)),
    ):
        result = reasons(Linear(), x, **common, **given)
        scores = contributions(x, expected)
        for person, own in zip(result, scores, strict=True):
            told = torch.tensor([r.contribution for r in person.reasons], dtype=torch.float64)
            positive = own[own > 0].sort(descending=True).values
            assert torch.allclose(told, positive)


def accepted(rows):
    return rows[rows @ Linear().weight.detach() - 0.2 <= 0].mean(0)


def border(rows):
    near = (rows @ Linear().weight.detach() - 0.2).abs().argsort()
    return rows[near[:5]].mean(0)


def test_codes_and_sentences_of_a_list(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text(
        "column,code,sentence\nage,R1,Age of {value} ({reference})\njob,R2,\n"
        'debt,R3,"Debt, too high"\nyears,R4,{column} is {value}\n'
    )
    x = people(20)
    result = reasons(Linear(), x, toward=1, codes=path, **SETTINGS)
    seen = {r.column: r for person in result for r in person.reasons}
    assert {name: reason.code for name, reason in seen.items()} == {
        "age": "R1",
        "job": "R2",
        "debt": "R3",
        "years": "R4",
    }
    assert seen["age"].sentence == f"Age of {seen['age'].value} (0.5 on average)"
    assert seen["job"].sentence == f"job: {seen['job'].value}"
    assert seen["debt"].sentence == "Debt, too high"
    assert seen["years"].sentence == f"years is {seen['years'].value}"
    mapped = {"age": "A", "job": ("B", "x"), "debt": ReasonCode("C"), "years": "D"}
    again = reasons(Linear(), x, toward=1, codes=mapped, **SETTINGS)
    assert {r.code for person in again for r in person.reasons} == {"A", "B", "C", "D"}


def test_the_table_has_the_columns_of_the_contract(tmp_path):
    result = reasons(Linear(), people(5), toward=1, ids=list("abcde"), **SETTINGS)
    table = result.to_frame()
    first = ["row", "rank", "column", "value", "contribution", "proved", "radius", "code"]
    assert list(table.columns[:8]) == first
    assert len(table) == sum(len(person.reasons) for person in result)
    result.to_csv(tmp_path / "r.csv")
    read = pd.read_csv(tmp_path / "r.csv")
    assert read["row"].tolist() == table["row"].tolist()
    assert read["contribution"].tolist() == pytest.approx(table["contribution"].tolist())
    result.to_json(tmp_path / "r.json")
    plain = json.loads((tmp_path / "r.json").read_text())
    assert plain["people"][0]["row"] == "a"
    assert plain["shares"] == {"proved": None, "unknown": None, "broken": None}
    assert result.sentences()[0] == [r.sentence for r in result[0].reasons]


def test_an_explainer_of_ones_own():
    x = people(6)
    mean = GradientTimesInput(baseline=0.5, groups=GROUPS, reduce="signed")
    own = reasons(Linear(), x, toward=1, explainer=mean, groups=GROUPS, names=NAMES, baseline=0.5)
    usual = reasons(Linear(), x, toward=1, **SETTINGS)
    assert [p.columns for p in own] == [p.columns for p in usual]


X = people(3)
REFUSED = (
    ({"k": 0}, "reasons: k must be a positive whole number, got 0."),
    ({"toward": 2}, "reasons: toward must be a class of the model (0..1), got 2."),
    ({"toward": "bad"}, "reasons: toward must be a class of the model (0..1), got bad."),
    ({"only_decided": True}, "reasons: toward must be given with only_decided, got nothing."),
    ({"baseline": [1.0, 2.0]}, "reasons: baseline must be a row of 6 features, got 2."),
    ({"baseline": "median"}, "reasons: baseline must be 'mean', 'accepted', 'border', a row, or"),
    ({"baseline": "mean"}, "reasons: baseline must be given as a row, or with `reference` rows"),
    ({"baseline": "accepted", "reference": X}, "reasons: toward must be given for the baseline"),
    ({"exclude": "income"}, "reasons: exclude must be of columns of the table (age, job, debt,"),
    ({"exclude": COLUMNS}, "reasons: exclude must be such that a column is left, got all of them."),
    ({"codes": {"age": "R1"}}, "reasons: codes must be a list with every column that may be named"),
    ({"codes": {"age": ("R1", "{income}")}}, "reasons: codes: sentence must be a text with no"),
    ({"codes": "/no/such.csv"}, "reasons: codes must be a CSV file with the columns column, code"),
    (
        {"codes": dict.fromkeys(COLUMNS, ("R1", "{value:d}"))},
        "reasons: codes: sentence must be a text with no places but {column}, {value} and",
    ),
    (
        {"codes": dict.fromkeys(COLUMNS, ("R1", "{value!x}"))},
        "reasons: codes: sentence must be a text with no places but {column}, {value} and",
    ),
    (
        {"codes": dict.fromkeys(COLUMNS, "")},
        "reasons: codes must be a list with every column that may be named (or exclude it), got",
    ),
    ({"limit": -1}, "reasons: limit must be None or a positive whole number, got -1."),
    ({"exclude": 3}, "reasons: exclude must be a column's name, or several, got 3."),
    ({"baseline": 1e30}, "reasons: baseline must be 'mean', 'accepted', 'border', a row, or"),
    ({"groups": (0, 1)}, "reasons: groups must be lists of places in 0..5, got 0."),
    ({"groups": ((0, 9),)}, "reasons: groups must be lists of places in 0..5, got [0, 9]."),
    ({"groups": ((0, 1), (1, 2))}, "reasons: groups must be without a feature in two of them"),
    ({"names": ("a", "b")}, "reasons: names must be one for each of 6 features, got 2."),
    ({"ids": ["a"]}, "reasons: ids must be one for each of 3 rows, got 1."),
    ({"cutoff": 1.5}, "reasons: cutoff must be a probability between 0 and 1, got 1.5."),
    ({"region": 0.1}, "reasons: region must be None, or Feasible, L2 or Linf, got 0.1."),
    ({"explainer": Gradient()}, "reasons: explainer must be an Explainer with reduce='signed'"),
    (
        {"explainer": Gradient(reduce="signed")},
        "reasons: explainer must be one with a score for each of 4 columns (groups=), got one of 6",
    ),
)


@pytest.mark.parametrize(("given", "sentence"), REFUSED, ids=[str(g)[:40] for g, _ in REFUSED])
def test_bad_input_is_one_sentence(given, sentence):
    with pytest.raises(InputError) as error:
        reasons(Linear(), X, **{**SETTINGS, **given})
    assert str(error.value).startswith(sentence)


def test_rows_must_be_features_where_there_is_no_schema():
    with pytest.raises(InputError, match="rows must be a tensor of features"):
        reasons(Linear(), pd.DataFrame({"age": [1]}), **SETTINGS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "column,code,sentence\nage,R1,Too young, at {value}\n",
            "reasons: codes must be a file whose sentences with commas are in quotes, got age with",
        ),
        (
            f"column,code,sentence\n{'a' * 200_000},R1,x\n",
            "reasons: codes must be a CSV file with the columns column, code and sentence, got",
        ),
    ],
)
def test_a_list_of_codes_that_cannot_be_read_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "codes.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        reasons(Linear(), X, **{**SETTINGS, "codes": path})
    assert str(error.value).startswith(sentence)


def test_no_cell_of_a_file_is_a_formula(tmp_path):
    """Nor does a number that is below zero become a text."""
    codes = {name: (f"+{name}", "=cmd|' /C calc'!A0") for name in COLUMNS}
    told = reasons(Linear(), people(9), toward=1, codes=codes, ids=["=1+1", *range(8)], **SETTINGS)
    told.to_csv(tmp_path / "r.csv")
    with open(tmp_path / "r.csv", newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert "'=1+1" in cells
    assert "'=cmd|' /C calc'!A0" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "@")]
    assert csv_text(pd.DataFrame({"value": ["-2.5", "-x", None]})) == 'value\n-2.5\n\'-x\n""\n'


def test_names_of_rows_are_plain_data(tmp_path):
    ids = [np.int64(7), float("nan"), pd.Timestamp("2024-02-29")]
    told = reasons(Linear(), X, ids=ids, **SETTINGS)
    assert [person.row for person in told] == [7, None, "2024-02-29 00:00:00"]
    told.to_json(tmp_path / "r.json")
    told.to_csv(tmp_path / "r.csv")


def test_the_search_looks_at_few_points_first_and_then_at_all(monkeypatch):
    """What is quick finds most; what it does not find is looked for again."""
    followed, attacked = [], Search._attacked

    def seen(search, explainer, x, target, size):
        followed.append(explainer.points)
        return x.clone() if len(followed) == 1 else attacked(search, explainer, x, target, size)

    monkeypatch.setattr(Search, "_attacked", seen)
    many = IntegratedGradients(points=40, baseline=0.5, groups=GROUPS, reduce="signed")
    search = Search(Linear().double(), many, torch.ones(4, dtype=torch.bool), 2, L2(1.0), "fast")
    x = people(3)
    found = search(x, torch.ones(3, dtype=torch.long))
    assert followed[:2] == [16, 40]
    assert bool(found.found.any())
    followed.clear()
    replace(search, contributions=replace(many, points=16))(x, torch.ones(3, dtype=torch.long))
    assert set(followed) == {16}
