"""Risks of A.5: by hand, and their order."""

import math

import pytest
import torch

from nets import randn
from r2et.certify import ranking_risk_bound
from r2et.certify.risk import ramp
from r2et.errors import InputError


def test_by_hand():
    scores = torch.tensor([[3.0, 2.0, 1.0]])
    samples = torch.tensor(
        [[[3.0, 2.0, 1.0]], [[1.0, 2.0, 3.0]], [[3.0, 1.0, 2.5]], [[2.0, 1.0, 1.5]]]
    )
    risk = ranking_risk_bound(scores, samples, 1, u=1.5, epsilon=0.5, chromatic=1)
    # Gaps of the samples: (1, 2), (-1, -2), (2, 0.5), (1, 0.5).
    assert float(risk.true) == pytest.approx((0 + 1 + 0 + 0) / 4)
    assert float(risk.surrogate_true) == pytest.approx((1 / 6 + 1 + 1 / 3 + 1 / 2) / 4)
    assert float(risk.empirical) == 0.0
    assert float(risk.surrogate) == pytest.approx(1 / 6)
    assert float(risk.margin) == pytest.approx(1 / 2)
    assert risk.tail == pytest.approx(2 * math.exp(-2 * 2 * 0.25))


def test_the_surrogate_lies_between_the_risks_it_joins():
    scores, samples = randn(20, 7, seed=1), randn(50, 20, 7, seed=2)
    risk = ranking_risk_bound(scores, samples, 3, u=0.4)
    assert bool((risk.true <= risk.surrogate_true).all())
    assert bool((risk.empirical <= risk.surrogate).all())
    assert bool((risk.surrogate <= risk.margin).all())
    assert bool(((risk.low <= risk.true) & (risk.true <= risk.high)).all())
    assert risk.tail > 1  # with chi = 1 + m the paper's tail says nothing


def test_the_interval_holds_as_often_as_it_says():
    # A gap of 1 + noise: the share of negative gaps is known.
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(100, 400, 2, generator=generator, dtype=torch.float64)
    scores = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(400, 1)
    risk = ranking_risk_bound(scores, scores + noise, 1, u=1.0, confidence=0.9)
    exact = 0.5 * math.erfc(1 / math.sqrt(2) / math.sqrt(2))
    held = ((risk.low <= exact) & (exact <= risk.high)).double().mean()
    assert float(held) >= 0.9


def test_the_ramp_is_the_papers():
    z = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0])
    assert ramp(z, 2.0).tolist() == [1.0, 1.0, 0.75, 0.5, 0.0]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("u", {"u": 0.0}),
        ("epsilon", {"u": 1.0, "epsilon": -1}),
        ("chromatic", {"u": 1.0, "chromatic": 99}),
    ],
)
def test_bad_settings_are_refused(name, settings):
    with pytest.raises(InputError, match=f"ranking_risk_bound: {name} must be"):
        ranking_risk_bound(randn(3, 4), randn(5, 3, 4), 2, **settings)


def test_samples_of_another_shape_are_refused():
    with pytest.raises(InputError, match="samples must be of shape"):
        ranking_risk_bound(randn(3, 4), randn(5, 4, 3), 2, u=1.0)
