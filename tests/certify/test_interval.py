"""IntervalCertifier: closed forms, and that nothing gets inside a claimed radius."""

import pytest
import torch
from torch import nn

from nets import ResidualNet, cnn, make, randn
from r2et.attack import MinimumNorm, RandomSearch
from r2et.certify import HessianCertifier, IntervalCertifier
from r2et.explain import Gradient
from r2et.models import MLP, ResNet18, smooth
from r2et.rank import precision_at_k, top_k
from r2et.region import L2, Linf

ACTIVATIONS = ["relu", "leaky_relu", "softplus", "tanh", "sigmoid", "elu", "silu", "gelu"]


class OneUnit(nn.Module):
    """v . x + c leaky(w . x + b): the gradient is v + c w or v + 0.01 c w."""

    def __init__(self):
        super().__init__()
        self.direct, self.unit, self.out = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(1, 1)

    def forward(self, x):
        return self.direct(x) + self.out(nn.functional.leaky_relu(self.unit(x)))


def inside(certificate, x, norm, share=1.0):
    """Random points at the edge of each row's certified ball: (200, B, ...)."""
    ball = (L2 if norm == "l2" else Linf)(1.0)
    move = ball.sample(torch.zeros_like(x), 200)
    length = ball.distance(move.flatten(0, 1), torch.zeros_like(move.flatten(0, 1))).view(200, -1)
    size = share * certificate.radius / length
    return x + (size.view(*size.shape, *[1] * (x.ndim - 1)) * move).to(x)


def hunt(model, x, k, norm, explainer=None, *, attacked=True, **settings):
    """The certificate's radius never exceeds an attack's, nor do points inside it flip.

    A certifier that proves nothing would be sound, too: half of the rows must have a radius.
    """
    explainer = explainer or Gradient()
    certificate = IntervalCertifier(norm=norm, limit=3.0, **settings)(model, explainer, x, k=k)
    assert float((certificate.radius > 0).float().mean()) >= 0.5
    region = (L2 if norm == "l2" else Linf)(3.0)
    attacks = [MinimumNorm(region, budget="fast")] if attacked else []
    for attack in (*attacks, RandomSearch(region, points=200)):
        found = attack(model, explainer, x, k=k)
        assert bool((certificate.radius < found.radius).all())
    clean = explainer(model, x)
    points = inside(certificate, x, norm, 1 - 1e-5)
    there = explainer.at(model, x)(points.flatten(0, 1))
    assert float(precision_at_k(clean.repeat(len(points), 1), there, k).min()) == 1.0
    for radius in (0.1, 0.5):
        low = certificate.precision_at(radius)
        at = RandomSearch((L2 if norm == "l2" else Linf)(radius), points=300)
        assert bool((low <= at(model, explainer, x, k=k).precision + 1e-6).all())
    return certificate


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_one_unit_is_certified_up_to_its_boundary(norm):
    model = make(OneUnit)
    with torch.no_grad():
        model.direct.weight.copy_(torch.tensor([[1.0, 1.2, 0.1]]))
        model.out.weight.fill_(1.0)
        model.unit.weight.copy_(torch.tensor([[1.0, 0.2, 0.3]]))
    x = randn(50, 3)
    w, z = model.unit.weight[0].detach(), model.unit(x).detach()[:, 0]
    exact = z.abs() / (w.norm() if norm == "l2" else w.abs().sum())
    radius = IntervalCertifier(norm=norm)(model, Gradient(), x, k=1).radius
    assert torch.allclose(radius, exact.double(), rtol=5e-3, atol=1e-5)
    assert bool((radius <= exact).all())


def test_a_linear_model_cannot_change():
    model = make(lambda: MLP(6, (), classes=2))
    certificate = IntervalCertifier(limit=1e6)(model, Gradient(), randn(5, 6), k=2)
    assert float(certificate.radius.min()) == pytest.approx(1e6)
    assert float(certificate.precision_at(1e6 - 2).min()) == 1.0


