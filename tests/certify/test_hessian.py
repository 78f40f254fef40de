"""HessianCertifier: the interval Hessian, Prop. 4.5 itself, and what is refused."""

import pytest
import torch
from torch import nn

from nets import make, randn
from r2et.attack import MinimumNorm
from r2et.certify import HessianCertifier, IntervalCertifier
from r2et.certify.bounds.hessian_bounds import hessian_box
from r2et.certify.bounds.interval_bounds import Ball
from r2et.certify.graph import graph_of
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.models.output import log_odds
from r2et.region import L2

SMOOTH = ["softplus", "tanh", "sigmoid", "silu", "gelu", "elu"]


def exact_hessian(model, x, target):
    return torch.stack(
        [
            torch.autograd.functional.hessian(
                lambda row, t=t: log_odds(model(row[None]), t[None])[0], row
            )
            for row, t in zip(x, target, strict=True)
        ]
    )


@pytest.mark.parametrize("classes", [1, 2, 4])
@pytest.mark.parametrize("act", SMOOTH)
def test_the_box_of_the_hessian_holds_it_everywhere_in_the_ball(act, classes):
    model = make(lambda: MLP(4, (6, 5), classes=classes, activation=act), dtype=torch.float64)
    x = randn(5, 4, dtype=torch.float64)
    target = torch.ones(5, dtype=torch.long)
    graph = graph_of("test", model, x)
    radius = torch.full((5,), 0.2, dtype=torch.float64)
    box = hessian_box(graph, Ball(x, radius, "l2"), target, "log_odds")
    point = hessian_box(graph, Ball(x, 0 * radius, "l2"), target, "log_odds")
    assert torch.allclose(point.centre, exact_hessian(model, x, target), atol=1e-9)
    for there in L2(0.2).sample(x, 20):
        found = exact_hessian(model, there, target)
        assert bool((box.low - 1e-9 <= found).all())
        assert bool((found <= box.high + 1e-9).all())


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("units", "radius", "shift"), [(2, 1.0, 0.0), (1, 0.1, 0.66)])
def test_the_box_of_the_hessian_holds_squares_of_a_derivative(units, radius, shift, sign, norm):
    """tanh(h) of h = softplus(u) + softplus(-u), whose h' goes from -1 to 1, or of one softplus,
    whose h' goes from 0 to 1.

    Where h' is 1 and h'' is 0, the second derivative is tanh''(h), below 0, all of it from h'^2.
    """
    model = nn.Sequential(
        nn.Linear(2, units, bias=False), nn.Softplus(20 / radius), nn.Linear(units, 1), nn.Tanh()
    )
    way = torch.tensor([0.8, 0.6])
    model.append(nn.Linear(1, 1, bias=False))
    model[0].weight.data = torch.stack([way, -way])[:units]
    model[2].weight.data.fill_(1.0)
    model[2].bias.data.fill_(shift)
    model[4].weight.data.fill_(sign)
    model = model.double().eval().requires_grad_(False)
    x, target = torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, dtype=torch.long)
    ball = Ball(x, torch.full((1,), radius, dtype=torch.float64), norm)
    box = hessian_box(graph_of("test", model, x), ball, target, "log_odds")
    grid = radius * torch.cartesian_prod(*[torch.linspace(-1, 1, 21, dtype=torch.float64)] * 2)
    grid = grid if norm == "linf" else grid[grid.norm(dim=1) <= radius]
    found = exact_hessian(model, grid, target.expand(len(grid)))
    bent = torch.einsum("bij,i,j->b", found, way.double(), way.double())
    assert float((sign * bent).min()) < -0.74  # of 0.77, the most that tanh has
    assert bool(((box.low - 1e-9 <= found) & (found <= box.high + 1e-9)).all())


class Joined(nn.Module):
    """tanh of a constant plus a softplus that bends from 0 to its input."""

    def forward(self, x):
        return torch.tanh((0.0 * x + 0.66) + nn.functional.softplus(x, 200.0))


def softmax(*steps):
    """The first class of three, whose rivals move by these steps and have shares 0.05 and 0.95."""
    model = nn.Linear(1, 3).double()
    model.weight.data[:, 0] = torch.tensor([0.0, *steps])
    model.bias.data[:] = torch.tensor([0.0, 0.05, 0.95]).log().nan_to_num(neginf=0.0)
    return model


@pytest.mark.parametrize(
    ("model", "target", "radius"),
    # -4 p + 4 p^2 and -p + p^2, p the share of the first rival.
    [(Joined(), 1, 0.1), (softmax(1.0, -1.0), 0, 0.1), (softmax(1.0, 0.0), 0, 0.1)],
)
def test_the_box_of_a_second_derivative_holds_each_of_its_parts(model, target, radius):
    model = model.eval().requires_grad_(False)
    x, target = torch.zeros(1, 1, dtype=torch.float64), torch.tensor([target])
    ball = Ball(x, torch.full((1,), radius, dtype=torch.float64), "l2")
    box = hessian_box(graph_of("test", model, x), ball, target, "log_odds")
    points = torch.linspace(-radius, radius, 101, dtype=torch.float64)[:, None]
    found = exact_hessian(model, points, target.expand(101))
    assert bool(((box.low - 1e-12 <= found) & (found <= box.high + 1e-12)).all())


