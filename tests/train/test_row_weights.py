"""Weights of rows and classes: what they are, and that the loss feels them."""

import numpy as np
import pytest
import torch
from tests.credit import credit_table
from tests.training_data import small

from r2et.data import load_table
from r2et.errors import InputError
from r2et.train import fit
from r2et.train.row_weights import row_weights


def predicted(data, **weights):
    """How many rows of the training the network calls class 1."""
    done = fit(None, data, "vanilla", epochs=5, seed=0, progress=False, baselines=False, **weights)
    return int(done.model(data.train.x).argmax(1).sum())


def test_without_any_all_rows_count_alike():
    assert row_weights(small()) is None


def test_they_are_one_on_average_and_multiply():
    data = small(rows=4)
    given = row_weights(data, sample_weight=[1, 2, 3, 2])
    assert torch.allclose(given, torch.tensor([0.5, 1.0, 1.5, 1.0]))
    by_class = torch.tensor([1.0, 3.0])[data.train.y]
    both = row_weights(data, {"1": 3.0}, [1, 2, 3, 2])
    assert torch.allclose(both / both.sum(), given * by_class / (given * by_class).sum())
    assert torch.allclose(row_weights(data, {1: 3.0}), row_weights(data, {"1": 3.0}))


def test_balanced_classes_have_the_same_mass():
    data = small()
    weights = row_weights(data, "balanced", np.linspace(0.1, 1, 300))
    masses = [float(weights[data.train.y == label].sum()) for label in (0, 1)]
    assert masses[0] == pytest.approx(masses[1], rel=1e-5)
    assert float(weights.mean()) == pytest.approx(1)


def test_equal_weights_train_the_same_network():
    data = small()
    plain, weighted = (
        fit(None, data, "vanilla", epochs=2, seed=0, progress=False, sample_weight=w).model
        for w in (None, torch.full((300,), 7.0))
    )
    for one, two in zip(plain.parameters(), weighted.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-5)


def test_heavy_rows_pull():
    data = small()
    assert predicted(data, class_weight={"1": 20.0}) > predicted(data) + 20
    heavy = torch.where(data.train.y == 0, 20.0, 1.0)
    assert predicted(data, sample_weight=heavy) < predicted(data) - 20


def test_a_column_of_a_table_weighs_its_rows():
    table = credit_table(200)
    table["mass"] = np.where(table["class"] == "bad", 30.0, 1.0)
    data = load_table(table, "class", positive="bad", weights="mass")
    assert "mass" not in data.names
    assert ("mass", "it weighs the rows") in data.schema.dropped
    assert torch.equal(data.weights > 1, data.train.y == 1)
    plain = load_table(table.drop(columns="mass"), "class", positive="bad")
    assert predicted(data) > predicted(plain) + 10


def test_a_checkpoint_of_other_weights_is_refused(tmp_path):
    fit(None, small(), "vanilla", epochs=1, out=tmp_path, progress=False)
    with pytest.raises(InputError, match="weights"):
        fit(
            None,
            small(),
            "vanilla",
            epochs=1,
            out=tmp_path,
            progress=False,
            class_weight="balanced",
        )


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ({"sample_weight": [1.0]}, "sample_weight must be 300 numbers from 0 on"),
        ({"sample_weight": [-1.0] * 300}, "sample_weight must be 300 numbers from 0 on"),
        ({"sample_weight": ["a"] * 300}, "sample_weight must be 300 numbers from 0 on"),
        ({"sample_weight": [0.0] * 300}, "sample_weight must be above 0 for some rows"),
        ({"sample_weight": [float("nan")] * 300}, "one per training row, got nan, inf or"),
        ({"class_weight": {"1": 0.0}}, "class_weight must be above 0 for rows of two classes"),
        ({"class_weight": "even"}, "class_weight must be None, 'balanced' or"),
        ({"class_weight": {"2": 1.0}}, "class_weight must be of 0, 1"),
        ({"class_weight": {"1": -1.0}}, "class_weight must be numbers from 0 on"),
    ],
)
def test_what_is_no_weight(weights, sentence):
    with pytest.raises(InputError, match=sentence):
        fit(None, small(), "vanilla", epochs=1, progress=False, **weights)


@pytest.mark.parametrize(("cell", "got"), [("-1", "-1 in row 3"), ("heavy", "text")])
def test_a_column_that_weighs_nothing(cell, got):
    table = credit_table(30).assign(mass="1")
    table.loc[3, "mass"] = cell
    with pytest.raises(InputError, match=f"weights 'mass' must be a number from 0 on.*{got}"):
        load_table(table, "class", weights="mass")
