"""R2ETClassifier: scikit-learn's own checks, and what they do not know about."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from r2et import R2ETClassifier, audit
from r2et.attack import StrongAttack
from r2et.defaults import RADIUS
from r2et.errors import InputError
from r2et.explain import Concept, Gradient, IntegratedGradients
from r2et.rank import precision_at_k
from r2et.region import L2
from r2et.train import fit, recipe
from r2et.train.seen_rows import UNSEEN, fingerprints


def vanilla(**settings):
    return R2ETClassifier(**{"k": 3, "recipe": "vanilla", "epochs": 20, **settings})


def beyond_batches(_):
    """What no network trained in batches can do, as for scikit-learn's own SGDClassifier."""
    why = "rows are drawn in batches: a weight of 2 is a row twice on average, not bit by bit"
    names = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{name}_data": why for name in names}


EXPECTED = {"expected_failed_checks": beyond_batches}


@parametrize_with_checks([vanilla(epochs=30, baselines=False)], **EXPECTED)
def test_what_scikit_learn_asks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([R2ETClassifier()], **EXPECTED)
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
    found = fitted.top_features(x)
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
    found = vanilla(epochs=1, random_state=0).fit(x.to_numpy(), y).top_features(x.to_numpy()[:2])
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
        vanilla(epochs=1, baselines=False).fit(*table)
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
    assert found.top_features(x[:1]) == [["x0"]]
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


# After one epoch a network may be below it.
@pytest.mark.filterwarnings("ignore:fit. the trained network is clearly below")
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

    monkeypatch.setattr("r2et.estimator.classifier.fit", noted)
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
    assert auc == pytest.approx(model.trained_.extra["auc"])
    assert not model.explain(table)[:, 4:].any()
    flipped = np.concatenate([x, 1 - flags], 1)
    assert np.array_equal(model.predict_proba(flipped), without)


@pytest.mark.slow
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
        ({"class_weight": "heavy"}, r"class_weight must be None, 'balanced' or \{label: weight\}"),
        ({"class_weight": 2}, r"class_weight must be None, 'balanced' or \{label: weight\}, got 2"),
        ({"class_weight": {"ugly": 2}}, r"class_weight must be of the labels bad, good, got \['u"),
        ({"class_weight": {"bad": -1}}, r"class_weight must be of finite weights from 0 on"),
        ({"explainer": Concept(), "hidden": (8,)}, r"explainer must be one with a score per"),
        ({"explainer": "Grad"}, r"^fit: explainer must be None or an Explainer, got Grad\.$"),
    ]
    for settings, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            vanilla(**{"epochs": 1, **settings}).fit(x, y)
    with pytest.raises(InputError, match=r"y must be of two classes or more, got one class, good"):
        vanilla().fit(x, ["good"] * len(x))
    with pytest.raises(ValueError, match="must contain at least one non-zero number"):
        vanilla().fit(x, y, np.zeros(len(x)))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        vanilla().fit(x, y, -np.ones(len(x)))
    with pytest.raises(NotFittedError):
        vanilla().reasons(x)


@pytest.mark.usefixtures("short_attacks")
def test_audit_is_of_the_network_at_the_estimators_settings(table, fitted):
    x, y = table[0][::30], table[1][::30]
    found = fitted.audit(x[:20], y[:20], k=2, budget="fast", all_rows=True)
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
    ).summary()
    baselines = ("auc_linear", "auc_logistic", "auc_boosting")
    for name in direct:
        assert direct[name] == told[name] or name.startswith(baselines)
    # Those of the rows of fit, scored on the audited ones.
    assert told["auc_linear"] is None
    assert direct["auc_logistic"] is direct["auc_boosting"] is None
    assert None not in (told["auc_logistic"], told["auc_boosting"])
    assert fitted.audit(x[:8] + 1e-9, budget="fast").summary()["auc_clean"] is None
    with pytest.raises(InputError, match=r"^R2ETClassifier\.audit: y must be of bad, good, got"):
        fitted.audit(x, ["ugly"] * len(x))


@pytest.fixture(scope="module")
def halves(table):
    """Half of a table of noisy labels, an estimator that has learned them by heart; the others."""
    order = np.random.default_rng(5).permutation(600)
    x, y = table[0].iloc[order], table[1][order]
    y = np.where(np.arange(600) % 5 == 0, y[::-1], y)
    model = vanilla(random_state=0, epochs=400, hidden=(64,)).fit(x[:150], y[:150])
    return model, (x[:150], y[:150]), (x[150:300], y[150:300])


