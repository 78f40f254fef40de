"""Reasons of rows of a real schema: words, changes, the command and the page."""

import json
import re
from dataclasses import replace
from itertools import product

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from credit_table import credit, frame
from r2et import reasons
from r2et.cli import app, main
from r2et.data import Schema
from r2et.data.column import Column
from r2et.errors import InputError
from r2et.explain import IntegratedGradients
from r2et.models import MLP
from r2et.reason.alternatives import alternatives
from r2et.reason.columns import columns_of_schema, groups_of, reason_sets
from r2et.region import Feasible, Linf
from r2et.train import fit, load_trained

FEW = {"age": 6, "duration in months": 1}  # 39 changes of a row at most


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("credit")
    data = credit()
    torch.manual_seed(0)
    network = MLP(len(data.names))
    fit(network, data, "vanilla", k=4, epochs=8, out=path, progress=False, baselines=False)
    return path


@pytest.fixture(scope="module")
def trained(folder):
    return load_trained(folder)


@pytest.fixture(scope="module")
def table():
    return frame(12, seed=9).drop(columns="risk")


def test_values_are_told_in_words_and_units(trained, table):
    result = reasons(trained, table, toward="bad", k=7)
    cells = table.to_dict("records")
    checked = set()
    for person in result:
        own = cells[person.row]
        for reason in person.reasons:
            cell = own[reason.column]
            checked.add(reason.column)
            if isinstance(cell, str):
                assert reason.value == cell
            elif pd.isna(cell):
                assert reason.value == "missing"
            elif reason.column == "amount":
                assert float(reason.value) == pytest.approx(cell, abs=0.5)
            else:
                assert reason.value == str(int(cell))
            assert reason.sentence == f"{reason.column}: {reason.value}"
    assert len(checked) >= 5


def test_contributions_add_up_to_what_tells_a_row_from_the_baseline(trained, table):
    x, _ = trained.read(table)
    base = trained.mean
    groups = groups_of(columns_of_schema(trained.schema))
    method = IntegratedGradients(points=512, baseline=base.tolist(), groups=groups, reduce="signed")
    with torch.no_grad():
        odds = trained.model(x)[:, 1] - trained.model(x)[:, 0]
        start = trained.model(base.float()[None])[0]
    total = method(trained.model, x, torch.ones(len(x), dtype=torch.long)).sum(1)
    assert torch.allclose(total, odds - (start[1] - start[0]), atol=0.02)


def test_every_change_is_tried_where_they_are_few(trained, table):
    """Against the raw table, with every change of every row written into it."""
    region = Feasible(trained.schema, moves=FEW)
    result = reasons(trained, table, toward="bad", region=region)
    low, high = limits(trained)
    moved = [
        table.iloc[[row]].assign(**{name: table[name][row] + by for name, by in change.items()})
        for row in range(len(table))
        for change in changes()
    ]
    rows = pd.concat(moved)
    rows = rows[[all(low[c] <= v[c] <= high[c] for c in FEW) for _, v in rows.iterrows()]]
    there = list(reasons(trained, rows, toward="bad", ids=rows.index))
    broken = 0
    for person in result:
        own = [p for p in there if p.row == person.row and p.decision == person.decision]
        sets = {frozenset(p.columns) for p in own}
        same = sets == {frozenset(person.columns)}
        assert person.proved == same
        assert (person.broken_by is None) == same
        broken += not same
        for reason in person.reasons:
            assert reason.proved == all(reason.column in columns for columns in sets)
            assert (reason.broken_by is None) == reason.proved
    assert 0 < broken < len(result)


@pytest.mark.slow
def test_each_lost_reason_has_a_change_of_its_own(trained):
    """The change told for the whole list may leave a reason that another one takes away."""
    rows = frame(60, seed=3).drop(columns="risk")
    region = Feasible(trained.schema, moves={"age": 15, "duration in months": 6})
    result = reasons(trained, rows, toward="bad", region=region)
    own = 0
    for person in result:
        for reason in person.reasons:
            assert (reason.broken_by is None) == reason.proved
            if reason.broken_by in (None, person.broken_by):
                continue
            own += 1
            row = rows.iloc[[person.row]].copy()
            for column, value in re.findall(r"(\w[\w ]*?) \S+ -> ([^,]+)", reason.broken_by):
                row[column] = int(value)
            there = reasons(trained, row, toward="bad")[0]
            assert there.decision == person.decision
            assert reason.column not in there.columns
    assert own > 0


def changes():
    steps = [range(-far, far + 1) for far in FEW.values()]
    return [dict(zip(FEW, by, strict=True)) for by in product(*steps)]


