"""The recipe `certified`, trained and proved here and now on a real table."""

import pytest

from r2et.certify import IntervalCertifier
from r2et.data import load
from r2et.explain import Gradient
from r2et.metrics import auc
from r2et.train import fit
from r2et.train.defaults import default_network

RADIUS, ROWS = 0.1, 400


@pytest.fixture(scope="module")
def measured():
    """Proved share of rows at the radius, and AUC, of `vanilla` and `certified`."""
    data = load("adult")
    shares, aucs = {}, {}
    for recipe in ("vanilla", "certified"):
        network = default_network(data)  # the same for both: what is compared is the penalty
        fitted = fit(network, data, recipe, k=8, radius=RADIUS, epochs=3, seed=0, progress=False)
        model = fitted.model.eval()
        radius = IntervalCertifier(limit=1.0)(model, Gradient(), data.test.x[:ROWS], k=8).radius
        shares[recipe] = float((radius >= RADIUS).double().mean())
        aucs[recipe] = auc(model, data.test.x, data.test.y)
    return shares, aucs


@pytest.mark.slow
def test_nearly_all_rows_are_proved_and_few_of_vanillas(measured):
    shares, _ = measured
    assert shares["certified"] >= 0.95
    assert shares["vanilla"] < 0.5


def test_the_price_is_small(measured):
    _, aucs = measured
    assert aucs["certified"] >= aucs["vanilla"] - 0.01
