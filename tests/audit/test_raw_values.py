"""Changes in the words and units of a table's columns."""

from dataclasses import dataclass

import pytest
import torch

from credit_table import credit
from r2et import audit
from r2et.audit.raw_values import changed_columns
from r2et.data import Column, Schema
from r2et.errors import InputError
from r2et.models import MLP
from r2et.region import L2

SCHEMA = Schema(
    (
        Column("age", "integer", low=18, high=98),
        Column("income", "number", low=0, high=50_000, fill=20_000.0, flag=True),
        Column("since", "date", low=18_000, high=19_000),
        Column("employment", "category", categories=("A71", "A73", "A75")),
        Column("sex", "binary", categories=("female", "male")),
    )
)
#                  age   income     since  employment   sex
X = torch.tensor([[0.25, 0.5, 0.0, 0.100, 0.0, 0.0, 1.0, 0.0]])[0]
PLACES = {"age": 0, "income": 1, "missing": 2, "since": 3, "A71": 4, "A73": 5, "A75": 6, "sex": 7}


def changed(**values):
    x_adv = X.clone()
    for name, value in values.items():
        x_adv[PLACES[name]] = value
    return changed_columns(SCHEMA, X, x_adv)


def only(**values):
    (change,) = changed(**values)
    return tuple(change.values())


def test_a_row_that_did_not_move_has_no_changes():
    assert changed() == []


def test_possible_changes():
    assert only(age=24 / 80) == ("age", "38", "42", "+4", True)
    assert only(A75=0.0, A73=1.0) == ("employment", "A75", "A73", "switched", True)
    assert only(sex=1.0) == ("sex", "female", "male", "switched", True)
    assert only(income=0.512) == ("income", "25000", "25600", "+600", True)
    assert only(since=0.130) == ("since", "2019-07-23", "2019-08-22", "+30 days", True)
    assert only(missing=1.0) == ("income", "25000", "missing", "", True)


def test_what_no_row_of_the_table_can_hold_is_said():
    column, before, after, change, possible = only(age=0.2525)
    assert (column, before, change, possible) == ("age", "38", "+0.2", False)
    assert after == "38.2 (no possible value: no whole number)"
    name, before, after, _, possible = only(A75=0.976, A73=0.024)
    assert (name, before, possible) == ("employment", "A75", False)
    assert after == "no possible value (0.976 of A75, 0.024 of A73)"
    assert only(A71=-0.024)[2] == "no possible value (1 of A75, -0.024 of A71)"
    assert only(sex=0.1)[2] == "no possible value (0.9 of female, 0.1 of male)"
    assert only(missing=0.3)[2] == "no possible value (0.3 of missing, 25000)"
    after = only(since=0.1004)[2]
    assert after == "2019-07-23 +0.40 days (no possible value: no whole day)"


def test_a_small_move_of_a_large_number_shows():
    assert only(income=0.5 + 2e-5)[1:4] == ("25000", "25001", "+1")
    _, before, after, change, _ = only(income=0.5 + 2e-6)
    assert (before, after, change) == ("25000", "25000.1", "+0.1")


def test_whole_numbers_of_a_wide_range_stay_whole_in_float32():
    table = Schema((Column("gain", "integer", low=0, high=99_999), Column("age", "number")))
    x = table.encode({"gain": [7298, 15024], "age": [0.5, 0.5]})
    (change,) = changed_columns(table, x[0], x[1])
    assert tuple(change.values()) == ("gain", "7298", "15024", "+7726", True)


def test_the_largest_change_comes_first():
    names = [c["column"] for c in changed(age=0.3, A75=0.0, A71=1.0, income=0.6)]
    assert names == ["employment", "income", "age"]


@dataclass(frozen=True)
class Plain:
    """No more than a region asks of a column."""

    name: str
    kind: str
    low: float
    high: float
    features: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    columns: tuple[Plain, ...]


def test_a_schema_of_somebody_else_names_its_labels_by_its_features():
    purpose = Plain("purpose", "category", 0, 1, ("purpose: car", "purpose: home"))
    table = Table((purpose, Plain("rent", "binary", 0, 1, ("rent",))))
    before, after = torch.tensor([1.0, 0, 1]), torch.tensor([0.0, 1, 0])
    words = [(c["before"], c["after"]) for c in changed_columns(table, before, after)]
    assert words == [("car", "home"), ("rent", "not rent")]


@pytest.mark.usefixtures("short_attacks")
def test_an_audit_in_a_ball_shows_raw_values(tmp_path):
    data = credit()
    torch.manual_seed(0)
    model = MLP(14).eval()
    result = audit(
        model, *data.test, k=3, region=L2(0.5), rows=8, budget="fast", minutes=1, schema=data.schema
    )
    row = next(row for row in result.result["shown"] if row["kind"] == "worst")
    last = row["steps"][-1]
    by_name = {change["column"]: change for change in last["changes"]}
    x = dict(zip(data.schema.names, row["x"], strict=True))
    assert by_name["age"]["before"] == str(round(19 + 55 * x["age"]))
    assert "no possible value" in by_name["employment"]["after"]
    assert not by_name["employment"]["possible"]
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "of them to what the table cannot hold." in page
    assert by_name["employment"]["after"] in page
    assert (
        'row">employment: A7' not in page.split("The change of the input.")[1].split("</table>")[0]
    )


def test_a_schema_of_other_rows_is_refused():
    model = MLP(8).eval()
    with pytest.raises(InputError, match="schema must be that of the rows, which have 8 features"):
        audit(model, torch.rand(4, 8), k=2, schema=credit().schema)
    with pytest.raises(InputError, match=r"schema must be a table's schema"):
        audit(model, torch.rand(4, 8), k=2, schema="age")