def limits(trained):
    columns = {c.name: c for c in trained.schema.columns}
    return {n: columns[n].low for n in FEW}, {n: columns[n].high for n in FEW}


def test_a_change_that_was_found_does_what_is_said(trained, table):
    """More changes than are all tried: found by search, told in the columns' own words."""
    region = Feasible(trained.schema, moves={"income": 900.0, "amount": 4000.0}, switches=1)
    result = reasons(trained, table, toward="bad", region=region, proofs=False)
    assert any(person.broken_by for person in result)
    for person in result:
        if person.broken_by is None:
            continue
        row = table.iloc[[person.row]].copy()
        for column, value in re.findall(r"(\w[\w ]*?) \S+ -> ([^,]+)", person.broken_by):
            kind = {c.name: c.kind for c in trained.schema.columns}[column]
            row[column] = float(value) if kind in ("number", "integer") else value
        there = reasons(trained, row, toward="bad")[0]
        assert there.decision == person.decision
        assert set(there.columns) != set(person.columns)
        assert set(person.replaced_by) == set(there.columns) - set(person.columns)


def test_an_alternative_changes_the_decision_alone(trained, table):
    result = reasons(trained, table, k=7)
    tried = 0
    for person in result:
        for reason in person.reasons:
            if reason.alternative is None:
                continue
            row = table.iloc[[person.row]].copy()
            number = not isinstance(row[reason.column].iloc[0], str)
            row[reason.column] = float(reason.alternative) if number else reason.alternative
            other = reasons(trained, row)[0].decision
            assert other != person.decision
            tried += 1
    assert tried >= 5


def test_what_was_not_tried_is_not_said_to_fail(trained, table, tmp_path):
    """Nothing is known of what a plain feature may hold; of a table, "missing" is no advice."""
    text = "values that were tried would change"
    told = reasons(trained, table, k=7)
    told.to_html(tmp_path / "table.html")
    assert text in (tmp_path / "table.html").read_text()
    assert all(r.alternative != "missing" for p in told for r in p.reasons)
    x = trained.read(table)[0]
    plain = reasons(trained.model, x, baseline=0.5)
    assert all(r.values_tried == 0 for p in plain for r in p.reasons)
    plain.to_html(tmp_path / "plain.html")
    assert text not in (tmp_path / "plain.html").read_text()


def test_the_nearest_number_is_told_to_its_last_digit():
    """Of a decision between 6250 and 6251, on the way from below and from above."""
    source = Column("amount", "integer", low=0, high=100_000)
    column = columns_of_schema(Schema((source,)))[0]
    model = torch.nn.Linear(1, 1).double()
    with torch.no_grad():
        model.weight[:], model.bias[:] = 100_000.0, -6250.5
    x = torch.tensor([[0.02], [0.9]], dtype=torch.float64)
    found = alternatives(model, x, torch.tensor([0, 1]), column)
    assert [each.value for each in found] == ["6251", "6250"]


def test_the_mean_and_test_rows_are_kept_with_the_model(trained):
    data = credit()
    assert torch.allclose(trained.mean, data.train.x.double().mean(0))
    rows = data.test.x[:4]
    accepted = reasons(trained, rows, toward="bad", baseline="accepted")
    assert accepted.baseline == "the average row that is decided otherwise"
    given = reasons(trained, rows, toward="bad", baseline="accepted", reference=data.test.x)
    assert [p.reasons for p in accepted] == [p.reasons for p in given]
    assert reasons(trained, rows, toward="bad").baseline == "the average training row"


def test_rows_of_the_schema_that_cannot_be_read(trained, table):
    with pytest.raises(InputError, match="column 'housing' must be one of"):
        reasons(trained, table.assign(housing="castle"))
    with pytest.raises(InputError, match="the table must be one with column 'age'"):
        reasons(trained, table.drop(columns="age"))
    lost = replace(trained, extra={**trained.extra, "mean": None}, seen=None)
    with pytest.raises(InputError, match="baseline must be given as a row"):
        reasons(lost, table)


