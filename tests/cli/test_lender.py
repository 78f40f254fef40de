"""A lender's day on the command line: train on a credit table, audit what was held out."""

import json
import re

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.credit import credit_table

from r2et.data import load_table
from r2et.train import fit, load_trained

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


@pytest.mark.slow
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


def test_decisions_at_a_cutoff_are_those_of_the_probabilities(shop):
    train, audit, folder = shop
    assert train(*TRAIN, "--epochs", "40", "--positive", "bad", "--no-baselines")[0] == 0
    trained = load_trained(folder / "model")
    x, y = trained.seen.held_out
    bad = trained.model(x).softmax(1)[:, 1].tolist()
    decided = {}
    for cutoff in ("0.2", "0.8"):
        code, out, _ = audit("model", *AUDIT, "--cutoff", cutoff, "--json", "c.json")
        assert code == 0
        assert f"model: 24 rows, radius 0.3, decided at {cutoff}" in out
        result = json.loads((folder / "c.json").read_text())
        rows = result["rows"]
        decided[cutoff] = rows["target"]
        assert rows["target"] == [int(bad[i] >= float(cutoff)) for i in rows["index"]]
        pairs = zip(rows["index"], rows["target"], strict=True)
        of_class = [bad[i] if target else 1 - bad[i] for i, target in pairs]
        assert rows["probability"] == pytest.approx(of_class, abs=1e-5)
        # The cut-off moves decisions, not how rows are ranked.
        assert result["summary"]["auc_clean"] == pytest.approx(roc_auc_score(y, bad))
    assert sum(decided["0.2"]) > sum(decided["0.8"])
    for wrong in ("1", "0", "30", "nan"):
        code, _, err = audit("model", *AUDIT, "--cutoff", wrong)
        assert code == 2
        assert err.startswith("audit: cutoff must be None or a probability above 0 and below 1")


def test_weights_are_a_column_that_counts_in_the_loss_and_in_the_baselines(shop):
    train, _, folder = shop
    table = credit_table(160).assign(counts=lambda t: np.where(t["class"] == "bad", 3.0, 0.5))
    table.to_csv(folder / "loans.csv", index=False)
    code, out, err = train(*TRAIN, "--epochs", "3", "--weights", "counts", "--json")
    assert code == 0
    assert "counts (it weighs the rows)" in err
    stored = load_trained(folder / "model")
    data = load_table(folder / "loans.csv", "class", drop=["counts"])
    weights = table["counts"].to_numpy()[data.row_numbers[0].numpy()]
    same = fit(None, data, "vanilla", k=2, epochs=3, progress=False, sample_weight=weights)
    other = fit(None, data, "vanilla", k=2, epochs=3, progress=False)
    x = data.test.x
    assert torch.equal(stored.model(x), same.model(x))
    assert not torch.equal(stored.model(x), other.model(x))
    simple = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    weighted = {"logisticregression__sample_weight": weights}
    simple.fit(data.train.x.double(), data.train.y, **weighted)
    truth = roc_auc_score(data.test.y, simple.decision_function(x.double()))
    assert json.loads(out)["auc_linear"] == pytest.approx(truth)
    table.loc[7, "counts"] = -1
    table.to_csv(folder / "loans.csv", index=False)
    code, _, err = train(*TRAIN, "--epochs", "1", "--weights", "counts")
    assert (code, "a number from 0 on in every row, got -1 in row 7" in err) == (2, True)
    code, _, err = train(*TRAIN, "--epochs", "1", "--weights", "count")
    assert (code, "did you mean 'counts'?" in err) == (2, True)


def test_amounts_in_the_millions_move_by_single_units(shop):
    train, audit, folder = shop
    table = credit_table(160)
    table["amount"] = (table["amount"] * 300).round().astype(int)
    table.to_csv(folder / "loans.csv", index=False)
    assert train(*TRAIN, "--epochs", "150", "--no-baselines")[0] == 0
    code, out, err = audit("model", *AUDIT, "--moves", "amount=900000", "--json", "m.json")
    assert (code, err) == (0, "")
    assert "at most 900000 in amount" in out
    assert re.search(r"^  row \d+ keeps \d of 2: amount: \d+ -> \d+$", out, re.MULTILINE)
    shown = json.loads((folder / "m.json").read_text())["shown"]
    changes = [c for row in shown for step in row["steps"] for c in step.get("changes") or ()]
    amounts = [c for c in changes if c["column"] == "amount"]
    assert amounts
    for change in amounts:
        before, after = int(change["before"]), int(change["after"])
        assert before in set(table["amount"])
        assert 0 < abs(before - after) <= 900000
    code, out, _ = audit("model", "loans.csv", *AUDIT, "--moves", "amount=900000", "--id", "ID")
    row, name = re.search(r"^  row (\d+), id (\w+) keeps", out, re.MULTILINE).groups()
    assert table["ID"][int(row)] == name
    code, _, err = audit("model", *AUDIT, "--id", "ID")
    assert code == 2
    assert err.startswith("audit: id must be given with DATA, a file that has the column: the stor")
