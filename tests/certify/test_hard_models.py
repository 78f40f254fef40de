"""Models made to break a proof: many branches, steep hinges, shared memory, hidden randomness."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from r2et.certify import HessianCertifier, IntervalCertifier, margins
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.models import smooth
from r2et.penalty import CertifiedRanking
from r2et.rank import top_k


def layer(*rows, bias=None):
    """A Linear of these weights."""
    made = nn.Linear(len(rows[0]), len(rows), bias=bias is not None)
    made.weight.data = torch.tensor(rows)
    if bias is not None:
        made.bias.data = torch.tensor(bias)
    return made


class Many(nn.Module):
    """A large gradient and 600 small ones, which float32 loses one by one as it adds them up."""

    def __init__(self):
        super().__init__()
        self.small = nn.ModuleList(layer([0.9, 0.0, 0.0]) for _ in range(600))
        self.rival, self.big = layer([0.0, 250.0, 0.0]), layer([2**-10] * 3)
        self.out = layer([2.0**35])

    def forward(self, x):
        y = self.rival(x)
        for one in self.small:
            y = y + one(x)
        return y + self.out(F.softplus(self.big(x)))


CERTIFIERS = [
    IntervalCertifier(relaxation="linear"),
    IntervalCertifier(relaxation="interval"),
    HessianCertifier(),
]


@pytest.mark.slow  # of 600 layers
@pytest.mark.parametrize("certifier", CERTIFIERS)
def test_gradients_that_are_added_up_are_rounded_each_time(certifier):
    model = Many().eval().requires_grad_(False)
    x, there = torch.tensor([[0.0, 0.0, -0.3]]), torch.zeros(1, 3)
    scores = Gradient()(model, torch.cat([x, there]))
    assert top_k(scores, 1).flatten().tolist() == [0, 1]  # 0.3 apart, and another
    assert float(certifier(model, Gradient(), x, k=1).radius) < 0.3


class Hinged(nn.Module):
    """A steep hinge on the first feature, and a second one of nearly its slope at the far end."""

    def __init__(self, slope, rival):
        super().__init__()
        self.one, self.act, self.two = layer([1.0, 0.0]), nn.LeakyReLU(slope), layer([0.0, rival])

    def forward(self, x):
        return self.act(self.one(x)) + self.two(x)


@pytest.mark.parametrize("slope", [50.0, 1e3])
def test_steep_hinges_cancel_and_lose_what_they_cancel(slope):
    lost = (slope - 1) * 2**-24
    for share in (0.3, 0.42):
        model = smooth(Hinged(slope, 1 + share * lost), 1.0).eval().requires_grad_(False)
        near = [[-math.log(m * 2**-24), 0.0] for m in (0.6, 0.8, 0.9, 1.1, 1.3, 1.5)]
        x = torch.tensor([*near, [3.0, 0.0], [6.0, 0.0]])
        radius = IntervalCertifier()(model, Gradient(), x, k=1).radius
        assert bool((radius[-2:] > 0).all())
        clean = top_k(Gradient()(model, x), 1)[:, 0]
        for row in (radius > 0).nonzero().flatten().tolist():
            step = torch.linspace(-1, 1, 201)[:, None] * 0.999 * radius[row]
            points = x[row] + torch.cat([step, torch.zeros_like(step)], 1).float()
            assert bool((top_k(Gradient()(model, points), 1) == clean[row]).all())


class Viewed(nn.Module):
    """An activation in place, and what it made of its input seen through an older view."""

    def __init__(self):
        super().__init__()
        self.one, self.act, self.two = layer([2.0, 1.0]), nn.ReLU(inplace=True), layer([0.0, 0.8])

    def forward(self, x):
        inside = self.one(x)
        view = inside.view(len(x), 1)
        self.act(inside)
        return self.two(x) + view


@pytest.mark.parametrize("change", [lambda m: m, lambda m: smooth(m, 10.0)])
def test_steps_in_place_on_shared_memory_are_refused(change):
    model = change(Viewed()).eval().requires_grad_(False)
    with pytest.raises(InputError, match="in place, on a tensor that has other views"):
        IntervalCertifier()(model, Gradient(), torch.tensor([[5.0, 0.0]]), k=1)


class Does(nn.Module):
    """Two linear layers with somebody's function between them."""

    def __init__(self, function):
        super().__init__()
        self.one, self.two, self.function = nn.Linear(3, 4), nn.Linear(4, 2), function

    def forward(self, x):
        return self.two(self.function(self, self.one(x)))


