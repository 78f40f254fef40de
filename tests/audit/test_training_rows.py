"""An audit of a trained model leaves out what it was trained on, and says so."""

import json

import pytest
import torch
from tests.credit import credit_table

from r2et.audit import Audit, audit
from r2et.data import load_table
from r2et.errors import InputError
from r2et.region import L2
from r2et.report.page import html
from r2et.train import fit

pytestmark = pytest.mark.usefixtures("short_attacks_throughout")

QUICK = {"budget": "fast", "region": L2(0.1)}


@pytest.fixture(scope="module")
def data():
    return load_table(credit_table(160), "class", drop=["zip"])


@pytest.fixture(scope="module")
def done(data):
    return fit(None, data, "vanilla", k=2, radius=0.1, epochs=200, seed=0, progress=False)


@pytest.fixture(scope="module")
def rows(data):
    return tuple(torch.cat([part[i] for part in data.parts]) for i in (0, 1))


@pytest.fixture(scope="module")
def held_out(done, rows):
    return audit(done, *rows, **QUICK)


def test_training_rows_are_left_out_and_counted_in_the_first_line(held_out, data):
    train, val, test = (len(part.y) for part in data.parts)
    known = held_out.result["training_rows"]
    assert (known["given"], known["training"], known["validation"]) == (160, train, val)
    assert held_out.summary()["rows"] == test
    assert {row["index"] for row in held_out.rows} == set(range(train + val, 160))
    first, *_ = str(held_out).splitlines()
    assert f": {train + val} of the 160 rows given were used in training" in first
    assert f"({train} to train on, {val} to validate)" in first
    assert "left out" in first
    assert "  test AUC" in str(held_out)


def test_the_first_line_says_of_how_many_of_the_others(done, rows):
    some = audit(done, *rows, rows=5, **QUICK)
    assert "the figures are of 5 of the other 24." in str(some).splitlines()[0]
    assert not audit(done, *rows, rows=5, all_rows=True, **QUICK).check(["rows>=1"])


def test_without_rows_the_test_part_is_audited(done, held_out):
    stored = audit(done, **QUICK)
    assert stored.summary()["auc_clean"] == held_out.summary()["auc_clean"]
    assert stored.summary()["k"] == 2
    assert stored.result["names"] == list(done.trained.names)
    assert stored.result["training_rows"]["training"] == 0


def test_all_rows_are_called_what_they_are(done, rows, held_out, tmp_path):
    whole = audit(done, *rows, all_rows=True, **QUICK)
    assert whole.summary()["rows"] == 160
    # The network has learned its training rows by heart: that is what makes them misleading.
    assert whole.summary()["auc_clean"] > held_out.summary()["auc_clean"] + 0.02
    text = str(whole)
    assert "training rows included" in text.splitlines()[0]
    assert "AUC, training rows included" in text
    assert "test AUC" not in text
    assert whole.summary()["auc_boosting"] is None
    whole.to_json(tmp_path / "whole.json")
    stored = json.loads((tmp_path / "whole.json").read_text())["training_rows"]
    assert (stored["label"], stored["included"]) == ("training rows included", True)
    page = html([Audit.from_json(tmp_path / "whole.json").result])
    assert "Training rows included" in page
    assert "Accuracy, training rows included" in page
    assert "raining rows included" not in html([held_out.result])
    assert "left out" in html([held_out.result])


def test_nothing_but_training_rows_is_refused(done, data):
    with pytest.raises(InputError, match=r"rows that the training has not seen .*--all-rows.* all"):
        audit(done, *data.train, **QUICK)


def test_batches_are_looked_at_one_by_one(done, rows, data):
    x, y = rows
    batches = [(x[i : i + 30], y[i : i + 30]) for i in range(0, 160, 30)]
    streamed = audit(done, iter(batches), **QUICK)
    assert streamed.summary()["rows"] == len(data.test.y)
    first = 160 - len(data.test.y)
    assert [row["index"] for row in streamed.rows] == list(range(first, 160))
    with pytest.raises(InputError, match="rows that the training has not seen"):
        audit(done, iter(batches[:2]), **QUICK)


def test_a_module_alone_says_nothing_of_training(done, data):
    plain = audit(done.model, *data.test, k=2, **QUICK)
    assert plain.result["training_rows"] is None
    assert "test AUC" not in str(plain)
    # Where only rows are given, the line says what it is, and no verdict is built on it.
    assert "of a linear model fitted on these rows" in str(plain)
    assert plain.summary()["auc_logistic"] is None
    with pytest.raises(InputError, match="k must be given"):
        audit(done.model, *data.test)
    with pytest.raises(InputError, match="x must be given for a model whose training"):
        audit(done.model, k=2)
    with pytest.raises(InputError, match="y must be given with x"):
        audit(done, y=data.test.y)


def test_a_model_below_logistic_regression_is_told_so(data):
    poor = fit(None, data, "vanilla", k=2, radius=0.1, epochs=1, seed=0, progress=False)
    with torch.no_grad():
        for weight in poor.model.parameters():
            weight.neg_()  # predicts the other class
    result = audit(poor, **QUICK)
    told = result.summary()
    assert told["auc_clean"] < told["auc_logistic"]
    assert told["auc_linear"] is None
    assert str(result).splitlines()[1].startswith("BELOW LOGISTIC REGRESSION: AUC 0.")
    assert "BELOW LOGISTIC REGRESSION" in html([result.result])
    assert "BELOW LOGISTIC REGRESSION" in html([result.result, {**result.result, "name": "b"}])


def test_the_logistic_regression_is_that_of_the_training(done, held_out):
    stored = done.trained.baselines.logistic
    assert held_out.summary()["auc_logistic"] == pytest.approx(stored.auc_test)
