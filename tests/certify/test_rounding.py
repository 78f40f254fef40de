"""One test for each place where float32 rounds, with nothing beside it that would hide it."""

import pytest
import torch
from torch import nn

from r2et.certify.bounds.interval_bounds import Ball, Box
from r2et.certify.bounds.linear_bounds import constant_bound, linear_product
from r2et.certify.bounds.propagation import interval_bounds, linear_bounds
from r2et.certify.bounds.rounding import unit_of
from r2et.certify.graph import graph_of
from r2et.certify.operators.activation import ActivationBackwardOp
from r2et.certify.operators.arithmetic import MultiplyOp
from r2et.certify.operators.curves import curve
from r2et.certify.problem import CertificationProblem
from r2et.explain import Gradient

UNIT = unit_of(torch.float32)
HALF = 2.0**-24  # half the spacing of float32 above 1


def at(x):
    """The ball that is x alone, in float32's rounding."""
    return Ball(x.double(), torch.zeros(len(x), dtype=torch.float64), "l2", UNIT)


def intervals(model, x):
    """What boxes say of the output at x, linear bounds, and these without their boxes."""
    graph, target = graph_of("test", model, x), torch.zeros(len(x), dtype=torch.long)
    box = interval_bounds(graph, at(x), target, "logit", end=graph.logits)[graph.logits]
    bounds = linear_bounds(graph, at(x), target, "logit", ends=[graph.logits])
    bound = bounds[graph.logits]
    yield box.low, box.high
    yield bound.low, bound.high
    yield bound.centre - bound.spread, bound.centre + bound.spread


def held(found, low, high):
    found = found.double()
    return bool(((low <= found) & (found <= high)).all())


class Peak(nn.Module):
    """x -+ the largest of its neighbours: a max-pool does not round, only the sum does."""

    def __init__(self, sign):
        super().__init__()
        self.pool, self.sign = nn.MaxPool2d((1, 3), 1, (0, 1)), sign

    def forward(self, x):
        most = self.pool(x)
        return (x + most if self.sign > 0 else x - most).flatten(1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_sum_of_two_values_is_rounded(sign):
    model, x = Peak(sign), torch.tensor([1.0, 0.4 * HALF]).view(1, 1, 1, 2)
    found = model(x)
    assert float(found[0, 1]) == sign  # the second is lost
    for low, high in intervals(model, x):
        assert held(found, low, high)


@pytest.mark.parametrize(
    ("a", "b"), [(1 + 2.0**-12, 1 + 2.0**-12), (3 * 2.0**-149, 0.5), (2.0**-149, 0.25)]
)
def test_a_gradient_times_a_derivative_is_rounded(a, b):
    a, b = torch.tensor([[a]]), torch.tensor([[b]])
    found = a * b
    assert found.double() != a.double() * b.double()
    one, other = constant_bound(a.double(), 1), constant_bound(b.double(), 1)
    bound = linear_product(one, other, at(a))
    assert held(found, bound.low, bound.high)
    assert held(found, bound.centre - bound.spread, bound.centre + bound.spread)
    box = MultiplyOp().interval(at(a), Box(a.double()), Box(b.double()))
    assert held(found, box.low, box.high)


@pytest.mark.parametrize("slope", [1 + 2.0**-12, 0.3])
def test_a_gradient_times_a_slope_is_rounded(slope):
    gradient, z = torch.tensor([[1 + 2.0**-12]]), torch.tensor([[-1.0]])
    found = torch.ops.aten.leaky_relu_backward(gradient, z, slope, False)
    assert found.double() != gradient.double() * slope
    operator = ActivationBackwardOp(curve("leaky_relu", slope))
    still = torch.zeros_like(z).double()
    box = operator.interval(at(z), Box(gradient.double()), Box(z.double(), still))
    assert held(found, box.low, box.high)


def norm(mean, bias):
    """A BatchNorm1d of uneven variances."""
    made = nn.BatchNorm1d(len(mean))
    made.running_mean.copy_(mean)
    made.running_var.copy_(torch.linspace(0.5, 2, len(mean)))
    made.bias.data.copy_(bias)
    return made.eval().requires_grad_(False)


def either_way(model, x):
    """(x - mean) / deviation + bias, first as it stands in float32, then in float64."""
    for kind in (torch.float32, torch.float64):
        deviation = (model.running_var.to(kind) + model.eps).sqrt()
        yield (x.to(kind) - model.running_mean) / deviation + model.bias


def apart(ways):
    ways = torch.stack([way.double() for way in ways])
    return float((ways.amax(0) - ways.amin(0)).max())


@pytest.mark.parametrize(
    ("mean", "bias", "around"), [(1e4, 1e4, 0.0), (1e4, 0.0, 1e4), (0.0, 1e4, 0.0)]
)
def test_the_large_terms_of_a_norm_are_rounded(mean, bias, around):
    """In any order of its sums, and whether they cancel or not."""
    torch.manual_seed(0)
    mean, deviation = mean + torch.rand(50), torch.linspace(0.5, 2, 50).sqrt()
    model, x = norm(mean, bias / deviation), around + torch.randn(20, 50)
    ways = [model(x), *either_way(model, x)]
    assert apart(ways) > 1e-4
    for low, high in intervals(model, x):
        assert all(held(found, low, high) for found in ways)


def test_a_norm_is_rounded_before_the_layer_behind_it():
    torch.manual_seed(0)
    first, layer = norm(1e4 + torch.rand(5), torch.zeros(5)), nn.Linear(5, 6)
    model = nn.Sequential(first, layer).eval().requires_grad_(False)
    x = first.running_mean + torch.randn(50, 5)
    one, exact = either_way(first, x)
    ways = [model(x), layer(one), exact @ layer.weight.double().T + layer.bias.double()]
    assert apart(ways) > 1e-4
    for low, high in intervals(model, x):
        assert all(held(found, low, high) for found in ways)


def pooled():
    """The largest entry is in all windows."""
    model = nn.Sequential(nn.MaxPool2d(7, 1, 3), nn.Flatten(), nn.Linear(49, 1, bias=False))
    x = torch.zeros(1, 1, 7, 7)
    x[0, 0, 3, 3] = 1.0
    return model, x, 24


def wide():
    """The first feature is in all units."""
    one, two = nn.Linear(2, 300, bias=False), nn.Linear(300, 1, bias=False)
    one.weight.data[:] = torch.tensor([1.0, 0.5])
    return nn.Sequential(one, nn.ReLU(), two), torch.ones(1, 2), 0


@pytest.mark.parametrize("build", [pooled, wide])
def test_gradients_that_meet_are_added_up_in_any_order(build):
    """One is 1, the others just too small to add: a sum that starts with it is 1."""
    model, x, place = build()
    model = model.eval().requires_grad_(False)
    weight = model[2].weight.data.fill_(0.98 * HALF)
    weight[0, 0] = 1.0
    problem = CertificationProblem.from_model("test", model, Gradient(of="logit"), x, 1, 1)
    box = problem.gradient_box(at(x))
    pairs, _ = problem.pairwise_bounds(at(x))
    for low, high in ((box.low.flatten(1), box.high.flatten(1)), pairs.interval()):
        assert held(problem.clean, low, high)
        for found in (1.0, float(weight.double().sum())):
            assert float(low[0, place]) <= found <= float(high[0, place])