def test_the_command(folder, table, tmp_path):
    data = tmp_path / "people.csv"
    table.assign(who=[f"p{i}" for i in range(len(table))]).to_csv(data, index=False)
    out, page = tmp_path / "reasons.csv", tmp_path / "page.html"
    words = ["reasons", folder, data, "--toward", "bad", "--only-refused", "--id", "who"]
    words += ["--moves", "age=2,duration in months=1", "--exclude", "foreign", "-o", out]
    shown = CliRunner().invoke(app, [*map(str, words), "--html", str(page), "--json"])
    assert shown.exit_code == 0, shown.output
    plain = json.loads(shown.stdout)
    written = pd.read_csv(out)
    assert set(written["decision"]) == {"bad"}
    assert "foreign" not in set(written["column"])
    assert {person["row"] for person in plain["people"]} == set(written["row"])
    assert all(str(name).startswith("p") for name in written["row"])
    text = page.read_text()
    assert "decided bad" in text
    assert "Never named as reasons: foreign." in text
    few = CliRunner().invoke(app, [*map(str, words[:3]), "--id", "who", "--rows", "2"])
    assert [line[:6] for line in few.stdout.splitlines() if line[:3] == "row"] == [
        "row p0",
        "row p1",
    ]
    one = CliRunner().invoke(app, [*map(str, words[:3]), "--id", "who", "--row", "p3"])
    assert one.stdout.startswith("row p3: ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--toward", "ugly"],
            "reasons: toward must be a class of the model (bad, good), got",
        ),
        (
            ["--exclude", "sex"],
            "reasons: exclude must be of columns of the table (age, duration",
        ),
        (["--moves", "height=2"], "reasons: moves must be of columns of the table (age, duration"),
        (
            ["--codes", "none.csv"],
            "reasons: codes must be a CSV file with the columns column, code",
        ),
        (
            ["-o", "reasons.xlsx"],
            "reasons: out must be a file that ends in .csv, .json, .html, got",
        ),
        (["--html", "page.pdf"], "reasons: html must be a file that ends in .html, got page.pdf."),
        (["--row", "p99"], "reasons: row must be one of the rows (0, 1, 2, 3, 4, ...), got p99."),
        (
            ["--only-refused"],
            "reasons: toward must be given with --only-refused, as --toward refused",
        ),
        (["--rows", "0"], "reasons: rows must be 1 or more, got 0."),
        (["--frozen", "age"], "reasons: frozen must be given with --moves, got age."),
    ],
)
def test_bad_options_are_one_sentence(folder, options, sentence, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["r2et", "reasons", str(folder), *options])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert capsys.readouterr().err.strip().startswith(sentence)


def test_names_of_people_cannot_break_the_page(trained, table, tmp_path):
    ids = ["<script>alert(1)</script>", *range(1, len(table))]
    reasons(trained, table, ids=ids).to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_sets_of_reasons_leave_out_what_must_not_be_named():
    scores = torch.tensor([[3.0, 2.0, -1.0, 1.0], [-1.0, -2.0, 0.0, -3.0]])
    allowed = torch.tensor([True, False, True, True])
    expected = torch.tensor([[True, False, False, True], [False] * 4])
    assert torch.equal(reason_sets(scores, allowed, 2), expected)


def test_what_is_proved_holds_at_points_of_the_region(trained, table):
    """More changes than are all tried: proved by bounds, and looked at by many points."""
    moves = {"age": 1, "amount": 300.0, "income": 200.0}
    region = Feasible(trained.schema, moves=moves)
    result = reasons(trained, table, toward="bad", region=region)
    shares = result.shares()
    assert shares["proved"] > 0.2
    assert shares["unknown"] < 0.5
    x, _ = trained.read(table)
    groups = groups_of(columns_of_schema(trained.schema))
    method = IntegratedGradients(
        points=16, baseline=trained.mean.tolist(), groups=groups, reduce="signed"
    )
    allowed = torch.ones(len(groups), dtype=torch.bool)
    names = [column.name for column in trained.schema.columns]
    generator = torch.Generator().manual_seed(0)
    points = torch.cat([region.sample(x, 300, generator=generator), corners(region, x, 100)])
    scores = method(trained.model, points.flatten(0, 1), 0).view(len(points), len(x), -1)
    proved = 0
    for i, person in enumerate(result):
        sets = reason_sets(scores[:, i], allowed, 4)
        mine = torch.tensor([name in person.columns for name in names])
        if person.proved:
            assert bool((sets == mine).all())
        for reason in person.reasons:
            assert (reason.radius >= 1) == reason.proved
            if reason.proved:
                assert bool(sets[:, names.index(reason.column)].all())
                proved += 1
    assert proved > 10


def corners(region, x, count):
    noise = torch.randn(count, *x.shape, generator=torch.Generator().manual_seed(5))
    return torch.stack([region.extreme(x, one) for one in noise])


def test_a_model_without_bounds_is_searched_and_this_is_said():
    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, x):
            return torch.erfinv(self.layer(x).tanh() / 2)

    torch.manual_seed(0)
    x = torch.rand(3, 3)
    result = reasons(Odd(), x, k=1, baseline=0.5, region=Linf(0.01), toward=1)
    assert result.notes[0].startswith("not proved: IntervalCertifier: model must be made of")
    assert all(person.proved is False for person in result)
