"""Logistic regression and boosting on the training rows, kept with the model."""

import json

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.credit import credit_table
from tests.training_data import small

from r2et.data import load_table
from r2et.train import fit, load_trained, report
from r2et.train.baselines import Baselines, fit_baselines


@pytest.fixture(scope="module")
def data():
    return load_table(credit_table(400), "class")


def test_the_logistic_regression_is_scikit_learns(data):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    pipeline.fit(data.train.x.double().numpy(), data.train.y.numpy())
    own = fit_baselines(data, boosting=False).logistic
    expected = pipeline.decision_function(data.test.x.double().numpy())
    logits = own.logits(data.test.x)
    assert np.allclose((logits[:, 1] - logits[:, 0]).numpy(), expected, atol=1e-6)
    assert own.auc_test == pytest.approx(roc_auc_score(data.test.y.numpy(), expected))


def test_of_many_classes_and_of_one_that_the_training_rows_lack():
    three = small(n=6, classes=3)
    own = fit_baselines(three)
    assert own.logistic.weight.shape == (3, 6)
    assert 0 <= own.logistic.auc_test <= 1
    assert 0 <= own.boosting.auc_test <= 1
    kept = three.train.y != 1
    three.train.y[~kept] = 0
    lacking = fit_baselines(three)
    assert not (lacking.logistic.logits(three.test.x).argmax(1) == 1).any()
    assert 0 <= lacking.boosting.auc_test <= 1


def test_boosting_repeats_under_its_seed_and_says_its_settings(data):
    one, two = fit_baselines(data, seed=3).boosting, fit_baselines(data, seed=3).boosting
    assert one == two
    assert (one.seed, one.settings["max_iter"]) == (3, 100)
    assert 0.5 < one.auc_test <= 1


def test_they_come_back_from_json(data):
    own = fit_baselines(data)
    back = Baselines.from_json(json.loads(json.dumps(own.to_json())))
    assert torch.equal(back.logistic.logits(data.test.x), own.logistic.logits(data.test.x))
    assert back.boosting == own.boosting


def test_weights_of_rows_count(data):
    heavy = torch.where(data.train.y == 1, 20.0, 1.0)
    plain, weighted = (
        fit_baselines(data, boosting=False, weights=w).logistic.logits(data.test.x).argmax(1).sum()
        for w in (None, heavy)
    )
    assert weighted > plain


def test_a_folder_keeps_them(data, tmp_path):
    fit(None, data, "vanilla", epochs=1, out=tmp_path / "model", progress=False)
    kept = load_trained(tmp_path / "model").baselines
    expected = fit_baselines(data)
    assert kept.logistic.auc_test == pytest.approx(expected.logistic.auc_test)
    assert kept.boosting.auc_test == pytest.approx(expected.boosting.auc_test)
    found = report(
        fit(None, data, "vanilla", epochs=1, progress=False).model,
        data,
        k=2,
        rows=5,
        baselines=kept,
    )
    assert found.auc_linear == kept.logistic.auc_test
    assert found.auc_boosting == kept.boosting.auc_test


def test_nobody_has_to_have_them(data, tmp_path):
    done = fit(None, data, "vanilla", epochs=1, out=tmp_path, progress=False, baselines=False)
    assert done.trained.baselines is None
    assert load_trained(tmp_path).baselines is None
    # Without a folder boosting, which takes longest, is left out; with True it is not.
    done = fit(None, data, "vanilla", epochs=1, progress=False)
    assert done.trained.baselines.boosting is None
    done = fit(None, data, "vanilla", epochs=1, progress=False, baselines=True)
    assert done.trained.baselines.boosting is not None
