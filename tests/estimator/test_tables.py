"""R2ETClassifier on tables with texts, categories, flags, dates and gaps."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from r2et import R2ETClassifier, audit, reasons
from r2et.data import Column, load_table
from r2et.errors import InputError
from r2et.explain import IntegratedGradients
from r2et.models import MLP, HingeMLP, TableMLP
from r2et.region import Feasible

JOBS = ["clerk", "cook", "pilot"]


def vanilla(**settings):
    usual = {"k": 3, "recipe": "vanilla", "epochs": 3, "random_state": 0, "baselines": False}
    return R2ETClassifier(**{**usual, **settings})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = 240
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "pay": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(3000, 500, rows)),
            "job": pd.Categorical(rng.choice(JOBS, rows)),
            "home": rng.choice(["own", "rent"], rows),
            "member": rng.random(rows) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
        },
        index=np.arange(rows) // 2,  # an index that names rows twice
    )
    logit = (frame["age"] - 50) / 8 + 3 * (frame["job"] == "cook") - 2 * frame["member"]
    return frame, np.where(logit + rng.normal(0, 0.5, rows) > 0, "good", "bad")


@pytest.fixture(scope="module")
def fitted(table):
    return vanilla(epochs=40).fit(*table)


NAMES = ["age", "pay", "pay: missing", *(f"job: {job}" for job in JOBS)]
NAMES += ["home: rent", "member", "since"]


def test_a_table_is_encoded_as_load_table_does(table, fitted):
    x, _ = table
    assert list(fitted.feature_names_in_) == list(x.columns)
    assert fitted.n_features_in_ == 6
    assert list(fitted.get_feature_names_out()) == NAMES
    assert fitted.groups_ == ((3, 4, 5),)
    kinds = {column.name: column.kind for column in fitted.schema_.columns}
    loaded = load_table(x.assign(y=table[1]), "y")
    assert kinds == {column.name: column.kind for column in loaded.schema.columns}
    # By hand, from the rows that were trained on.
    seen = fitted.trained_.seen.parts(fitted.inputs(x)).parts == 1
    assert 200 < seen.sum() < 240
    known = x[seen]
    encoded = fitted.inputs(x).numpy()
    filled = x.assign(pay=x["pay"].fillna(known["pay"].median()))
    for place, name in ((0, "age"), (1, "pay"), (8, "since")):
        low, high = known[name].min(), known[name].max()
        scaled = (filled[name].clip(low, high) - low) / (high - low)
        np.testing.assert_allclose(encoded[:, place], scaled, atol=1e-6)
    assert fitted.feature_low_[0] == known["age"].min()
    assert fitted.feature_range_[0] == known["age"].max() - known["age"].min()
    assert np.array_equal(encoded[:, 2], x["pay"].isna())
    for place, job in enumerate(JOBS):
        assert np.array_equal(encoded[:, 3 + place], x["job"] == job)
    assert np.array_equal(encoded[:, 6], x["home"] == "rent")
    assert np.array_equal(encoded[:, 7], x["member"])


def test_it_learns_from_words(table, fitted):
    x, y = table
    plain = pd.get_dummies(x.drop(columns="since"), dtype=float).fillna(3000)
    linear = LogisticRegression(max_iter=1000).fit(MinMaxScaler().fit_transform(plain), y)
    assert fitted.score(x, y) > linear.score(MinMaxScaler().fit_transform(plain), y) - 0.05
    assert fitted.predict_proba(x).shape == (240, 2)
    assert fitted.explain(x).shape == (240, len(NAMES))
    assert {len(row) for row in fitted.top_features(x[:9])} == {3}


def test_order_of_rows_and_columns_dtypes_and_unused_gaps_do_not_matter(table, fitted):
    x, _ = table
    as_text = x.astype({"job": object, "home": "category", "member": object})
    assert np.array_equal(fitted.predict_proba(as_text), fitted.predict_proba(x))
    one_by_one = [fitted.predict_proba(x.iloc[i : i + 1])[0] for i in range(5)]
    np.testing.assert_allclose(one_by_one, fitted.predict_proba(x)[:5], atol=1e-12)


def test_numbers_alone_are_as_before_and_kinds_make_a_table_of_them(table):
    x, y = table[0][["age"]].assign(code=np.arange(240) % 4), table[1]
    numbers = vanilla().fit(x, y)
    array = x.to_numpy()
    same = vanilla().fit(array, y).predict_proba(array)
    assert np.array_equal(numbers.predict_proba(x), same)
    assert list(numbers.get_feature_names_out()) == ["age", "code"]
    given = vanilla(kinds={"code": "category"}).fit(x, y)
    assert list(given.get_feature_names_out()) == ["age", *(f"code: {i}" for i in range(4))]
    gaps = x.astype(float).where(x["age"] > 20)
    assert "age: missing" in vanilla().fit(gaps, y).get_feature_names_out()
    assert len(vanilla().fit(x.astype({"age": "Int64"}), y).get_feature_names_out()) == 2


def test_it_pickles_and_clones(table, fitted):
    x, y = table
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(x), fitted.predict_proba(x))
    assert again.reasons(x[:2]) == fitted.reasons(x[:2])
    kinds = {"home": Column("home", "category", categories=("own", "rent", "other"), other="other")}
    copy = clone(vanilla(kinds=kinds, groups=None))
    assert copy.get_params()["kinds"] == kinds
    assert "home: other" in copy.fit(x, y).get_feature_names_out()


def test_it_is_scored_and_searched_by_scikit_learn(table):
    x, y = table
    scores = cross_val_score(vanilla(epochs=20), x, y, cv=3, scoring="roc_auc")
    assert scores.min() > 0.8
    grid = {"recipe": ["vanilla", "r2et-reasons"], "radius": [0.1, 0.3]}
    search = GridSearchCV(vanilla(epochs=1), grid, cv=2, error_score="raise").fit(x, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.predict(x).shape == (240,)


def test_weights_of_rows_and_classes(table):
    x, y = table
    kept = np.arange(240) % 3 > 0
    dropped = vanilla().fit(x, y, kept.astype(float)).predict_proba(x)
    assert np.array_equal(dropped, vanilla().fit(x[kept], y[kept]).predict_proba(x))
    heavy = vanilla(class_weight={"bad": 20}, epochs=20).fit(x, y).predict_proba(x)[:, 0].mean()
    assert heavy > vanilla(epochs=20).fit(x, y).predict_proba(x)[:, 0].mean() + 0.05


def test_reasons_are_of_columns_in_their_words(table, fitted):
    x, _ = table
    told = fitted.reasons(x[:20], toward="bad", k=2)
    assert told.k == 2
    truth = {name: x[name].iloc[:20].tolist() for name in ("age", "job", "home", "member")}
    named = {reason.column for person in told for reason in person.reasons}
    assert {"age", "job"} <= named <= set(x.columns)
    for person in told:
        for reason in person.reasons:
            if reason.column in truth:
                assert reason.value == str(truth[reason.column][person.row])
    assert fitted.reasons(x[:3]).k == 3
    assert reasons(fitted, x[:20], toward="bad", k=2) == told
    accepted = fitted.reasons(x[:2], toward="bad", baseline="accepted", reference=x)
    assert "decided otherwise" in accepted.baseline


@pytest.mark.parametrize("recipe", ["certified", "vanilla"])
def test_contributions_of_all_columns_tell_a_rows_log_odds_from_the_baselines(table, recipe):
    """Also of a network that bends at every bin of its columns."""
    x, y = table
    fitted = vanilla(recipe=recipe, epochs=40).fit(x, y)
    whole = fitted.reasons(x[:20], toward="bad", k=6)
    other = fitted.reasons(x[:20], toward="good", k=6)
    base = fitted.network_(fitted.trained_.mean[None]).diff(dim=1).item()
    off = []
    for i in range(20):
        total = sum(r.contribution for r in other[i].reasons)
        total -= sum(r.contribution for r in whole[i].reasons)
        off.append(abs(total - (fitted.decision_function(x[:20])[i] - base)))
    # Printed to two decimals, six columns each.
    assert sorted(off)[18] < 0.05
    assert ("128 points" in whole.explainer) == (recipe == "vanilla")


def test_reasons_hold_for_changes_of_the_table(table, fitted):
    x, _ = table
    changes = Feasible(fitted.schema_, moves={"age": 1})
    told = fitted.reasons(x[:6], region=changes, k=1)
    assert told.shares()["proved"] > 0
    for i, person in enumerate(told):  # all three ages, tried by hand
        ages = [x["age"].iloc[i] + step for step in (-1, 0, 1)]
        moved = pd.concat([x.iloc[i : i + 1].assign(age=age) for age in ages])
        moved = moved[moved["age"].between(x["age"].min(), x["age"].max())]
        same = fitted.predict(moved) == person.decision
        sets = {p.columns for p, kept in zip(fitted.reasons(moved, k=1), same, strict=True) if kept}
        assert (len(sets) == 1) == bool(person.proved)


def test_numbers_have_reasons_in_their_own_units(table):
    x, y = table[0][["age"]].assign(pay=table[0]["pay"].fillna(3000)), table[1]
    model = vanilla(epochs=20, k=2).fit(x, y)
    for rows in (x[:9], x.iloc[:9]):
        for i, person in enumerate(model.reasons(rows)):
            for reason in person.reasons:
                value = float(reason.value)
                assert value == pytest.approx(x[reason.column].iloc[i], abs=0.5)
    plain = vanilla(epochs=1).fit(x.to_numpy(), y)
    assert plain.reasons(torch.tensor(x.to_numpy())[:2]) == plain.reasons(x.to_numpy()[:2])
    assert set(plain.schema_.names) == {"x0", "x1"}
    single = vanilla(epochs=1).fit(x[["age"]], y)
    assert {p.columns for p in single.reasons(x[["age"]])} <= {("age",), ()}


# After one epoch a network may be below it.
@pytest.mark.filterwarnings("ignore:fit. the trained network is clearly below")
def test_a_recipe_of_reasons_ranks_columns(table):
    x, y = table
    assert vanilla(recipe="r2et-reasons", epochs=1, k=8).fit(x, y).k_ == 5
    assert vanilla(epochs=1, k=8).fit(x, y).k_ == 8
    only = x[["job"]]
    assert vanilla(recipe="r2et-reasons", epochs=1).fit(only, y).reasons(only[:1]).k == 3


def encoded(**settings):
    words = ("onehot", OneHotEncoder(sparse_output=False, **settings), ["job", "home"])
    steps = ColumnTransformer([words, ("num", MinMaxScaler(), ["age"])])
    return steps.set_output(transform="pandas")


def test_a_pipeline_with_an_encoder_has_reasons_of_columns(table):
    x, y = table
    pipe = make_pipeline(encoded(handle_unknown="ignore"), vanilla(epochs=20)).fit(x, y)
    last = pipe[-1]
    assert last.groups_ == ((0, 1, 2), (3, 4))
    assert [column.name for column in last.schema_.columns] == ["job", "home", "age"]
    assert pipe.get_feature_names_out()[0] == "onehot__job_clerk"
    told = last.reasons(pipe[:-1].transform(x[:9]), toward="bad")
    assert {c for person in told for c in person.columns} <= {"job", "home", "age"}
    for person in told:
        for reason in person.reasons:
            if reason.column != "age":
                assert reason.value == x[reason.column].iloc[person.row]
    assert reasons(pipe, x[:9], toward="bad", k=3) == told
    assert cross_val_score(pipe, x, y, cv=2, scoring="roc_auc").min() > 0.7
    strange = x[:3].assign(job=["cook", "diver", "cook"])
    assert pipe.predict(strange).shape == (3,)
    with pytest.raises(
        InputError, match=r"rows must be of one category of 'job' each, got 0 in row 1"
    ):
        reasons(pipe, strange)
    apart = make_pipeline(encoded(), vanilla(epochs=1, groups=())).fit(x, y)
    assert apart[-1].groups_ == ()
    named = make_pipeline(encoded(), vanilla(epochs=1, groups=[["onehot__home_own", 4]])).fit(x, y)
    assert named[-1].groups_ == ((3, 4),)


@pytest.mark.usefixtures("short_attacks")
def test_audit_of_a_table_leaves_out_the_rows_of_fit(table):
    x, y = table
    model = vanilla(explainer=IntegratedGradients(points=3)).fit(x[:200], y[:200])
    found = model.audit(x[194:206], y[194:206], budget="fast")
    assert found.summary()["rows"] == 6
    assert found.result["names"] == NAMES
    same = audit(model, x[194:206], y[194:206], budget="fast", region=None)
    assert same.summary() == found.summary()
    assert (same.result["name"], same.result["names"]) == ("R2ETClassifier", NAMES)


def test_bad_input_is_one_sentence(table, fitted):
    x, y = table
    unseen = x[:3].assign(job=["cook", "diver", "cook"])
    empty = x[:3].assign(home=["own", None, "own"])
    cases = [
        (unseen, "apply_schema: column 'job' must be one of clerk, cook, pilot, got 'diver' in"),
        (empty, "apply_schema: column 'home' must be without missing values, got a missing value"),
        (x.to_numpy(), "R2ETClassifier: X must be a DataFrame with the columns of fit, got nda"),
    ]
    for rows, sentence in cases:
        with pytest.raises(InputError, match=f"^{sentence}"):
            fitted.predict(rows)
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        fitted.predict(x.drop(columns="age"))
    with pytest.raises(InputError, match=r"reasons: toward must be of bad, good, got \['ugly'\]"):
        fitted.reasons(x[:1], toward="ugly")
    cases = [
        ({"groups": ()}, r"groups must be None for a table of other cells than numbers"),
        ({"kinds": {"jobs": "category"}}, r"column name must be one of .*did you mean 'job'\?"),
        ({"kinds": {"job": "word"}}, "kinds must be of number, integer, date, binary, category"),
        ({"kinds": "job"}, "kinds must be a dictionary of kinds by column name, got job"),
    ]
    for settings, sentence in cases:
        with pytest.raises(InputError, match=f"^R2ETClassifier: {sentence}"):
            vanilla(**settings).fit(x, y)
    with pytest.raises(InputError, match=r"kinds must be left out unless X is a DataFrame"):
        vanilla(kinds={"job": "category"}).fit(x[["age"]].to_numpy(), y)
    with pytest.raises(
        InputError, match=r"X must be a table with a column to learn from, got a: it"
    ):
        vanilla().fit(pd.DataFrame({"a": ["same"] * 240}), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        vanilla().fit(x, y[:10])
    with pytest.raises(ValueError, match="contains NaN"):
        vanilla().fit(x, np.where(y == "bad", np.nan, 1.0))


@pytest.mark.parametrize(
    ("settings", "network"),
    [
        ({"recipe": "certified"}, HingeMLP),
        ({"recipe": "vanilla"}, TableMLP),
        ({"recipe": "r2et"}, TableMLP),
        ({"recipe": "sp"}, MLP),
        ({"recipe": "vanilla", "hidden": (8,)}, MLP),
    ],
)
@pytest.mark.filterwarnings("ignore:fit. the trained network is clearly below")
def test_the_network_is_that_of_fit(settings, network):
    """And a column that is constant in the rows trained on counts for nothing, in any of them."""
    numbers = np.random.default_rng(0)
    x = numbers.normal(size=(300, 4)) * [1.0, 100.0, 1.0, 0.0] + [0.0, 5.0, 0.0, 3.0]
    y = x[:, 0] + 0.3 * numbers.normal(size=300) > 0
    model = R2ETClassifier(k=2, epochs=3, random_state=0, **settings).fit(x, y)
    assert type(model.network_) is network
    scores = model.explain(x)
    assert bool((scores[:, 3] == 0).all())
    assert bool((scores[:, 0] > 0).all())
    other = x.copy()
    other[:, 3] = 1e4
    assert np.array_equal(model.predict_proba(other), model.predict_proba(x))