@pytest.mark.slow
@pytest.mark.usefixtures("short_attacks")
def test_audit_leaves_out_the_rows_of_fit(halves):
    model, (x, y), (others, labels) = halves
    both = pd.concat([others, x]), np.concatenate([labels, y])
    found = model.audit(*both, budget="fast", k=1)
    first, *_ = str(found).splitlines()
    assert first.startswith("R2ETClassifier: 150 of the 300 rows given were used in training")
    assert "to validate) and are left out; the figures are of the other 150." in first
    known = found.result["training_rows"]
    held = sum(int(0.1 * (y == label).sum()) for label in model.classes_)
    assert (known["training"], known["validation"]) == (150 - held, held)
    assert {row["index"] for row in found.rows} == set(range(150))
    truth = roc_auc_score(labels == "good", model.decision_function(others))
    assert found.summary()["auc_clean"] == pytest.approx(truth)
    assert f"  {'test AUC':42} {truth:.3f}" in str(found)
    whole = model.audit(*both, budget="fast", k=1, all_rows=True)
    assert "training rows included" in str(whole).splitlines()[0]
    assert whole.summary()["auc_clean"] > truth + 0.03
    with pytest.raises(InputError, match=r"^audit: x must be rows that the training has not seen"):
        model.audit(x, y, budget="fast")
    with pytest.raises(InputError, match=r"\(with all_rows=True, --all-rows, all are\), got 150"):
        model.audit(x, budget="fast")
    again = pickle.loads(pickle.dumps(model)).audit(*both, budget="fast", k=1)
    assert again.summary() == found.summary()


@pytest.mark.usefixtures("short_attacks")
def test_audit_compares_with_what_the_same_rows_teach_others(halves):
    model, (x, y), (others, labels) = halves
    found = model.audit(others, labels, budget="fast", k=1)
    scaler = MinMaxScaler().fit(x)
    held = model.trained_.seen.val.digest
    rows = torch.isin(fingerprints(model.inputs(x)), held, invert=True).numpy()
    simple = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    simple.fit(scaler.transform(x)[rows], y[rows])
    truth = roc_auc_score(labels == "good", simple.decision_function(scaler.transform(others)))
    assert found.summary()["auc_logistic"] == pytest.approx(truth, abs=1e-4)
    boosted = HistGradientBoostingClassifier(max_iter=100, early_stopping=True).set_params(
        random_state=model.boosting_.seed
    )
    boosted.fit(model.inputs(x).float().double().numpy()[rows], y[rows])
    truth = roc_auc_score(labels == "good", boosted.predict_proba(model.inputs(others))[:, 1])
    assert found.summary()["auc_boosting"] == pytest.approx(truth)
    assert "  of boosting  " in str(found)
    bare = vanilla(epochs=1, baselines=False, random_state=0).fit(x, y)
    told = bare.audit(others, labels, budget="fast", k=1).summary()
    assert told["auc_logistic"] is told["auc_boosting"] is None
    assert told["auc_linear"] is not None
    poor = pickle.loads(pickle.dumps(model))
    with torch.no_grad():
        for last in list(poor.network_.parameters())[-2:]:
            last.neg_()  # predicts the other class
    assert "BELOW LOGISTIC REGRESSION" in str(poor.audit(others, labels, budget="fast", k=1))


@pytest.mark.usefixtures("short_attacks")
def test_without_rows_set_aside_all_are_rows_to_train_on(halves):
    _, (x, y), (others, labels) = halves
    model = vanilla(epochs=1, validation_fraction=0, random_state=0).fit(x, y)
    both = pd.concat([x, others]), np.concatenate([y, labels])
    known = model.audit(*both, budget="fast", k=1).result["training_rows"]
    assert (known["training"], known["validation"]) == (150, 0)


@pytest.mark.usefixtures("short_attacks")
def test_people_alike_by_chance_are_audited():
    random = np.random.default_rng(7)
    x = random.integers(0, 3, (400, 3)).astype(float)  # 27 kinds of people
    y = (x[:, 0] + random.random(400) > 1.5).astype(int)
    model = vanilla(k=1, epochs=2, random_state=0).fit(x[:300], y[:300])
    found = model.audit(x[300:], y[300:], budget="fast")
    assert found.summary()["rows"] == 100
    assert "no more than chance allows" in str(found)


def test_weights_are_those_of_scikit_learn(table):
    x, y = table
    x, y = x[:200], y[:200]
    given = np.where(y == "bad", 5.0, 0.5)

    def bad(fitted):
        return fitted.predict_proba(x)[:, 0].mean()

    plain = vanilla(random_state=0, baselines=False)
    heavy = bad(plain.fit(x, y, given))
    assert heavy > bad(plain.fit(x, y)) + 0.1
    by_class = vanilla(random_state=0, class_weight={"bad": 5, "good": 0.5}, baselines=False)
    assert bad(by_class.fit(x, y)) == heavy
    # Both multiply, and only what rows count for in relation to each other counts.
    halved = vanilla(random_state=0, class_weight={"bad": 10}, baselines=False)
    assert bad(halved.fit(x, y, np.full(len(y), 3.0))) == pytest.approx(heavy, abs=1e-6)
    balanced = vanilla(random_state=0, class_weight="balanced", baselines=False)
    by_hand = compute_sample_weight("balanced", y)
    assert bad(balanced.fit(x, y)) == pytest.approx(bad(plain.fit(x, y, by_hand)), abs=1e-6)
    kept = np.arange(200) % 3 > 0
    dropped = plain.fit(x, y, kept.astype(float)).predict_proba(x)
    assert np.array_equal(dropped, plain.fit(x[kept], y[kept]).predict_proba(x))


