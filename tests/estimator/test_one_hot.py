"""Features that are one column's categories, found by scikit-learn's names or given."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

from r2et.errors import InputError
from r2et.estimator.one_hot import column_titles, given_groups, groups_by_name

ROWS = 60


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "job": rng.choice(["blue_collar", "clerk", "white_collar"], ROWS),
            "home": rng.choice(["own", "rent"], ROWS),
            "home_type": rng.choice(["flat", "house", "other_kind"], ROWS),
            "age": rng.integers(18, 80, ROWS),
            "flag_a": rng.integers(0, 2, ROWS),
            "flag_b": rng.integers(0, 2, ROWS),
        }
    )


@pytest.mark.parametrize("verbose", [True, False])
def test_what_an_encoder_made_of_a_column_is_found_again(frame, verbose):
    """The encoder itself knows how many categories each column has: the names must say the same."""
    words = ["job", "home", "home_type"]
    encoder = ColumnTransformer(
        [("onehot", OneHotEncoder(sparse_output=False), words)],
        remainder="passthrough",
        verbose_feature_names_out=verbose,
    )
    rows = encoder.fit_transform(frame)
    names = [str(name) for name in encoder.get_feature_names_out()]
    sizes = [len(labels) for labels in encoder.named_transformers_["onehot"].categories_]
    ends = np.cumsum([0, *sizes])
    truth = tuple(tuple(range(a, b)) for a, b in pairwise(ends))
    groups = groups_by_name(names, rows)
    assert groups == truth
    assert column_titles(names, groups) == (*words, "age", "flag_a", "flag_b")


def test_categories_that_no_row_holds_are_of_their_column():
    labels = [["clerk", "cook", "diver", "pilot"]]
    jobs = pd.DataFrame({"job": ["cook", "diver", "cook"]})
    encoder = OneHotEncoder(categories=labels, sparse_output=False).fit(jobs)
    rows = np.hstack([encoder.transform(jobs), [[0.0], [0.0], [0.0]]])
    names = [*encoder.get_feature_names_out(), "other"]
    assert groups_by_name(names, rows) == ((0, 1, 2, 3),)


def test_flags_that_are_no_alternatives_stay_apart():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert groups_by_name(["has_cat", "has_dog"], rows) == ()
    assert groups_by_name(["has_cat", "has_dog"], rows[:2] * 0.5) == ()
    # A dropped category: rows of no 1 are of that, so that nothing says which are one column.
    assert groups_by_name(["job_cook", "job_pilot"], np.array([[1.0, 0.0], [0.0, 0.0]])) == ()
    # Alike in all but their names, and names of one step.
    assert groups_by_name(["cat", "dog"], rows[:2]) == ()
    assert groups_by_name(["flags__cat", "flags__dog"], rows[:2]) == ()
    assert groups_by_name(["has_cat", "has_dog"], rows[:2]) == ((0, 1),)


def test_a_transformers_prefix_goes_where_names_stay_different():
    assert column_titles(["a__x", "b__x"], ()) == ("a__x", "b__x")
    assert column_titles(["a__x", "y"], ()) == ("a__x", "y")
    assert column_titles(["a__x", "b__y"], ()) == ("x", "y")
    assert column_titles(["cat", "dog", "age"], ((0, 1),)) == ("cat / dog", "age")


def test_given_groups_are_by_name_or_place():
    names, rows = ["cat", "dog", "age"], np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]])
    assert given_groups("here", [["dog", "cat"]], names, rows) == ((0, 1),)
    assert given_groups("here", [np.array([0, 1])], names, rows) == ((0, 1),)
    assert given_groups("here", (), names, rows) == ()


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ("cat", "groups must be None, or a list of lists of features, by name or place, got cat"),
        (["cat"], "groups must be None, or a list of lists of features, by name or place, got cat"),
        (
            [["cow", "dog"]],
            r"groups must be of features \(cat, dog, age\) or their places, got cow",
        ),
        ([[0, 3]], r"groups must be of features \(cat, dog, age\) or their places, got 3"),
        ([["cat"]], "groups must be neighbouring features .* got \\['cat'\\]"),
        ([["cat", "age"]], "groups must be neighbouring features .* got \\['cat', 'age'\\]"),
        (
            [["dog", "age"]],
            r"exactly one is 1 in every row, got \['dog', 'age'\] with \[0.0, 3.0\] in row 0",
        ),
        (
            [[0, 1], [1, 0]],
            r"groups must be without a feature in two of them, got \['cat', 'dog'\]",
        ),
    ],
)
def test_bad_groups(groups, sentence):
    names, rows = ["cat", "dog", "age"], np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]])
    with pytest.raises(InputError, match=rf"^here: {sentence}" if sentence[0] == "g" else sentence):
        given_groups("here", groups, names, rows)
