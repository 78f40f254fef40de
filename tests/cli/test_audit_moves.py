"""r2et audit --moves, as a lender types it, on a credit table of mixed columns."""

import json

import pytest

from credit_table import credit, frame
from r2et.train import fit

FAST = ("--budget", "fast", "--engine", "serial")


@pytest.fixture(scope="module")
def lender(tmp_path_factory):
    """A folder of `r2et train` on a credit table."""
    place = tmp_path_factory.mktemp("lender") / "credit"
    fit(None, credit(400), "vanilla", k=3, epochs=8, out=place, progress=False)
    return str(place)


@pytest.fixture
def run(program, tmp_path):
    frame(40, seed=1).to_csv(tmp_path / "next.csv", index=False)
    return program("audit")


def test_worst_rows_in_raw_units(run, lender, tmp_path):
    moves = ("--moves", "age=2,duration in months=2,employment", "--switches", "1")
    files = ("--json", "audit.json", "--html", "audit.html")
    code, out, err = run(lender, "next.csv", *moves, *FAST, *files)
    assert code == 0, err
    head = "40 rows, at most 2 in age, 2 in duration in months and one category (employment)"
    assert head in out
    assert "rows whose top 3 an attack changed" in out
    result = json.loads((tmp_path / "audit.json").read_text())
    people = frame(40, seed=1)
    seen = 0
    for row in result["shown"]:
        person = people.iloc[row["index"]]
        for change in row["steps"][-1]["changes"]:
            seen += 1
            assert change["possible"]
            assert change["before"] == str(person[change["column"]])
            if change["column"] != "employment":
                assert abs(int(change["after"]) - int(change["before"])) <= 2
    assert seen > 0
    assert result["summary"]["changed_share"] > 0
    assert result["summary"]["changed_share"] + result["summary"]["certified_share"] == 1
    page = (tmp_path / "audit.html").read_text()
    assert "hange of at most 2 in age, 2 in duration in months and one category" in page


def test_a_ball_shows_raw_units_too(run, lender, tmp_path):
    code, _, err = run(lender, "next.csv", "--radius", "1", *FAST, "--json", "audit.json")
    assert code == 0, err
    result = json.loads((tmp_path / "audit.json").read_text())
    changes = [c for row in result["shown"] for c in row["steps"][-1]["changes"]]
    words = [c["after"] for c in changes if c["column"] == "employment"]
    assert any(word.startswith("no possible value (") for word in words)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--moves", "hour=2"), "audit: moves must be of columns of the table (age, duration"),
        (("--moves", "duration=2"), "got duration (did you mean duration in months?)."),
        (("--moves", "age=2", "--radius", "0.3"), "audit: radius must be left out with --moves"),
        (("--moves", "age=2", "--norm", "linf"), "audit: norm must be left out with --moves"),
        (("--moves", "age=2", "--bounds", "0,1"), "audit: bounds must be left out with --moves"),
        (("--switches", "-1"), "audit: switches must be 0 or more, got -1."),
        (("--switches", "0"), "such that at least one column may change"),
    ],
)
def test_bad_moves(run, lender, options, sentence):
    code, _, err = run(lender, "next.csv", *options, *FAST)
    assert code == 2
    assert sentence in err


def test_moves_need_a_table(run, strange):
    code, _, err = run(
        f"{strange}:net", "rows.csv", "--target", "label", "--k", "2", "--moves", "a=1"
    )
    assert code == 2
    assert "audit: moves must be given for a model that `r2et train` made of a table" in err


def test_gates_of_moves(run, lender):
    moves = ("--switches", "1", *FAST)
    assert run(lender, "next.csv", *moves, "--gate", "changed_share<=1")[0] == 0
    assert run(lender, "next.csv", *moves, "--gate", "distinct_top_k<=0")[0] == 3
    code, _, err = run(lender, "next.csv", *moves, "--gate", "radius_certified_median>=0.1")
    assert code == 3
    assert "not measured" in err
