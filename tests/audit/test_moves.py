"""The changes a row could really have, as a command line gives them, and in words."""

import pytest

from credit_table import credit
from r2et.audit.moves import feasible_moves, words_of
from r2et.data import Column, Schema
from r2et.errors import InputError
from r2et.region import Feasible

ODD = Schema(
    (
        Column("age", "integer", low=18, high=90),
        Column("debt, total", "number", low=0, high=100),
        Column("a=b", "integer", low=0, high=9),
        Column("since", "date", low=0, high=900),
        Column("job", "category", categories=("clerk", "cook", "none")),
        Column("home, kind", "category", categories=("own", "rent")),
    )
)


@pytest.fixture(scope="module")
def schema():
    return credit().schema


def test_numbers_and_any_category(schema):
    region = feasible_moves(schema, "age=2, duration in months=3", 1)
    assert region == Feasible(schema, moves={"age": 2, "duration in months": 3}, switches=1)
    assert words_of(region) == "2 in age, 3 in duration in months and one category"


def test_named_categories_are_the_only_ones_that_switch(schema):
    region = feasible_moves(schema, "age=2,employment", None)
    assert region.columns == ("age", "employment")
    assert region.switches == 1
    assert words_of(region) == "2 in age and one category (employment)"
    region = feasible_moves(schema, "employment,housing", 2)
    assert words_of(region) == "two categories (employment, housing)"


def test_frozen_columns_stay(schema):
    region = feasible_moves(schema, None, 1, "housing,foreign")
    assert region.columns == ("employment",)


def test_commas_and_equals_signs_within_names():
    region = feasible_moves(ODD, "debt, total=2.5,a=b=1,since=30,home, kind", None)
    assert region.reaches == (("debt, total", 2.5), ("a=b", 1.0), ("since", 30.0))
    words = "2.5 in debt, total, 1 in a=b, 30 days in since and one category (home, kind)"
    assert words_of(region) == words
    assert words_of(Feasible(ODD, moves={"since": 1})) == "1 day in since"


def test_many_columns_are_not_all_named():
    columns = tuple(Column(f"c{i}", "integer", low=0, high=9) for i in range(9))
    words = words_of(Feasible(Schema(columns), moves=1))
    assert words == "1 in c0, 1 in c1, 1 in c2, 1 in c3 and so on in 5 more columns"


WRONG = [
    (
        "agee=2",
        0,
        r"moves must be of columns of the table \(age, .*\), got agee \(did you mean age",
    ),
    ("DURATION=2", 0, r"did you mean duration in months\?"),
    ("emploiment", 1, r"got emploiment \(did you mean employment\?\)"),
    ("zzz=1", 0, r"got zzz\.$"),
    ("risk=1", 0, r"of columns of the table"),
    ("age", 0, r"a number of the column's own units for age, as age=2, got age alone"),
    ("age=two", 0, r"above 0, got age=two"),
    ("age=-2", 0, r"above 0, got age=-2"),
    ("age=nan", 0, r"above 0, got age=nan"),
    ("age=2,age=3", 0, r"of each column once, got age twice"),
    ("employment=1", 1, r"without a number for employment, a column of categories"),
    ("employment", 0, r"switches must be 1 or more where columns of categories are named"),
    ("", 0, r"got nothing"),
    ("age=0.5", 0, r"audit: moves of 'age' must be 0, or at least its step of 1"),
    (None, 0, r"audit: moves, switches and frozen must be such that at least one column may"),
]


@pytest.mark.parametrize(("moves", "switches", "message"), WRONG)
def test_bad_moves_get_a_sentence(schema, moves, switches, message):
    with pytest.raises(InputError, match=message):
        feasible_moves(schema, moves, switches)


def test_a_frozen_column_has_no_moves(schema):
    with pytest.raises(InputError, match="moves must be without columns that are frozen, got age"):
        feasible_moves(schema, "age=1", 0, "age")
    with pytest.raises(InputError, match=r"frozen must be of columns .* got agee \(did you mean"):
        feasible_moves(schema, "age=1", 0, "agee")