@pytest.mark.parametrize("act", ["softplus", "tanh", "gelu"])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_attack_enters_the_radius_and_intervals_prove_more(act, classes):
    model = make(lambda: MLP(5, (8,), classes=classes, activation=act))
    x = randn(25, 5)
    radius = HessianCertifier(limit=3.0)(model, Gradient(), x, k=2).radius
    attacked = MinimumNorm(L2(3.0), budget="fast")(model, Gradient(), x, k=2).radius
    assert bool((radius < attacked).all())
    assert float(radius.median()) > 0
    tight = IntervalCertifier(limit=3.0)(model, Gradient(), x, k=2).radius
    assert float((radius / tight).median()) < 1


def test_a_linear_model_reaches_the_limit():
    certificate = HessianCertifier()(make(lambda: MLP(5, ())), Gradient(), randn(5, 5), k=2)
    assert float(certificate.radius.min()) == pytest.approx(10)
    assert float(certificate.precision_at(9.0).min()) == 1


class Growing(nn.Module):
    """softplus(x_1) + 0.4 x_2: the first feature's score is sigmoid(x_1), the other's 0.4."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
        self.one.weight.data[:] = torch.tensor([1.0, 0.0])
        self.two.weight.data[:] = torch.tensor([0.0, 0.4])

    def forward(self, x):
        return nn.functional.softplus(self.one(x)) + self.two(x)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_radius_solves_its_equation_whichever_feature_moves(norm):
    """gap = r max sigmoid': at the near end of the ball below 0, and 1/4 where it reaches 0."""
    x = torch.tensor([[-3.0, 0.0], [-2.5, 1.0], [0.1, 0.0], [-0.1, 2.0]], dtype=torch.float64)
    certifier = HessianCertifier(norm=norm, tolerance=1e-5)
    r = certifier(Growing().double().eval(), Gradient(), x, k=1).radius
    share = torch.sigmoid((x[:, 0] + r).clamp(max=0.0))
    share[2:] = 0.5
    gap = (torch.sigmoid(x[:, 0]) - 0.4).abs()
    assert torch.allclose(r * share * (1 - share), gap, rtol=1e-4)
    flip = (x[:, 0] - torch.tensor(0.4, dtype=torch.float64).logit()).abs()
    assert bool((r < flip).all())


def test_a_feature_that_ties_with_another_is_not_counted():
    model = make(lambda: MLP(4, ()))
    model.layers[0].weight.data[:] = torch.tensor([2.0, 2.0, 3.0, 1.0])
    model.layers[0].weight.data[0] *= -1
    for k, share in ((1, 1.0), (2, 0.5), (3, 1.0)):
        certificate = HessianCertifier()(model, Gradient(), randn(5, 4), k=k)
        assert bool((certificate.radius > 0).all()) == (k != 2)
        assert certificate.precision_at(1.0).tolist() == [share] * 5


def test_the_sampled_version_is_an_estimate_above_the_proof():
    model = make(lambda: MLP(5, (8,), activation="softplus"))
    x = randn(10, 5)
    proof = HessianCertifier(limit=3.0, tolerance=0.02)(model, Gradient(), x, k=2)
    guess = HessianCertifier(limit=3.0, tolerance=0.02, samples=5)(model, Gradient(), x, k=2)
    assert proof.sound
    assert not guess.sound
    assert bool((proof.radius > 0).all())
    assert bool((guess.radius >= 0.97 * proof.radius).all())


@pytest.mark.parametrize("act", ["relu", "leaky_relu"])
def test_piecewise_linear_networks_are_refused_with_the_reason(act):
    with pytest.raises(InputError, match=f"got {act}, where gradients jump"):
        HessianCertifier()(make(lambda: MLP(5, (8,), activation=act)), Gradient(), randn(3, 5), k=2)
    pool = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2)
    )
    with pytest.raises(InputError, match="max_pool2d"):
        HessianCertifier()(pool.eval(), Gradient(), randn(2, 1, 6, 6), k=2)


def test_a_branch_that_leads_nowhere_is_no_matter():
    class Aside(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.out = nn.Linear(4, 5), nn.Linear(5, 2)

        def forward(self, x):
            torch.relu(self.first(x))
            return self.out(torch.tanh(self.first(x)))

    model, x = make(Aside), randn(5, 4)
    plain = nn.Sequential(model.first, nn.Tanh(), model.out).eval()
    certify = HessianCertifier()
    found = certify(model, Gradient(), x, k=2).radius
    assert torch.equal(found, certify(plain, Gradient(), x, k=2).radius)
    assert float(found.min()) > 0


def test_a_network_without_weights_has_an_estimate():
    model, x = nn.Sequential(nn.Tanh(), nn.Flatten()).eval(), randn(3, 2)
    for samples in (None, 5):
        found = HessianCertifier(samples=samples)(model, Gradient(of="logit"), x, k=1)
        assert float(found.radius.min()) > 0
