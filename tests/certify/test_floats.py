"""A proof is about what the model's own arithmetic computes: rounding, underflow, overflow."""

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import orthogonal, weight_norm

from nets import make, randn
from r2et.certify import HessianCertifier, IntervalCertifier
from r2et.certify.bounds.interval_bounds import Ball
from r2et.certify.bounds.propagation import interval_bounds
from r2et.certify.bounds.rounding import rounding, unit_of
from r2et.certify.graph import graph_of
from r2et.certify.operators.linear import Dense
from r2et.certify.problem import CertificationProblem
from r2et.explain import Gradient
from r2et.models import smooth
from r2et.rank import precision_at_k

LAYERS = {
    "relu": nn.ReLU,
    "leaky": lambda: nn.LeakyReLU(0.3),
    "softplus": lambda: nn.Softplus(beta=3),
    "soft leaky": lambda: smooth(nn.Sequential(nn.LeakyReLU(0.2)), 4.0)[0],
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "elu": lambda: nn.ELU(0.5),
    "steep elu": lambda: nn.ELU(1000.0),
    "elu in place": lambda: nn.ELU(1000.0, inplace=True),
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "gelu by tanh": lambda: nn.GELU("tanh"),
}


def network(first, layer, second):
    """Linear, activation, Linear, without biases, of these weights."""
    model = nn.Sequential(nn.Linear(len(first[0]), len(first), bias=False), layer, nn.Linear(1, 1))
    model[2] = nn.Linear(len(second[0]), len(second), bias=False)
    model[0].weight.data, model[2].weight.data = torch.tensor(first), torch.tensor(second)
    return model.eval().requires_grad_(False)


def near(model, x, radius, count=20_000):
    """P@1 of random points of the ball around one row."""
    generator = torch.Generator().manual_seed(0)
    move = nn.functional.normalize(torch.randn(count, x.shape[1], generator=generator), dim=1)
    there = x + 0.999 * float(radius) * move * torch.rand(count, 1, generator=generator)
    scores = Gradient().at(model, x)
    return precision_at_k(scores(x).expand(count, -1), scores(there), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_what_torch_computes_is_in_the_interval_of_a_point(name, dtype):
    layer = nn.Sequential(LAYERS[name]()).eval()
    z = torch.cat([torch.linspace(-120, 120, 40_001), 10 ** torch.linspace(-30, 2, 9_999)])
    z = torch.cat([z, -z])[:, None].to(dtype)
    graph = graph_of("test", layer, z)
    ball = Ball(z.double(), z.new_zeros(len(z)).double(), "l2", unit_of(dtype))
    ones = torch.ones(len(z), dtype=torch.long)  # the logit itself is explained
    boxes = interval_bounds(graph, ball, ones, "logit") | interval_bounds(
        graph, ball, ones, "logit", end=graph.logits
    )
    point = z.clone().requires_grad_()
    out = layer(point + 0)
    (slope,) = torch.autograd.grad(out.sum(), point)
    off = point.detach() != 0  # a kink has no derivative
    for value, real in ((graph.logits, out.detach()), (graph.gradient, slope)):
        held = (boxes[value].low <= real.double()) & (real.double() <= boxes[value].high)
        assert bool((held | ~off).all())


def test_gradients_below_the_normal_numbers_prove_nothing():
    # Halved twice, the smallest number is 0: all features tie, and the first one wins.
    small = 2.0**-149
    model = network([[4.0, 5.0]], nn.LeakyReLU(0.25), [[small], [-small]])
    x = torch.tensor([[1.0, 0.5]])
    assert float(near(model, x, 9.0).min()) == 0
    assert float(IntervalCertifier()(model, Gradient(), x, k=1).radius) == 0


def test_sums_that_may_overflow_prove_nothing():
    # The unit switches off 0.2 from x. Nearer already a part of the sum may be minus infinity in
    # float32, by the order in which it is taken, and the unit off: from 0.17 on.
    most = 3e38
    first = [[-most, -most, most, most, 1.0], [0.0, 0.0, 0.0, 0.0, 2.0]]
    model = network(first, nn.ReLU(), [[1e-35, 1e3], [-1e-35, -1e3]])
    x = torch.tensor([[0.1, 0.1, 0.3, 0.3, 1.0]])
    assert 0.05 < float(IntervalCertifier()(model, Gradient(), x, k=4).radius) < 0.17
    wide = torch.tensor([1.0, 3e38, 4e38, torch.inf, torch.nan], dtype=torch.float64)
    finite = rounding(8, unit_of(torch.float32), wide).isfinite().tolist()
    assert finite == [True, True, False, False, False]
    assert bool(rounding(8, unit_of(torch.float64), wide[:3]).isfinite().all())


@pytest.mark.parametrize("certifier", [IntervalCertifier(), HessianCertifier()])
@pytest.mark.parametrize("of", ["probability", "loss"])
def test_factors_of_the_gradient_may_underflow(of, certifier):
    # Times the derivative of a confident probability, the last two features are 0, and tie.
    model = network([[50.0, 4e-27, 5e-27]], nn.Softplus(), [[1.0], [-1.0]])
    x, there = torch.tensor([[1e-4, 0.0, 0.0]]), torch.tensor([[2.0, 0.0, 0.0]])
    scores = Gradient(of=of)(model, torch.cat([x, there]), 0)
    assert precision_at_k(scores[:1], scores[1:], 2) == 0.5
    assert float(certifier(model, Gradient(of=of), x, k=2).radius) == 0
    assert float(certifier(model, Gradient(), x, k=2).radius) > 0


def test_what_normalizing_rounds_away_is_not_proved():
    model = network([[50.0, 4.0, 5.0]], nn.Tanh(), [[1.0], [-1.0]])
    explainer, x = Gradient(normalize=True), torch.ones(1, 3)
    problem = CertificationProblem.from_model("test", model, explainer, x, 1, None)
    high = torch.tensor([[1.0, 2e38, 1e38], [1.0, 3e38, 1e38]], dtype=torch.float64)
    assert problem.visible(-high, high)[0] > 3e38 * torch.finfo(torch.float32).tiny
    assert problem.visible(-high, high)[1].isinf()


@pytest.mark.parametrize("limit", [1e-320, 1e-300, 1e30, 1e200, 1.7e308])
def test_any_limit_comes_to_an_end(limit):
    model = network([[4.0, 5.0]], nn.LeakyReLU(0.25), [[1.0], [-1.0]])
    radius = IntervalCertifier(limit=limit)(model, Gradient(), torch.ones(1, 2), k=1).radius
    assert 0 <= float(radius) <= min(limit, 3.5e38 / 5)


@pytest.mark.parametrize("norm", [orthogonal, weight_norm])
def test_computed_weights_are_those_that_the_model_computes(norm):
    model = make(lambda: nn.Sequential(norm(nn.Linear(6, 6)), nn.ReLU(), nn.Linear(6, 3)))
    graph = graph_of("test", model, randn(2, 6))
    first = next(operator for operator in graph.operators() if isinstance(operator, Dense))
    assert torch.equal(first.matrix, model[0].weight.double())


def test_a_certificate_outlives_its_model():
    build = lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))  # noqa: E731
    for kind in (torch.float32, torch.float64):
        model, x = make(build, dtype=kind), randn(3, 4, dtype=kind)
        certificate = IntervalCertifier()(model, Gradient(), x, k=1)
        assert bool((certificate.radius > 0).all())
        before = certificate.precision_at(0.4)
        assert bool((before > 0).any())
        for parameter in model.parameters():
            parameter.data.zero_()
        assert torch.equal(certificate.precision_at(0.4), before)
