"""Bounds with symbols: closed forms, points of the ball, and never less than without."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from nets import make, randn
from r2et.certify import IntervalCertifier
from r2et.certify.bounds.interval_bounds import Ball
from r2et.certify.bounds.quadratic_bounds import least_quadratic
from r2et.certify.bounds.symbols import Symbols, product_range
from r2et.certify.operators.curves import curve
from r2et.certify.problem import CertificationProblem
from r2et.explain import Gradient
from r2et.models import MLP

SMOOTH = ["softplus", "tanh", "sigmoid", "elu", "silu", "gelu"]
CURVES = [("softplus",), ("tanh",), ("sigmoid",), ("silu",), ("gelu",), ("mish",), ("elu", 1.0)]


def points(n: int, count: int, seed: int = 0) -> torch.Tensor:
    """(count, n) of the unit ball, half of them on its edge."""
    move = randn(count, n, seed=seed).double()
    move = move / move.norm(dim=1, keepdim=True)
    move[::2] *= torch.rand(len(move[::2]), 1, dtype=torch.float64)
    return move


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("order", [0, 1])
def test_a_parabola_encloses_its_curve_and_is_closer_than_a_line(name, order):
    given = curve(*name)
    low = randn(200, seed=1).double() * 2
    high = low + randn(200, seed=2).double().abs() * 2
    rate, bend, least, most = given.parabola(order, low, high)
    middle = (low + high) / 2
    for share in torch.linspace(0, 1, 101, dtype=torch.float64):
        z = low + share * (high - low)
        left = given.curves[order](z) - rate * (z - middle) - bend * (z - middle) ** 2
        assert bool(((left >= least - 1e-12) & (left <= most + 1e-12)).all())
    _, bottom, top = given.line(order, low, high)
    assert bool((most - least <= top - bottom + 1e-12).all())
    if given.kink is None:
        assert float(((most - least) / (top - bottom)).median()) < 0.6


def test_a_quadratic_is_bounded_by_its_least_value():
    # Of a diagonal form the least value over the ball is known where the slope is along an axis.
    form = torch.diag(torch.tensor([-2.0, 1.0, 3.0], dtype=torch.float64))[None]
    slope = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    radius = torch.tensor([0.7], dtype=torch.float64)
    least = least_quadratic(slope, form, radius, "l2")
    assert float(least) == pytest.approx(-0.7 - 2 * 0.49, rel=1e-6)
    assert float(least) <= -0.7 - 2 * 0.49 + 1e-12
    inner = least_quadratic(0.1 * slope, -form, radius, "l2")  # inside the ball: -s^2 / 4 q
    assert float(inner) <= -3 * 0.49
    only = least_quadratic(0.1 * slope, form.abs(), radius, "l2")
    assert float(only) == pytest.approx(-0.01 / 8, rel=1e-6)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_no_point_is_below_the_least_value_of_a_quadratic(norm):
    n, radius = 5, torch.full((30,), 0.8, dtype=torch.float64)
    slope, form = randn(30, n, seed=3).double(), randn(30, n, n, seed=4).double()
    form = (form + form.transpose(1, 2)) / 2
    least = least_quadratic(slope, form, radius, norm)
    move = points(n, 4000) if norm == "l2" else 2 * torch.rand(4000, n, dtype=torch.float64) - 1
    move = 0.8 * move
    values = slope @ move.T + torch.einsum("pn,bnm,pm->bp", move, form, move)
    assert bool((values.amin(1) >= least - 1e-12).all())
    if norm == "l2":  # the best of many points comes near
        assert bool((values.amin(1) - least < 0.35 * least.abs()).all())


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_product_of_two_linear_functions_keeps_within_its_range(norm):
    n = 4
    a, b = randn(1, n, 6, seed=5).double(), randn(1, n, 6, seed=6).double()
    ball = Ball(torch.zeros(1, n).double(), torch.tensor([1.5]).double(), norm)
    middle, half = product_range(a, b, ball, square=False)
    square_middle, square_half = product_range(a, -2 * a, ball, square=True)
    move = 1.5 * (points(n, 3000) if norm == "l2" else randn(3000, n, seed=7).double().clamp(-1, 1))
    along = torch.einsum("pn,nm->pm", move, a[0])
    product = along * torch.einsum("pn,nm->pm", move, b[0])
    assert bool(((product - middle).abs() <= half).all())
    assert bool(((-2 * along.square() - square_middle).abs() <= square_half).all())
    if norm == "l2":
        assert bool(((product - middle).abs().amax(0) > 0.8 * half[0]).all())


@pytest.mark.parametrize("activation", SMOOTH)
def test_every_value_of_the_ball_is_within_the_bounds_of_its_form(activation):
    model = make(lambda: MLP(5, (8, 8), activation=activation)).double()
    x = randn(3, 5, seed=1).double()
    problem = CertificationProblem.from_model("test", model, Gradient(), x, 2, None)
    ball = problem.ball(torch.full((3,), 0.3, dtype=torch.float64), "l2")
    with torch.no_grad():
        pairs, _ = problem.pairwise_bounds(ball, symbols=True)
        low, high = pairs.interval()
        every = torch.arange(5).expand(3, -1)
        gaps = pairs.gaps(problem.side, every, every)
    for move in 0.3 * points(5, 300):
        there = (x + move).requires_grad_()
        signed = Gradient(reduce="signed")(model, there, problem.target)
        assert bool(((signed >= low) & (signed <= high)).all())
        mine = problem.side * signed
        gap = mine[:, :, None] - signed.abs()[:, None]
        off = ~torch.eye(5, dtype=torch.bool)
        assert bool((gap >= gaps)[:, off].all())


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("activation", ["softplus", "tanh", "gelu"])
def test_radii_are_larger_and_hold(activation, norm):
    model = make(lambda: MLP(6, (12, 12, 12), activation=activation))
    x = randn(10, 6, seed=1)
    plain = IntervalCertifier(norm=norm, symbols=False)
    before = plain(model, Gradient(), x, k=2).radius
    after = replace(plain, symbols=True)(model, Gradient(), x, k=2).radius
    assert bool((after >= before).all())
    assert float((after / before).median()) > 1.1
    clean = Gradient()(model, x).topk(2).indices.sort(dim=1).values
    for move in points(6, 400).float():
        move = move if norm == "l2" else move / move.abs().amax()
        there = x + (after * (1 - 1e-6))[:, None].float() * move
        assert torch.equal(Gradient()(model, there).topk(2).indices.sort(dim=1).values, clean)


def test_a_network_of_kinks_alone_is_not_looked_at_again():
    model, x = make(lambda: MLP(4, (8,), activation="relu")), randn(6, 4, seed=2)
    one = IntervalCertifier(symbols=False)(model, Gradient(), x, k=1).radius
    two = IntervalCertifier()(model, Gradient(), x, k=1).radius
    assert torch.equal(one, two)
    assert float(one.max()) > 0


def test_slopes_that_are_extended_keep_their_directions():
    symbols = Symbols(2)
    slope = torch.ones(1, 2, 3, dtype=torch.float64)
    spread = torch.tensor([[0.5, 0.0, 2.0]], dtype=torch.float64)
    left, one = symbols.promoted(spread, slope, spread + math.sqrt(2))
    assert torch.equal(left, torch.zeros_like(left))
    assert one.shape == (1, 4, 3)
    assert torch.equal(one[:, 2:].abs().sum(1), spread)
    _, two = symbols.promoted(spread, slope, spread + math.sqrt(2))
    assert two.shape == (1, 6, 3)  # nothing along the first two symbols
    assert not bool(two[:, 2:4].any())


def test_symbols_must_be_true_or_false():
    with pytest.raises(Exception, match="symbols must be True or False, got 3"):
        IntervalCertifier(symbols=3)  # type: ignore[arg-type]


def test_sequences_of_other_layers_take_symbols_too():
    torch.manual_seed(0)
    layers = (nn.Linear(5, 10), nn.LayerNorm(10), nn.SiLU(), nn.Linear(10, 8), nn.GLU())
    model = nn.Sequential(*layers, nn.Linear(4, 3)).eval()
    x = randn(6, 5, seed=3)
    before = IntervalCertifier(symbols=False)(model, Gradient(), x, k=2).radius
    after = IntervalCertifier()(model, Gradient(), x, k=2).radius
    assert bool((after >= before).all())
    assert float((after / before).median()) > 1.05


def test_bounds_that_overflow_prove_nothing_of_their_row():
    """Far out exp leaves float64, so that P@k has no bound there; near x it is proved as before."""
    x = torch.tensor([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]], dtype=torch.float64)

    class Steep(nn.Module):
        def forward(self, x):
            return torch.stack([torch.zeros_like(x[:, 0]), torch.exp(x).sum(1)], 1)

    certificate = IntervalCertifier(limit=1.0)(Steep().eval(), Gradient(of="logit"), x, k=1)
    assert bool((certificate.radius > 0).all())
    near = 0.9 * float(certificate.radius.min())
    assert torch.equal(certificate.precision_at(near), torch.ones(2))
    assert torch.equal(certificate.precision_at(1e4), torch.zeros(2))
