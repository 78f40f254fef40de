"""R2ETClassifier: scikit-learn's own checks, and what they do not know about."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from r2et import R2ETClassifier, audit
from r2et.attack import StrongAttack
from r2et.defaults import RADIUS
from r2et.errors import InputError
from r2et.explain import Concept, Gradient, IntegratedGradients
from r2et.rank import precision_at_k
from r2et.region import L2
from r2et.train import fit, recipe


def vanilla(**settings):
    return R2ETClassifier(**{"k": 3, "recipe": "vanilla", "epochs": 20, **settings})


@parametrize_with_checks([vanilla(epochs=30)])
def test_what_scikit_learn_asks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([R2ETClassifier()])
def test_what_scikit_learn_asks_of_the_default(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    """Three features that matter of six, in units a million apart; one is constant."""
    x, y = make_classification(
        600, 6, n_informative=3, n_redundant=0, shuffle=False, random_state=0, class_sep=1.5
    )
    x = x * [1, 1e3, 1e-3, 1, 1, 0] + [0, 5e4, 0, 0, 0, 7]
    names = ["income", "debt", "rate", "noise a", "noise b", "country"]
    return pd.DataFrame(x, columns=names), np.where(y == 1, "bad", "good")


@pytest.fixture(scope="module")
def fitted(table):
    return vanilla(random_state=0).fit(*table)


def test_a_frame_keeps_its_names(table, fitted):
    x, _ = table
    assert list(fitted.feature_names_in_) == list(x.columns)
    assert list(fitted.classes_) == ["bad", "good"]
    found = fitted.reasons(x)
    assert len(found) == len(x)
    assert all(len(set(row)) == 3 for row in found)
    named = pd.Series([name for row in found for name in row]).value_counts()
    assert set(named.index[:3]) == {"income", "debt", "rate"}
    assert "country" not in named.index
    assert np.array_equal(fitted.explain(x)[:, 5], np.zeros(len(x)))
    moved = x.assign(country=x["country"] + 1)
    assert np.array_equal(fitted.predict_proba(moved), fitted.predict_proba(x))


def test_arrays_have_numbered_reasons(table):
    x, y = table
    found = vanilla(epochs=1, random_state=0).fit(x.to_numpy(), y).reasons(x.to_numpy()[:2])
    assert {name[0] for row in found for name in row} == {"x"}


def test_it_learns(table):
    x, y = table
    learned = vanilla(epochs=60, random_state=0).fit(x[:400], y[:400]).score(x[400:], y[400:])
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(x[:400], y[:400])
    assert learned > linear.score(x[400:], y[400:]) - 0.03


def test_scores_are_of_the_scaled_features(table, fitted):
    x, _ = table
    scaled = MinMaxScaler().fit(x)
    np.testing.assert_allclose(fitted.inputs(x).numpy(), scaled.transform(x), atol=1e-12)
    scores = fitted.explain(x)
    assert scores.shape == x.shape
    # A small move of one raw unit, times the range, by finite differences of the log-odds.
    for i, name in enumerate(x.columns):
        move = 1e-6 * fitted.feature_range_[i]
        there = x.assign(**{name: x[name] + move})
        slope = (fitted.decision_function(there) - fitted.decision_function(x)) / 1e-6
        assert np.median(abs(abs(slope) - scores[:, i])) < 1e-6


def test_probabilities_are_of_the_decision(table, fitted):
    x, _ = table
    odds = fitted.decision_function(x)
    np.testing.assert_allclose(fitted.predict_proba(x)[:, 1], 1 / (1 + np.exp(-odds)))
    assert np.array_equal(fitted.predict(x), np.where(odds > 0, "good", "bad"))


def test_one_seed_one_network_and_torch_undisturbed(table):
    x, y = table
    before = torch.random.get_rng_state()
    first, second = (vanilla(epochs=2, random_state=3).fit(x, y).explain(x) for _ in range(2))
    assert np.array_equal(first, second)
    assert torch.equal(before, torch.random.get_rng_state())
    assert not np.array_equal(first, vanilla(epochs=2, random_state=4).fit(x, y).explain(x))


def test_threads_are_as_before(table):
    torch.set_num_threads(2)
    try:
        vanilla(epochs=1).fit(*table)
        assert torch.get_num_threads() == 2
        with pytest.raises(InputError):
            vanilla(epochs=0).fit(*table)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_many_classes():
    x, y = make_blobs(300, 5, centers=4, random_state=0)
    found = vanilla(epochs=40, random_state=0).fit(x, y)
    assert found.score(x, y) > 0.95
    assert found.decision_function(x).shape == found.predict_proba(x).shape == (300, 4)
    assert found.explain(x).shape == (300, 5)


def test_one_feature_is_its_own_reason():
    x = np.linspace(0, 1, 40)[:, None]
    found = R2ETClassifier(recipe="r2et-ball", epochs=60, random_state=0).fit(x, x[:, 0] > 0.5)
    assert found.explain(x).shape == (40, 1)
    assert found.reasons(x[:1]) == [["x0"]]
    assert found.score(x, x[:, 0] > 0.5) > 0.9


def test_k_is_clipped(table):
    x, y = table
    assert vanilla(k=100, epochs=1).fit(x, y).k_ == 5


def test_huge_numbers_are_numbers():
    small = np.array([[0.0, 0.0], [1.0, 1.0]] * 10)
    x = np.concatenate([small, [[-1.7e308, 0.0], [1.7e308, 1.0]]])
    for rows in (x, small):
        found = vanilla(k=1, epochs=1).fit(rows, [0, 1] * (len(rows) // 2))
        assert np.isfinite(found.predict_proba(x)).all()
        assert np.isfinite(found.explain(x)).all()


def test_pickles_clones_and_searches(table, fitted):
    x, y = table
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.explain(x), fitted.explain(x))
    chosen = R2ETClassifier(recipe=recipe("wd", lr=0.02), explainer=IntegratedGradients(points=5))
    assert clone(chosen).get_params() == chosen.get_params()
    search = GridSearchCV(vanilla(epochs=1, random_state=0), {"hidden": [(8,), (4, 4)]}, cv=2)
    assert search.fit(x, y).best_estimator_.network_.settings["widths"] in ([8], [4, 4])


def test_a_recipe_brings_its_network(table):
    for given, made in ((None, [256]), ((4,), [4])):
        found = R2ETClassifier(k=1, recipe="certified-individual", epochs=1, hidden=given)
        assert found.fit(*table).network_.settings["widths"] == made


def test_the_explainer_is_the_one_that_explains(table):
    x, y = table
    explainer = IntegratedGradients(points=5)
    found = vanilla(epochs=1, explainer=explainer).fit(x, y)
    again = explainer(found.network_, found.inputs(x)).numpy()
    assert np.array_equal(found.explain(x), again)


def test_validation_rows_are_set_aside_or_not(table):
    x, y = table
    whole = vanilla(epochs=1, random_state=0, validation_fraction=0).fit(x, y)
    part = vanilla(epochs=1, random_state=0, validation_fraction=0.5).fit(x, y)
    assert whole.history_[0]["auc"] > 0.5
    assert not np.array_equal(whole.explain(x), part.explain(x))
    assert len(vanilla(epochs=1, validation_fraction=0.9).fit(x[:4], [0, 1, 0, 1]).history_) == 1


@pytest.mark.parametrize("chosen", ["vanilla", "r2et-ball"])
def test_flags_that_only_rows_set_aside_tell_apart_do_no_harm(monkeypatch, chosen):
    x, y = make_classification(
        400, 4, n_informative=3, n_redundant=0, random_state=0, class_sep=1.5
    )
    parts = []

    def noted(network, data, *rest, **settings):
        parts.append(data)
        return fit(network, data, *rest, **settings)

    monkeypatch.setattr("r2et.estimator.fit", noted)
    model = R2ETClassifier(3, chosen, 0.1, random_state=0, epochs=30)
    flags = np.ones((len(x), 8))
    table = np.concatenate([x, flags], 1)
    without = model.fit(table, y).predict_proba(table)
    mine = model.inputs(table).float()
    aside = (mine[:, None] == parts[0].val.x).all(2).any(1).numpy()
    assert aside.sum() == len(parts[0].val.y)
    flags[np.flatnonzero(aside)[:8], np.arange(8)] = 0  # each 1, but for one row
    table = np.concatenate([x, flags], 1)
    assert np.array_equal(model.fit(table, y).predict_proba(table), without)
    auc = roc_auc_score(y[aside], model.decision_function(table[aside]))
    assert auc == pytest.approx(model.history_[-1]["auc"])
    assert not model.explain(table)[:, 4:].any()
    flipped = np.concatenate([x, 1 - flags], 1)
    assert np.array_equal(model.predict_proba(flipped), without)


def test_the_ball_recipe_holds_reasons_still(table):
    x, y = table
    kept = []
    for name in ("vanilla", "r2et-ball"):
        chosen = recipe("r2et-ball", weight=0.3) if name == "r2et-ball" else name
        found = R2ETClassifier(3, chosen, 0.3, 0, epochs=100).fit(x, y)
        rows = found.inputs(x[:50])
        attack = StrongAttack(L2(0.3), budget="fast")
        result = attack(found.network_, Gradient(), rows, k=found.k_)
        scores = [Gradient()(found.network_, rows), Gradient()(found.network_, result.x_adv)]
        assert torch.equal(precision_at_k(*scores, 3).double(), result.precision.double())
        kept.append(float(result.precision.mean()))
    assert kept[1] > kept[0] + 0.05


def test_bad_input_is_one_sentence(table):
    x, y = table
    cases = [
        ({"k": 0}, r"^R2ETClassifier: k must be a positive whole number, got 0\.$"),
        ({"k": True}, r"^R2ETClassifier: k must be a positive whole number, got True\.$"),
        ({"recipe": "r2te"}, r"^recipe: name must be one of .*\(did you mean r2et\?\), got r2te"),
        ({"radius": -1}, r"^fit: radius must be positive and finite, got -1\.$"),
        ({"epochs": 0}, r"^fit: epochs must be "),
        ({"hidden": (0,)}, r"^MLP: every width must be "),
        ({"validation_fraction": 1}, r"^R2ETClassifier: validation_fraction must be in \[0, 1\)"),
        ({"explainer": Concept()}, r"explainer must be one with a score per feature"),
        ({"explainer": "Grad"}, r"^fit: explainer must be None or an Explainer, got Grad\.$"),
    ]
    for settings, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            vanilla(**{"epochs": 1, **settings}).fit(x, y)
    with pytest.raises(InputError, match=r"y must be of two classes or more, got one class, good"):
        vanilla().fit(x, ["good"] * len(x))
    with pytest.raises(NotFittedError):
        vanilla().reasons(x)


@pytest.mark.usefixtures("short_attacks")
def test_audit_is_of_the_network_at_the_estimators_settings(table, fitted):
    x, y = table
    found = fitted.audit(x[:20], y[:20], k=2, budget="fast")
    told = found.summary()
    assert (told["rows"], told["k"], told["radius"]) == (20, 2, RADIUS)
    assert found.result["names"] == [str(name) for name in fitted.feature_names_in_]
    assert found.result["classes"] == ["bad", "good"]
    direct = audit(
        fitted.network_,
        fitted.inputs(x[:20]),
        np.searchsorted(fitted.classes_, y[:20]),
        k=2,
        region=L2(RADIUS),
        budget="fast",
    )
    assert direct.summary() == told
    assert fitted.audit(x[:8], budget="fast").summary()["auc_clean"] is None
    with pytest.raises(InputError, match=r"^R2ETClassifier\.audit: y must be of bad, good, got"):
        fitted.audit(x, ["ugly"] * len(x))


def test_a_single_feature_cannot_be_audited():
    x = np.linspace(0, 1, 40)[:, None]
    found = vanilla().fit(x, (x[:, 0] > 0.5).astype(int))
    with pytest.raises(InputError, match=r"^R2ETClassifier\.audit: X must be of two features"):
        found.audit(x)


def test_the_package_waits_for_torch_until_it_is_needed():
    code = (
        "import r2et, sys; assert 'R2ETClassifier' in dir(r2et); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    import r2et

    assert r2et.penalty.R2ET(k=2).k == 2
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        r2et.nonsense  # noqa: B018