def test_every_training_row_has_its_own_weight(table, monkeypatch):
    x, y = table
    given = []

    def noted(network, data, *rest, **settings):
        given.append((data.train.x[:, 0], settings["sample_weight"]))
        return fit(network, data, *rest, **settings)

    def boosted(rows, _, weights, **__):
        given.append((torch.from_numpy(rows[:, 0]), weights))

    monkeypatch.setattr("r2et.estimator.classifier.fit", noted)
    monkeypatch.setattr("r2et.estimator.classifier.fit_boosting", boosted)
    first = MinMaxScaler().fit_transform(x)[:, 0]
    model = vanilla(epochs=1, validation_fraction=0.3).fit(x, y, 1 + first)
    assert len(given) == 2
    for feature, weights in given:
        assert len(weights) == model.trained_.seen.train.digest.numel() < 600
        np.testing.assert_allclose(weights, 1 + feature.numpy(), rtol=1e-6)


def test_rows_of_no_weight_are_no_training_rows(table):
    x, y = table[0][::10], table[1][::10]
    model = vanilla(epochs=1, random_state=0).fit(x, y, [1.0] * 40 + [0.0] * 20)
    parts = model.trained_.seen.parts(model.inputs(x)).parts
    assert (parts[:40] != UNSEEN).all()
    assert (parts[40:] == UNSEEN).all()


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_sparse_rows_are_written_out_or_refused(table, kind, monkeypatch):
    x, y = table
    rows = x.to_numpy()
    dense = vanilla(epochs=1, random_state=0).fit(rows, y)
    same = vanilla(epochs=1, random_state=0).fit(kind(rows), y)
    assert np.array_equal(same.predict_proba(kind(rows)), dense.predict_proba(rows))
    monkeypatch.setattr("r2et.estimator.training_rows.DENSE", 100)
    sentence = r"^R2ETClassifier: X must be dense, or a sparse matrix of at most 100 numbers"
    with pytest.raises(InputError, match=sentence + r".*, got 600 rows of 6 features\.$"):
        same.predict(kind(rows))
    with pytest.raises(InputError, match=sentence):
        vanilla().fit(kind(rows), y)


def test_a_pipeline_names_features_by_the_step_before(table):
    x, y = table
    x = x.assign(home=np.where(x["noise a"] > 0, "own", "rent"))
    encoded = ColumnTransformer(
        [("words", OneHotEncoder(), ["home"]), ("numbers", StandardScaler(), ["income", "debt"])],
        verbose_feature_names_out=False,
        sparse_threshold=1.0,
    )
    pipe = make_pipeline(encoded, vanilla(k=2, epochs=1, random_state=0)).fit(x, y)
    names = ["home_own", "home_rent", "income", "debt"]
    assert list(pipe.get_feature_names_out()) == names
    assert pipe[-1].top_features(pipe[:-1].transform(x[:1]))[0][0].startswith("x")
    encoded.set_params(words__sparse_output=False)
    named = make_pipeline(encoded, vanilla(k=2, epochs=1, random_state=0))
    named.set_output(transform="pandas").fit(x, y)
    assert list(named[-1].feature_names_in_) == names == list(named.get_feature_names_out())
    assert set(named[-1].top_features(named[:-1].transform(x[:5]))[0]) < set(names)
    assert list(clone(named).fit(x, y).get_feature_names_out()) == names
    with pytest.raises(InputError, match=r"input_features must be 4 names, got shape \(1,\)"):
        named[-1].get_feature_names_out(["a"])
    with pytest.raises(InputError, match="input_features must be equal to feature_names_in_"):
        named[-1].get_feature_names_out(["a", "b", "c", "d"])


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


@pytest.mark.slow
def test_the_weight_is_found_by_what_it_may_cost():
    numbers = np.random.default_rng(0)
    x = numbers.random((300, 4))
    y = (x[:, 0] + 0.3 * numbers.random(300) > 0.6).astype(int)
    settings = {"k": 2, "recipe": "r2et", "epochs": 2, "random_state": 0}
    model = R2ETClassifier(max_auc_drop=0.4, **settings).fit(x, y)
    assert model.search_.met
    assert model.search_.chosen in {trial.weight for trial in model.search_.trials if trial.weight}
    assert model.trained_.baselines is not None
    assert R2ETClassifier(**settings).fit(x, y).search_ is None
