"""The bench command: what it prints, what it writes, and what it says of bad input."""

import json

import pytest
from typer.testing import CliRunner

from r2et.bench.agenda import agenda
from r2et.cli import app
from r2et.errors import InputError, UnavailableError

QUICK = ["--seeds", "1", "--epochs", "1", "--rows", "8", "--steps", "5", "--engine", "here"]


def bench(*words):
    return CliRunner().invoke(app, ["bench", *words])


def test_a_table_in_every_format(tmp_path):
    words = ["table9", "--datasets", "adult", "--recipes", "vanilla,linear", *QUICK]
    done = bench(*words, "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "Table 9: faithfulness" in done.output
    assert "0.24" in done.output  # the papers' DFFOT of Vanilla
    for end in ("md", "tex", "html"):
        text = (tmp_path / f"table9.{end}").read_text()
        assert "vanilla" in text
        assert "linear" in text
    assert r"{\scriptsize 0.24}" in (tmp_path / "table9.tex").read_text()
    assert "<small>0.24</small>" in (tmp_path / "table9.html").read_text()
    again = json.loads(bench(*words, "-o", str(tmp_path), "--json").stdout)
    assert [claim["recipe"] for claim in again["claims"]] == ["vanilla", "linear"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["table11"], "one of table1, .*did you mean table1"),
        (["table1", "--datasets", "adlut"], r"datasets must be .*\(did you mean adult\?\), got"),
        (["table1", "--datasets", "kki"], "got 'kki', which is known but has no benchmark"),
        (["table1", "--recipes", "r2et-n"], r"recipes must be .*did you mean r2et-nh"),
        (["table1", "--recipes", "nowhere:thing"], "recipes must be importable, got 'nowhere"),
        (["table1", "--recipes", "json:dumps"], "json:dumps must be a Recipe or a Method"),
        (["table1", "--seeds", "0"], "seeds must be a positive whole number, got 0"),
        (["table1", "--weights", "0.1,x"], "weights must be numbers"),
        (["table1", "--budget", "soon"], "budget must be a time as 90s, 30m or 2h30m, got 'soon'"),
        (["all"], "budget must be given for all"),
        (["table1", "--recipes", ","], "recipes must be one or more names"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, tmp_path):
    done = bench(*words, "-o", str(tmp_path))
    with pytest.raises(InputError, match=sentence):
        raise done.exception
    assert "\n" not in str(done.exception)


def test_all_begins_nothing_after_its_budget(tmp_path):
    done = bench("all", "--budget", "0.000001s", "--datasets", "adult", "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    of_adult = [item for item in agenda() if "adult" in item.datasets]
    assert done.stderr.count("bench: not begun: ") == len(of_adult) > 17  # each once
    assert done.stderr.startswith("bench: all of it takes about ")
    assert sorted(p.name for p in tmp_path.iterdir()) in ([], [".running", "models", "records"])


def test_data_that_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    monkeypatch.setenv("R2ET_CACHE", str(tmp_path))
    monkeypatch.setenv("R2ET_OFFLINE", "1")
    done = bench("table1", "--datasets", "bank", *QUICK, "-o", str(tmp_path / "out"))
    assert isinstance(done.exception, UnavailableError)
    assert "bank" in str(done.exception)
    assert not (tmp_path / "out").exists()
