"""Calibration and subgroups: against counts by hand."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from r2et import audit
from r2et.audit.settings import AuditSettings
from r2et.audit.subgroups import calibration, calibration_error, group_names, grouped_by
from r2et.errors import InputError
from r2et.region import L2

SETTINGS = AuditSettings(k=1)


def columns_of(probability, label, index=None):
    """Columns of a model of two classes that gives class 1 these probabilities."""
    odds = torch.tensor(probability, dtype=torch.float64).logit()
    return {
        "index": torch.arange(len(odds)) if index is None else torch.tensor(index),
        "logits": torch.stack([torch.zeros_like(odds), odds], 1),
        "label": torch.tensor(label),
    }


def test_ranges_of_probability_by_hand():
    columns = columns_of([0.11, 0.19, 0.15, 0.92, 0.98], [0, 1, 0, 1, 1])
    low, high = calibration(columns, SETTINGS)
    assert (low["low"], low["high"], low["rows"]) == (0.1, 0.2, 3)
    assert low["predicted"] == pytest.approx(0.15)
    assert low["observed"] == pytest.approx(1 / 3)
    assert low["observed_low"] < 1 / 3 < low["observed_high"] < 1
    assert (high["rows"], high["observed"]) == (2, 1)
    error = calibration_error(columns, SETTINGS)
    assert error.value == pytest.approx((3 * (1 / 3 - 0.15) + 2 * (1 - 0.95)) / 5)
    assert (error.low, error.rows) == (None, 5)


def test_true_probabilities_have_no_error_and_wrong_ones_theirs():
    random = np.random.default_rng(0)
    probability = random.random(40_000)
    came_true = (random.random(40_000) < probability).astype(int)
    assert calibration_error(columns_of(probability, came_true), SETTINGS).value < 0.02
    wrong = calibration_error(columns_of(probability**2, came_true), SETTINGS).value
    assert wrong == pytest.approx(1 / 6, abs=0.01)  # the integral of p - p^2


def test_of_several_classes_the_decision_comes_true():
    columns = {
        "index": torch.arange(3),
        "logits": torch.tensor([[9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0]]).double(),
        "label": torch.tensor([0, 1, 0]),
    }
    (only,) = calibration(columns, SETTINGS)
    assert (only["rows"], only["observed"]) == (3, pytest.approx(2 / 3))
    assert only["predicted"] > 0.99


def test_groups_have_the_auc_of_their_rows():
    random = np.random.default_rng(1)
    probability, label = random.random(60), random.integers(0, 2, 60)
    sex = ["f" if i % 3 else "m" for i in range(100)]
    index = random.permutation(100)[:60]
    columns = columns_of(probability, label, index)
    groups = grouped_by("sex", sex, columns, SETTINGS)["groups"]
    assert [group["value"] for group in groups] == ["f", "m"]
    for group in groups:
        inside = np.array([sex[i] == group["value"] for i in index])
        assert group["rows"] == inside.sum()
        assert group["auc"] == pytest.approx(roc_auc_score(label[inside], probability[inside]))
        assert group["auc_low"] < group["auc"] < group["auc_high"]
        assert group["observed"] == pytest.approx(label[inside].mean())
        assert group["predicted"] == pytest.approx(probability[inside].mean())
        assert group["precision"] is None


def test_a_group_of_one_class_has_no_auc():
    columns = columns_of([0.2, 0.3, 0.4], [1, 1, 0])
    one, two = grouped_by("by", ["a", "a", "b"], columns, SETTINGS)["groups"]
    assert (one["auc"], two["auc"], two["rows"]) == (None, None, 1)


def test_values_become_groups():
    assert group_names(["b", None, "a"]) == ["b", "missing", "a"]
    assert group_names([0.0, 1.0, 1.0]) == ["0", "1", "1"]
    ages = [float(v) for v in range(20, 60)]
    names = group_names([*ages, None])
    assert names[-1] == "missing"
    assert list(dict.fromkeys(names[:-1])) == ["20 to 29", "30 to 39", "40 to 49", "50 to 59"]
    assert names[ages.index(30)] == "30 to 39"
    many = group_names([f"town {i}" for i in range(40)] + ["Rome"] * 5)
    assert len(set(many)) == 13
    assert "28 other values" not in many
    assert many.count("29 other values") == 29


@pytest.mark.usefixtures("short_attacks")
def test_ids_and_groups_of_an_audit():
    torch.manual_seed(0)
    x, y = torch.rand(12, 3), torch.arange(12) % 2
    found = audit(
        nn.Linear(3, 2), x, y, k=1, region=L2(0.1), budget="fast", rows=8,
        ids=[f"C{i}" for i in range(12)], by={"half": ["low"] * 6 + ["high"] * 6},
    )  # fmt: skip
    for row in found.rows:
        assert row["id"] == f"C{row['index']}"
    (by,) = found.to_dict()["grouped_by"]
    assert by["column"] == "half"
    assert sum(group["rows"] for group in by["groups"]) == 8
    assert "by half" in str(found)
    inputs = found.to_dict()["inputs"]
    assert inputs["rows"] == 12
    assert len(inputs["data"]["sha256"]) == len(inputs["weights"]["sha256"]) == 64
    for bad in ({"ids": ["a"]}, {"by": {"half": [1, 2]}}, {"by": "half"}):
        with pytest.raises(InputError, match=r"^audit: (ids|by)"):
            audit(nn.Linear(3, 2), x, y, k=1, **bad)
    with pytest.raises(InputError, match="left out for a stream"):
        audit(nn.Linear(3, 2), iter([x]), k=1, ids=["a"])