REFUSED = {
    "a scale": (
        lambda _, h: F.elu_(h, 1.0, -1.0, 3.0),
        "got elu with a scale that is not positive",
    ),
    "a bias dropped at random": (
        lambda m, h: torch.relu(h + F.dropout(m.one.bias, 0.5, True)),
        "got bernoulli, a random number",
    ),
    "a random slope": (
        lambda m, h: torch.relu(h * F.rrelu(-m.one.bias.abs() - 1, training=True)),
        "got rrelu_with_noise, a random number",
    ),
    "an exponential that overflows": (
        lambda _, h: F.softplus(h, threshold=100.0),
        r"got softplus with beta 1 and threshold 100 \(beta above 0, threshold in 15\.\.87\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_what_it_looks_like_is_refused(name):
    function, said = REFUSED[name]
    model = Does(function).eval().requires_grad_(False)
    with pytest.raises(InputError, match=said):
        IntervalCertifier()(model, Gradient(), torch.rand(2, 3), k=1)


def test_random_numbers_from_elsewhere_are_refused():
    draws = iter(range(1, 100))
    model = Does(lambda _, h: torch.relu(h * float(next(draws)))).eval().requires_grad_(False)
    with pytest.raises(InputError, match="numbers that change with the data, the batch or by"):
        IntervalCertifier()(model, Gradient(), torch.rand(2, 3), k=1)


def test_a_reshape_that_changes_nothing_is_no_step_in_place():
    model = Does(lambda _, h: torch.relu(h.flatten(1)) + h.unsqueeze(1).tanh().squeeze(1))
    found = IntervalCertifier()(model.eval(), Gradient(), torch.rand(4, 3), k=1)
    assert bool((found.radius > 0).any())


def test_shares_below_the_normal_numbers_prove_nothing():
    # p of the third class is 7 of the smallest numbers of float32, known to one of them.
    least, size = 2.0**-149, 1e12
    model = layer(
        [0.0, -6.2 * least * size], [0.0, 0.0], [size, 0.0], bias=[200.0, 0.0, math.log(7 * least)]
    )
    model = model.eval().requires_grad_(False)
    for relaxation in ("linear", "interval"):
        certifier = IntervalCertifier(limit=1e-10, relaxation=relaxation)
        assert float(certifier(model, Gradient(), torch.zeros(1, 2), k=1).radius) == 0


class Shifted(nn.Module):
    """Weights that stand in sums, differences and quotients, and a setting that is a number."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 2)
        self.shift, self.heat = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.ones(1))
        self.beta = 1.0

    def forward(self, x):
        return self.two(F.softplus(self.one(x) + self.shift, beta=self.beta)) / self.heat


def test_a_proof_to_train_against_sees_every_weight_and_setting():
    torch.manual_seed(0)
    model, x = Shifted(), torch.rand(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    penalty = CertifiedRanking(k=2, radius=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        penalty(model, x).mean().backward()
        optimizer.step()
    model.beta = 5.0
    found = margins(model, x, 0.0, k=2).scores
    torch.testing.assert_close(found, Gradient()(model, x))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"radius": math.nan}, "margins: radius must be 0 or more and finite, got nan"),
        ({"radius": -1.0}, "margins: radius must be 0 or more and finite, got -1.0"),
        ({"norm": "l1"}, "margins: norm must be l2 or linf, got l1"),
        ({"k": 9}, "margins: k must be "),
        ({"k": 0}, "margins: k must be "),
        ({"pairs": 0}, "margins: pairs must be a positive whole number, got 0"),
        ({"target": 5}, "margins: target must be "),
        ({"x": "a"}, "margins: x must be "),
    ],
)
def test_margins_take_what_makes_sense(told, said):
    usual = {"x": torch.rand(2, 4), "radius": 0.1, "k": 2}
    with pytest.raises(InputError, match=said):
        margins(Shifted(), **usual | told)


def test_a_large_limit_loses_no_proof():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).eval()
    x = torch.rand(6, 4)
    radius = [IntervalCertifier(limit=m)(model, Gradient(), x, k=2).radius for m in (10.0, 1e9)]
    assert bool((radius[0] > 0).all())
    torch.testing.assert_close(radius[1], radius[0], rtol=5e-3, atol=0)


def test_products_of_less_than_float32_are_refused():
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).eval(), torch.rand(2, 4)
    torch.set_float32_matmul_precision("medium")
    try:
        said = "torch.set_float32_matmul_precision must be highest, got medium"
        with pytest.raises(InputError, match=said):
            IntervalCertifier()(model, Gradient(), x, k=2)
    finally:
        torch.set_float32_matmul_precision("highest")