@pytest.mark.parametrize("certifier", [IntervalCertifier, HessianCertifier])
@pytest.mark.parametrize("limit", [0.1, 0.3, 0.7])
def test_a_copy_of_the_radius_in_float32_is_not_above_the_limit(certifier, limit):
    model = make(lambda: MLP(6, (), classes=2))
    radius = certifier(limit=limit)(model, Gradient(), randn(5, 6), k=2).radius
    assert bool((radius.float().double() <= limit).all())
    assert bool((radius > 0.99 * limit).all())


def test_a_linear_model_of_many_classes_can():
    model = make(lambda: MLP(6, (), classes=4))
    certificate = hunt(model, randn(20, 6), 2, "l2")
    assert float(certificate.radius.median()) > 0.01


def test_ties_are_never_certified():
    model = make(lambda: MLP(4, ()))
    with torch.no_grad():
        model.layers[0].weight[:, 1] = model.layers[0].weight[:, 0]
        model.layers[0].weight[:, 2:] *= 1e-3
    certificate = IntervalCertifier()(model, Gradient(), randn(5, 4), k=1)
    assert not bool(certificate.radius.any())
    assert float(IntervalCertifier()(model, Gradient(), randn(5, 4), k=2).radius.min()) > 9


def test_softplus_in_one_dimension_is_exact_up_to_the_relaxation():
    # Gradient of feature 1 is sigmoid(x_1), of feature 2 the constant 0.4: they tie at one plane.
    model = nn.Sequential(nn.Linear(2, 2), nn.Softplus(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
        model[0].bias.zero_()
        model[2].weight.copy_(torch.tensor([[1.0, 0.0]]))

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.curve, self.line = model, nn.Linear(2, 1).double()
            with torch.no_grad():
                self.line.weight.copy_(torch.tensor([[0.0, 0.4]]))

        def forward(self, x):
            return self.curve(x) + self.line(x)

    x = torch.tensor([[1.0, 0.0], [0.2, 0.5], [-0.1, 0.0]], dtype=torch.float64)
    tie = torch.log(torch.tensor(0.4 / 0.6, dtype=torch.float64))
    radius = IntervalCertifier(tolerance=1e-4)(Both().eval(), Gradient(), x, k=1).radius
    assert torch.allclose(radius, x[:, 0] - tie, rtol=2e-2)
    assert bool((radius <= x[:, 0] - tie).all())


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("act", ACTIVATIONS)
def test_hunt_in_networks_of_one_layer(act, norm):
    model = make(lambda: MLP(5, (12,), activation=act))
    certificate = hunt(model, randn(30, 5), 2, norm)
    assert float(certificate.radius.median()) > 1e-3


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_hunt_in_deep_networks(act):
    model = make(lambda: MLP(4, (10, 8, 6), activation=act, classes=3))
    hunt(model, randn(20, 4), 2, "l2")


@pytest.mark.parametrize("act", [nn.ReLU, nn.Softplus, nn.GELU])
@pytest.mark.parametrize("relaxation", [pytest.param("linear", marks=pytest.mark.slow), "interval"])
def test_hunt_in_convolutions(act, relaxation):
    settings = {"relaxation": relaxation, "splits": 2, "attacked": relaxation == "linear"}
    hunt(make(lambda: cnn(act)), randn(2, 2, 8, 8), 5, "l2", **settings | {"attacked": False})
    hunt(make(lambda: ResidualNet(2, act)), randn(2, 2, 4, 4), 5, "linf", **settings)


@pytest.mark.parametrize("relaxation", ["linear", "interval"])
def test_hunt_in_a_max_pool(relaxation):
    layers = [nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Flatten()]
    model = make(lambda: nn.Sequential(*layers, nn.Linear(27, 2)))
    hunt(model, randn(6, 1, 6, 6), 4, "l2", relaxation=relaxation)


@pytest.mark.parametrize("of", ["log_odds", "logit", "probability", "loss"])
@pytest.mark.parametrize("reduce", ["abs", "signed"])
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_hunt_in_all_that_is_explained(of, reduce, classes):
    model = make(lambda: MLP(5, (8,), classes=classes, activation="softplus"))
    hunt(model, randn(15, 5), 2, "l2", Gradient(of=of, reduce=reduce))


def test_a_smooth_copy_and_a_whole_resnet_are_taken():
    hunt(smooth(make(lambda: MLP(5, (8,))), rho=8.0).eval(), randn(15, 5), 2, "l2")
    model = make(lambda: ResNet18(width=2, classes=3))
    x = randn(2, 3, 16, 16)
    certificate = IntervalCertifier(limit=1.0, relaxation="interval")(model, Gradient(), x, k=5)
    assert certificate.sound
    assert certificate.radius.shape == (2,)


def test_linear_forms_prove_more_than_intervals():
    model = make(lambda: MLP(8, (16,), activation="softplus"))
    x = randn(40, 8)
    wide = IntervalCertifier()(model, Gradient(), x, k=3).radius
    narrow = IntervalCertifier(relaxation="interval")(model, Gradient(), x, k=3).radius
    assert bool((wide >= 0.99 * narrow).all())
    assert float((wide / narrow).median()) > 2


def test_precision_counts_features_that_stay():
    model = make(lambda: MLP(6, (12,), activation="softplus"))
    x = randn(40, 6)
    certificate = IntervalCertifier()(model, Gradient(), x, k=3)
    shares = [certificate.precision_at(r) for r in (0.0, 0.05, 0.2, 0.8, 3.0)]
    for low, high in zip(shares[1:], shares[:-1], strict=True):
        assert float((low - high).max()) < 1e-9 or bool((low <= high).float().mean() > 0.9)
    at = float(certificate.radius.median())
    assert bool((certificate.precision_at(at)[certificate.radius >= at] == 1).all())
    some = certificate.precision_at(2 * at)
    assert bool(((some > 0) & (some < 1)).any())


def test_rows_chunks_and_repeats_agree_and_the_model_is_untouched():
    model = make(lambda: MLP(6, (12,), activation="tanh"))
    x = randn(12, 6)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    whole = IntervalCertifier()(model, Gradient(), x, k=3).radius
    parts = IntervalCertifier(chunk=5)(model, Gradient(), x, k=3).radius
    alone = torch.cat([IntervalCertifier()(model, Gradient(), row[None], k=3).radius for row in x])
    assert bool((whole > 0).all())
    assert torch.allclose(whole, parts, rtol=1e-6)
    assert torch.allclose(whole, alone, rtol=1e-6)
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_the_top_k_is_the_models_own():
    model = make(lambda: MLP(6, (12,), activation="tanh"))
    x = randn(12, 6)
    target = torch.zeros(12, dtype=torch.long)
    certificate = IntervalCertifier()(model, Gradient(), x, k=2, target=target)
    assert bool((certificate.radius > 0).all())
    scores = Gradient().at(model, x, target)
    clean = top_k(Gradient()(model, x, target), 2).sort(1).values
    for points in inside(certificate, x, "l2", 0.999)[:20]:
        assert torch.equal(top_k(scores(points), 2).sort(1).values, clean)


def test_splitting_proves_more_of_deep_piecewise_linear_networks():
    model = make(lambda: MLP(4, (20, 20, 20), activation="leaky_relu"))
    x = randn(30, 4)
    plain = IntervalCertifier(splits=0, limit=3.0)(model, Gradient(), x, k=2).radius
    split = hunt(model, x, 2, "l2", splits=5).radius
    assert bool((split >= 0.99 * plain).all())
    gain = split / plain
    assert float((gain > 1.05).double().mean()) > 0.1
    assert float(gain.max()) > 1.3
