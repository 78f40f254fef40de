"""Two models by hand."""

import pytest

from r2et.audit import Audit, compare
from r2et.errors import InputError


def told(name, index, precision):
    settings = {"k": 2, "radius": 0.1, "norm": "l2"}
    rows = {"index": index, "precision_strong": precision}
    return Audit({"name": name, "summary": {}, "settings": settings, "rows": rows})


def test_a_difference_is_of_the_rows_that_both_were_audited_on():
    one = told("one", [0, 2, 1, 5], [0.0, 0.5, 1.0, None])
    two = told("two", [1, 2, 3, 5], [0.5, 0.25, 1.0, 0.5])
    test = compare([one, two]).difference("one", "two")
    assert test.difference == pytest.approx((0.5 + 0.25) / 2)
    with pytest.raises(InputError, match="measured on at least 2 rows of both one and three"):
        compare([one, told("three", [2, 9], [0.5, 0.5])]).difference("one", "three")
