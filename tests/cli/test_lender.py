"""A lender's day on the command line: train on a credit table, audit what was held out."""

import json
import re

import pytest
from tests.credit import credit_table

from r2et.data import load_table

TRAIN = ("loans.csv", "--target", "class", "-o", "model", "--recipe", "vanilla", "--k", "2")
AUDIT = ("--budget", "fast", "--engine", "serial")


@pytest.fixture
def shop(program, tmp_path):
    """A credit table in the current folder, and the two commands."""
    (tmp_path / "model.json").write_text("a file, no folder")
    credit_table(160).to_csv(tmp_path / "loans.csv", index=False)
    return program("train"), program("audit"), tmp_path


def area(text):
    return float(re.search(r"^  (?:test AUC|AUC, [a-z ]+) +([\d.]+)", text, re.M).group(1))


def test_the_file_it_was_trained_on_gives_the_test_figures(shop):
    train, audit, folder = shop
    code, out, _ = train(*TRAIN, "--epochs", "150", "--json")
    assert code == 0
    truth = json.loads(out)["auc_clean"]
    code, out, _ = audit("model", "loans.csv", *AUDIT)
    assert code == 0
    assert "136 of the 160 rows given were used in training" in out.splitlines()[0]
    assert area(out) == pytest.approx(truth, abs=6e-4)
    code, out, _ = audit("model", "loans.csv", "--all-rows", *AUDIT, "--json", "all.json")
    assert "training rows included" in out.splitlines()[0]
    inflated = area(out)
    assert inflated > truth + 0.05
    # A gate between the two is shut for the rows that count.
    bar = f"auc_clean>={(inflated + truth) / 2}"
    assert audit("model", "loans.csv", *AUDIT, "--gate", bar)[0] == 3
    label = json.loads((folder / "all.json").read_text())["training_rows"]["label"]
    assert label == "training rows included"


def test_without_data_the_test_part_is_audited_though_the_file_is_gone(shop):
    train, audit, folder = shop
    assert train(*TRAIN, "--epochs", "2", "--test-out", "test.csv")[0] == 0
    assert len((folder / "test.csv").read_text().splitlines()) == 25
    (folder / "loans.csv").unlink()
    code, stored, _ = audit("model", *AUDIT)
    assert code == 0
    assert "model: 24 rows" in stored.splitlines()[0]
    code, written, _ = audit("model", "test.csv", *AUDIT)
    assert code == 0
    assert area(written) == area(stored)


def test_test_rows_are_written_cell_by_cell(shop):
    train, _, folder = shop
    assert train(*TRAIN, "--epochs", "1", "--test-out", "test.parquet")[0] == 0
    data = load_table(folder / "loans.csv", "class")
    lines = (folder / "loans.csv").read_text().splitlines()[1:]
    expected = [lines[i] for i in data.row_numbers[2].tolist()]
    pandas = pytest.importorskip("pandas")
    rows = pandas.read_parquet(folder / "test.parquet")
    assert [",".join(row) for row in rows.itertuples(index=False)] == expected


def test_of_a_named_table_they_are_read_back_from_the_features(program):
    train, audit = program("train"), program("audit")
    code, _, err = train("adult", "-o", "m", "--recipe", "vanilla", "--epochs", "1",
                         "--test-out", "adult.csv")  # fmt: skip
    assert (code, "Traceback" in err) == (0, False)
    code, out, _ = audit("m", "adult.csv", "--rows", "10", *AUDIT)
    assert code == 0
    # People who are alike by chance are no training rows.
    assert "used in training" not in out
    assert "no more than chance allows" in out


def test_a_network_below_logistic_regression_is_told_so(shop):
    train, audit, folder = shop
    code, out, _ = train(*TRAIN, "--epochs", "1", "--set", "lr=1e-6")
    assert code == 0
    assert "of boosting" in out
    assert "BELOW LOGISTIC REGRESSION" in out
    code, out, _ = audit("model", *AUDIT, "--html", "page.html")
    assert "BELOW LOGISTIC REGRESSION" in out
    assert "BELOW LOGISTIC REGRESSION" in (folder / "page.html").read_text()


def test_baselines_can_be_left_out(shop):
    train, audit, _ = shop
    _, out, _ = train(*TRAIN, "--epochs", "1", "--no-baselines", "--json")
    told = json.loads(out)
    assert told["auc_linear"] is told["auc_boosting"] is None
    assert "of a linear model fitted on these rows" in audit("model", *AUDIT)[1]


def test_columns_are_dropped_kinds_given_and_the_positive_class_said(shop):
    train, _, folder = shop
    code, _, err = train(*TRAIN, "--epochs", "1", "--drop", "sex", "--positive", "bad",
                         "--kinds", "zip=category,months=category")  # fmt: skip
    assert code == 0
    assert "not used: sex (as asked); ID (it is text or an identifier" in err
    stored = json.loads((folder / "model" / "model.json").read_text())["extra"]
    assert stored["classes"] == ["good", "bad"]
    assert "zip: 10001" in stored["names"]
    assert "months: 12" in stored["names"]
    assert not any(name.startswith("sex") for name in stored["names"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--drop", "sx"), "did you mean 'sex'?"),
        (("--positive", "worse"), "positive must be one of bad, good"),
        (("--kinds", "zip"), "kinds must be of the form column=kind"),
        (("--kinds", "zip=colour"), "kinds must be of"),
        (("--test-out", "model.json/test.csv"), "--test-out"),
    ],
)
def test_columns_that_are_not_there(shop, options, sentence):
    train, _, _ = shop
    code, _, err = train(*TRAIN, "--epochs", "1", *options)
    assert (code, sentence in err) == (2, True)


def test_a_named_data_set_has_its_own_columns(program):
    code, _, err = program("train")("adult", "-o", "m", "--drop", "age")
    assert code == 2
    assert "drop must be left out for adult" in err
