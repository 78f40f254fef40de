"""Rows whose cells a model takes for something else, or that carry no label, or share a name."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from credit_table import credit, frame
from r2et import reasons
from r2et.cli import app
from r2et.data import load_table
from r2et.data.later_rows import lost_cells
from r2et.errors import InputError
from r2et.reason.command import _names
from r2et.train import fit, load_trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("credit")
    fit(None, credit(), "vanilla", k=4, epochs=2, out=path, progress=False, baselines=False)
    return path


def test_a_person_is_told_their_own_number_beyond_the_range_of_the_training(folder):
    trained = load_trained(folder)
    table = frame(3, seed=9)
    table.loc[1, "age"] = 104
    table.loc[2, "amount"] = 91_000_000.5
    told = [reasons(trained, table, toward=label, k=9) for label in ("bad", "good")]
    values = [
        {r.column: r.value for p in (a, b) for r in p.reasons} for a, b in zip(*told, strict=True)
    ]
    assert values[1]["age"] == "104"
    assert values[2]["amount"] == "91000000.5"
    assert values[0]["age"] == str(table.loc[0, "age"])
    ages = next(column for column in trained.schema.columns if column.name == "age")
    assert any(
        note.startswith(f"age: 1 row beyond the training's {ages.low:g} to {ages.high:g} count")
        for note in told[0].notes
    )


def test_labels_that_count_as_another_are_told_as_written():
    rows = 200
    jobs = ["clerk", "cook", "nurse"] * 62 + [f"rare {i}" for i in range(14)]
    table = pd.DataFrame(
        {"age": [i % 50 for i in range(rows)], "job": jobs, "y": [0, 1] * (rows // 2)}
    )
    schema = load_table(table, target="y", kinds={"job": "category"}).schema
    job = next(column for column in schema.columns if column.name == "job")
    assert job.other is not None  # there is a place for rare labels
    new = pd.DataFrame({"age": [-3, 5], "job": ["cook", "astronaut"]})
    assert lost_cells(schema, new) == [{"age": "-3"}, {"job": "astronaut"}]


def test_rows_need_no_label(folder, tmp_path):
    table = frame(5, seed=9).assign(who=list("abcda"))
    whole, partly, waiting = (tmp_path / f"{name}.csv" for name in ("whole", "partly", "waiting"))
    table.drop(columns="risk").to_csv(whole, index=False)
    table.assign(risk=["", "bad", "", "good", "bad"]).to_csv(partly, index=False)
    table.assign(risk="pending").to_csv(waiting, index=False)
    outputs = [CliRunner().invoke(app, ["reasons", str(folder), str(f)]) for f in (whole, partly)]
    assert outputs[0].exit_code == 0
    assert outputs[0].stdout == outputs[1].stdout
    assert CliRunner().invoke(app, ["reasons", str(folder), str(waiting)]).exit_code == 0
    words = ["reasons", str(folder), str(whole), "--id", "who", "--row", "a"]
    shared = CliRunner().invoke(app, words)
    assert shared.stdout.count("row a: ") == 2  # two rows have this name


def test_names_of_columns_may_hold_commas():
    known = ["age", "hours, per week", "a,b,c", "a"]
    assert _names("hours, per week,age", known) == ["hours, per week", "age"]
    assert _names("age, a,b,c", known) == ["age", "a", "b", "c"]  # the shorter name is one
    assert _names("age,nothing", known) == ["age", "nothing"]
    assert _names("hours", known) == ["hours"]
    assert _names(None, known) == []


def test_sentences_name_the_command_that_was_given(folder, tmp_path):
    table = tmp_path / "rows.csv"
    frame(3).to_csv(table, index=False)
    for words, sentence in [
        (["diff", tmp_path / "no", folder], "diff: MODEL must be a folder"),
        (["reasons", tmp_path / "no"], "reasons: MODEL must be a folder"),
        (["reasons", folder, table, "--id", "who"], "reasons: id must be one of the columns"),
        (["diff", folder, folder, "--id", "who"], "diff: id must be given with DATA, got who"),
    ]:
        failed = CliRunner().invoke(app, list(map(str, words)))
        assert isinstance(failed.exception, InputError)
        assert str(failed.exception).startswith(sentence)
    for rows in (table.read_bytes(), [[1, 2]], frame(3).to_numpy()):
        with pytest.raises(InputError, match="reasons: rows must be a tensor of features"):
            reasons(load_trained(folder), rows)


def test_a_baseline_in_the_units_of_the_table(folder):
    trained, table = load_trained(folder), frame(4, seed=9)
    raw = reasons(trained, table, toward="bad", baseline=table[:1])
    same = reasons(trained, table, toward="bad", baseline=trained.read(table[:1])[0][0])
    assert raw == same
    assert not raw[0].reasons  # nothing tells a row from itself
    with pytest.raises(InputError, match="reasons: baseline must be one row, got 2 rows"):
        reasons(trained, table, toward="bad", baseline=table[:2])


def test_a_page_says_where_the_cutoff_is(folder, tmp_path):
    """At a cut-off of 0.9 a probability of 0.7 is not "rather clear", and class 1 is not chosen."""
    table = tmp_path / "rows.csv"
    frame(3).to_csv(table, index=False)
    words = ["reasons", folder, table, "--cutoff", "0.9", "--html", tmp_path / "page.html"]
    shown = CliRunner().invoke(app, list(map(str, words)))
    rule = "good is decided for from a probability of 90 % on"
    assert f"{rule}." in shown.stdout
    text = (tmp_path / "page.html").read_text()
    assert rule in text
    assert "clear decision" not in text
    differ = ["diff", folder, folder, table, "--cutoff", "0.9"]
    assert CliRunner().invoke(app, list(map(str, differ))).exit_code == 0
