"""Softening is averaging over logistic noise: g~(x) = E g(x + L / rho), L logistic.

True for relu, hence for every sum of relus; so torch's own functions, averaged numerically, are
the reference here.
"""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from r2et.models import piecewise_linear
from r2et.models.piecewise_linear import SoftHinge, SoftMagnitude, SoftPReLU, softplus

X = torch.linspace(-8, 8, 41, dtype=torch.float64)


def averaged(function, x, rho):
    """E function(x + L / rho) by the trapezoidal rule, good to 1e-8."""
    noise = torch.linspace(-45, 45, 450_001, dtype=torch.float64)
    density = torch.sigmoid(noise) * torch.sigmoid(-noise)
    return torch.stack([torch.trapezoid(function(v + noise / rho) * density, noise) for v in x])


@pytest.mark.parametrize("rho", [0.7, 5.0])
@pytest.mark.parametrize(
    ("made", "function"),
    [
        (piecewise_linear.relu(), torch.relu),
        (piecewise_linear.leaky(0.2), nn.LeakyReLU(0.2)),
        (piecewise_linear.leaky(-0.3), nn.LeakyReLU(-0.3)),
        (piecewise_linear.clip(0.0, 6.0), F.relu6),
        (piecewise_linear.clip(-1.5, 0.5), nn.Hardtanh(-1.5, 0.5)),
        (piecewise_linear.floor(2.0), nn.Threshold(2.0, 2.0)),
        (piecewise_linear.hard_sigmoid(), F.hardsigmoid),
        (piecewise_linear.soft_shrink(0.8), nn.Softshrink(0.8)),
    ],
)
def test_softening_averages_torchs_function_over_logistic_noise(made, function, rho):
    expected = averaged(function, X, rho)
    torch.testing.assert_close(made.smooth(X, rho), expected, rtol=0, atol=1e-7)


def test_a_gated_hinge_is_its_input_times_the_gate():
    gate, swish = piecewise_linear.hard_sigmoid(), piecewise_linear.hard_sigmoid(gated=True)
    torch.testing.assert_close(swish.smooth(X, 3.0), X * gate.smooth(X, 3.0))
    torch.testing.assert_close(swish.smooth(X, 1e6), F.hardswish(X), rtol=0, atol=1e-5)


def test_leaky_softplus_is_its_closed_form():
    rho, slope = 3.0, 0.01
    expected = [slope * v + (1 - slope) * math.log1p(math.exp(rho * v)) / rho for v in X.tolist()]
    got = SoftHinge(piecewise_linear.leaky(slope), rho)(X)
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=1e-14, atol=0)


def test_softplus_is_exact_on_both_sides_of_where_it_turns_linear():
    x = torch.tensor([11.0, 19.9, 20.1, 1000.0, -1000.0], dtype=torch.float64)
    expected = torch.logaddexp(x * 2.0, torch.zeros_like(x)) / 2.0
    torch.testing.assert_close(softplus(x, 2.0), expected, rtol=1e-15, atol=0)
    assert softplus(x.float(), 2.0).isfinite().all()


def test_softplus_is_above_relu_by_log_2_over_rho_at_most_and_at_0():
    x = torch.linspace(-3, 3, 1001, dtype=torch.float64)
    for rho in (0.5, 4.0, 64.0):
        gap = softplus(x, rho) - x.relu()
        assert bool((gap >= 0).all())
        torch.testing.assert_close(gap.max(), gap[500])
        assert float(gap[500]) == pytest.approx(math.log(2) / rho, rel=1e-14)


def test_the_area_between_softplus_and_relu_falls_with_the_square_of_rho():
    x = torch.linspace(-40, 40, 800_001, dtype=torch.float64)
    for rho in (1.0, 2.0, 8.0):
        area = torch.trapezoid(softplus(x, rho) - x.relu(), x)
        assert float(area) == pytest.approx(math.pi**2 / 6 / rho**2, rel=1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (4, 3, 5, 2)])
@pytest.mark.parametrize("count", [1, 3])
def test_prelu_has_one_slope_or_one_for_each_channel(shape, count):
    prelu = nn.PReLU(count).double()
    with torch.no_grad():
        prelu.weight.uniform_(-1, 1)
    x = torch.randn(shape, dtype=torch.float64)
    soft = SoftPReLU(prelu.weight, 1e9)
    torch.testing.assert_close(soft(x), prelu(x), rtol=0, atol=1e-8)
    one = nn.PReLU(1).double()
    expected = averaged(one, X, 2.0)
    torch.testing.assert_close(SoftPReLU(one.weight, 2.0)(X), expected, rtol=0, atol=1e-7)


def test_the_smooth_absolute_value_is_0_at_0_below_the_true_one_and_close():
    rho = 3.0
    x = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
    soft = SoftMagnitude(rho)(x)
    assert float(SoftMagnitude(rho)(torch.zeros(1))) == 0
    gap = x.abs() - soft
    assert bool((gap >= 0).all())
    assert 0.55 < float(gap.max()) * rho < 0.56
    torch.testing.assert_close(soft, soft.flip(0), rtol=0, atol=0)
    assert bool((soft[10_000:].diff() > 0).all())


@pytest.mark.parametrize(
    "module",
    [
        SoftHinge(piecewise_linear.leaky(0.1), 2.0),
        SoftHinge(piecewise_linear.clip(-1, 1), 2.0),
        SoftHinge(piecewise_linear.hard_sigmoid(gated=True), 2.0),
        SoftPReLU(nn.PReLU(1).double().weight, 2.0),
        SoftMagnitude(2.0),
    ],
)
def test_they_are_twice_differentiable(module):
    x = torch.tensor([-2.0, -1.0, 0.0, 0.3, 6.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module, x)
    assert torch.autograd.gradgradcheck(module, x)


@pytest.mark.parametrize(
    "made",
    [
        piecewise_linear.relu(),
        piecewise_linear.leaky(0.1),
        piecewise_linear.hard_sigmoid(gated=True),
    ],
)
def test_in_place_the_input_itself_is_overwritten(made):
    x = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    module, apart = (SoftHinge(made, 2.0, inplace=i) for i in (True, False))
    held = x * 1
    out = module(held)
    assert out is held
    assert torch.equal(out, apart(x))
    assert torch.autograd.gradgradcheck(lambda v: module(v * 1), x)
