"""Clamps, Hardtanh and ReLU6: closed forms, searches for counter-examples, refusals."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nets import make, randn
from r2et.certify import HessianCertifier, IntervalCertifier, margins
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.rank import top_k
from r2et.region import L2, Linf


class Between(nn.Module):
    """Two linear layers with somebody's function of what is between them."""

    def __init__(self, function):
        super().__init__()
        self.one, self.two, self.function = nn.Linear(4, 8), nn.Linear(8, 3), function
        self.register_buffer("low", torch.linspace(-0.5, 0.0, 8))
        self.register_buffer("high", torch.linspace(0.1, 0.8, 8))

    def forward(self, x):
        return self.two(self.function(self, self.one(x)))


FUNCTIONS = {
    "clamp": lambda _, z: z.clamp(-0.4, 0.7),
    "clamp by tensors": lambda m, z: torch.clamp(z, m.low, m.high),
    "one side": lambda _, z: z.clamp(max=0.3) + 0.1 * z.clamp_min(-0.2),
    "in place": lambda _, z: F.hardtanh(2 * z, -0.5, 0.5, inplace=True),
    "relu6": lambda _, z: F.relu6(10 * z) / 10,
    "after a curve": lambda _, z: torch.tanh(z).clamp(-0.5, 0.5) * torch.sigmoid(z),
}


def unharmed(model, x, k, certifier, points=300):
    """The share of rows with a radius above 0, none of which has a point with another top k."""
    radius = certifier(model, Gradient(), x, k=k).radius
    clean = top_k(Gradient()(model, x), k).sort(1).values
    region = (L2 if certifier.norm == "l2" else Linf)(1.0)
    move = region.sample(torch.zeros_like(x), points, generator=torch.Generator().manual_seed(0))
    move[::2] = F.normalize(move[::2], dim=2) if certifier.norm == "l2" else move[::2].sign()
    there = x + (1 - 1e-5) * radius[:, None].to(x) * move
    found = top_k(Gradient().at(model, x)(there.flatten(0, 1)), k).sort(1).values
    changed = (found.view(points, *clean.shape) != clean).any(2)
    assert not bool((changed & (radius > 0)).any())
    return float((radius > 0).double().mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("relaxation", ["linear", "interval"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_point_of_a_certified_ball_changes_the_top_k(name, relaxation, norm, dtype):
    model = make(lambda: Between(FUNCTIONS[name]), dtype=dtype).eval()
    certifier = IntervalCertifier(norm=norm, relaxation=relaxation, limit=2.0)
    assert unharmed(model, randn(12, 4, dtype=dtype), 2, certifier) > 0.5


class Ramp(nn.Module):
    """3 clamp(x_1, 0, 1) + x_2: feature 1 is the reason exactly where 0 < x_1 < 1."""

    def forward(self, x):
        return (3 * x[:, 0].clamp(0.0, 1.0) + x[:, 1])[:, None]


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("at", [0.3, 0.6, -0.2, 1.4])
def test_the_radius_is_the_distance_to_the_nearer_end(at, norm):
    far = min(abs(at), abs(at - 1))
    certifier = IntervalCertifier(norm=norm)
    radius = float(certifier(Ramp().eval(), Gradient(), torch.tensor([[at, 5.0]]), k=1).radius)
    assert 0.995 * far < radius < far


def test_a_clamp_at_0_is_a_relu():
    def radius(function):
        return IntervalCertifier()(
            make(lambda: Between(function)).eval(), Gradient(), randn(12, 4), k=2
        ).radius

    assert torch.equal(radius(lambda _, z: z.clamp(min=0)), radius(lambda _, z: torch.relu(z)))


def test_networks_with_clamps_are_trained_against_the_proof():
    model, x = make(lambda: Between(FUNCTIONS["clamp"])), randn(12, 4)
    bounds = margins(model, x, 0.05, k=1)
    bounds.low.sum().backward()
    torch.testing.assert_close(bounds.scores, Gradient()(model, x))
    assert bool(model.one.weight.grad.any())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda _, z: z.clamp(1.0, 0.0), "got clamp whose lower end is above its upper end"),
        (lambda _, z: torch.where(z > 0, z, 0.1 * z), "got where with another value than 0"),
        (lambda _, z: z * (z > z.flip(1)), "got gt whose other depends on x|got flip"),
        (lambda _, z: z * (z > 0), "got mul of a comparison"),
    ],
)
def test_other_masks_are_refused_by_name(function, message):
    with pytest.raises(InputError, match=message):
        IntervalCertifier()(make(lambda: Between(function)).eval(), Gradient(), randn(3, 4), k=1)


def test_a_clamp_has_no_hessian():
    with pytest.raises(InputError, match="clamp"):
        HessianCertifier()(
            make(lambda: Between(FUNCTIONS["clamp"])).eval(), Gradient(), randn(3, 4), k=1
        )
