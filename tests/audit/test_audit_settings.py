"""What an audit is asked for, and refuses in one sentence."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from r2et import audit
from r2et.audit import compare
from r2et.errors import InputError


@pytest.mark.usefixtures("short_attacks")
def test_numbers_of_numpy_are_numbers():
    x, net = torch.rand(6, 4), nn.Linear(4, 2)
    given = {"k": np.int64(2), "rows": np.int32(5), "seed": np.uint8(3), "chunk": np.int64(4)}
    found = audit(net, x, minutes=np.float32(0.5), budget="fast", **given)
    plain = audit(net, x, k=2, rows=5, seed=3, chunk=4, minutes=0.5, budget="fast")
    assert found.result["rows"] == plain.result["rows"]
    assert json.loads(json.dumps(found.to_dict()))["settings"]["k"] == 2
    for bad in (np.float64(2), True, np.bool_(True)):
        with pytest.raises(InputError, match="audit: k must be a positive whole number, got"):
            audit(net, x, k=bad)


def test_the_package_can_be_called_and_searched():
    import r2et.audit

    assert r2et.audit is audit
    assert r2et.audit.compare is compare
    assert callable(r2et.audit)


BAD = [
    ({"k": 6}, r"^audit: k must be in 1\.\.5 for 6 features, got 6"),
    ({"k": 2.0}, r"^audit: k must be a positive whole number, got 2\.0"),
    ({"budget": "huge"}, r"^audit: budget must be fast, standard or thorough, got huge"),
    ({"minutes": "5"}, r"^audit: minutes must be None or a positive number, got '5'"),
    ({"minutes": -1}, r"^audit: minutes must be None or a positive number, got -1"),
    ({"rows": 0}, r"^audit: rows must be None or a positive whole number, got 0"),
    ({"chunk": 0}, r"^audit: chunk must be a positive whole number, got 0"),
    ({"seed": -1}, r"^audit: seed must be a whole number, 0 or more, got -1"),
    ({"region": "ball"}, r"region must be"),
    (
        {"explainer": "Gradient"},
        r"^audit: explainer must be an Explainer or 'reasons', got Gradient",
    ),
    ({"names": ["a"]}, r"^audit: names must be 6 names, one per score, got 1 names"),
    ({"names": 5}, r"^audit: names must be 6 names, one per score, got 5"),
    ({"names": "abcdef"}, r"^audit: names must be 6 names, one per score, got abcdef"),
    ({"classes": 5}, r"^audit: classes must be 2 names, one per class of the model, got 5"),
    ({"classes": ["a"]}, r"^audit: classes must be 2 names, one per class of the model, got 1"),
    ({"name": 5}, r"^audit: name must be None or a text, got 5"),
    ({"partial": 5}, r"^audit: partial must be None or a path, got 5"),
    ({"minutes": math.inf}, r"^audit: minutes must be None or a positive number, got inf"),
    ({"baseline": "none"}, r"^audit: baseline must be a finite number, or one per entry"),
    ({"baseline": [1, 2]}, r"^audit: baseline must be a finite number, or one per entry"),
    ({"engine": "proceses"}, r"^engine: kind must be .* \(did you mean 'processes'\?\)"),
    ({"y": [0] * 3}, r"^audit: y must be 4 classes, as whole numbers 0, 1"),
    ({"y": ["a", "b", "a", "b"]}, r"^audit: y must be 4 classes, as whole numbers 0, 1"),
    ({"y": [0, 1, 2, 0]}, r"^audit: y must be in 0\.\.1, the model's classes, got 2"),
    ({"y": [0, 1, -1, 0]}, r"^audit: y must be 4 classes"),
    ({"x": [["a"] * 6] * 4}, r"^audit: x must be numbers \(encode text columns first\)"),
    ({"x": [[math.nan] * 6] * 4}, r"^audit: x must be finite, got NaN or infinity in 4 of 4 rows"),
    ({"x": []}, r"^audit: x must be a batch"),
    ({"x": 3}, r"^audit: x must be a tensor, an array, a DataFrame or batches"),
    ({"x": iter([])}, r"^audit: x must be at least one batch, got none"),
    ({"model": "net"}, r"^audit: model must be a torch\.nn\.Module"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_one_sentence(change, message):
    torch.manual_seed(0)
    given = {"model": nn.Linear(6, 2), "x": torch.rand(4, 6), "y": None, "k": 2, **change}
    with pytest.raises(InputError, match=message):
        audit(**given)
