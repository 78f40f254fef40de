"""An operator from outside the package: one class and one registration, and it is proved."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from nets import make, randn
from r2et.certify import HessianCertifier, IntervalCertifier, margins
from r2et.certify.bounds.interval_bounds import Ball, Box, box_product
from r2et.certify.bounds.linear_bounds import LinearBound, interval_only
from r2et.certify.operators.arithmetic import over_directions
from r2et.certify.operators.base import Operator
from r2et.certify.operators.registry import OPERATORS, Call, register
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.rank import top_k
from r2et.region import L2


@dataclass(frozen=True)
class HyperbolicOp(Operator):
    """sinh(z), or cosh(z)."""

    odd: bool
    name: ClassVar[str] = "hyperbolic"

    def interval(self, ball: Ball, *inputs: Box) -> Box:
        (z,) = inputs
        function = torch.sinh if self.odd else torch.cosh
        if z.spread is None:
            return Box(function(z.centre))
        low, high = function(z.low), function(z.high)
        if not self.odd:  # smallest at 0
            least = torch.where((z.low < 0) & (z.high > 0), 1.0, torch.minimum(low, high))
            low, high = least, torch.maximum(low, high)
        box = Box((low + high) / 2, (high - low) / 2)
        return box.widened(8 * ball.unit * (1 + box.size))

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (z,) = inputs
        return interval_only(self.interval(ball, z.box), z.slope.shape[1])

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        (z,) = values
        slope = HyperbolicOp(not self.odd).interval(Ball.point(z.centre), z)
        return box_product(over_directions(slope), jacobians[0])


def build():
    return nn.Sequential(nn.Linear(4, 6), Sinh(), nn.Linear(6, 2))


class Sinh(nn.Module):
    def forward(self, x):
        return torch.sinh(x)


@pytest.fixture
def hyperbolic():
    """The registration, and its end."""
    aten = torch.ops.aten
    for target, odd in ((aten.sinh.default, True), (aten.cosh.default, False)):

        @register(target)
        def read(call: Call, odd: bool = odd):
            return HyperbolicOp(odd), (call.value("self", grouped=True),)

    yield
    del OPERATORS[aten.sinh.default], OPERATORS[aten.cosh.default]


def test_without_it_the_network_is_refused_by_its_name():
    with pytest.raises(InputError, match="got sinh"):
        IntervalCertifier()(make(build).eval(), Gradient(), randn(3, 4), k=1)


@pytest.mark.usefixtures("hyperbolic")
@pytest.mark.parametrize("certifier", [IntervalCertifier(), HessianCertifier()])
def test_with_it_radii_are_proved_and_hold(certifier):
    model, x = make(build).eval(), randn(20, 4)
    radius = certifier(model, Gradient(), x, k=1).radius
    assert float((radius > 0).double().mean()) > 0.8
    clean = top_k(Gradient()(model, x), 1)
    for move in L2(1.0).sample(torch.zeros_like(x), 300):
        there = x + 0.999 * radius[:, None].float() * move
        assert torch.equal(top_k(Gradient().at(model, x)(there), 1), clean)


@pytest.mark.usefixtures("hyperbolic")
def test_with_it_networks_are_trained_against_the_proof():
    model, x = make(build), randn(20, 4)
    bounds = margins(model, x, 0.01, k=1)
    bounds.low.sum().backward()
    torch.testing.assert_close(bounds.scores, Gradient()(model, x))
    assert all(bool(p.grad.any()) for p in (model[0].weight, model[2].weight))


def test_a_reader_that_asks_for_what_the_operation_lacks_refuses_it():
    target = torch.ops.aten.sinh.default

    @register(target)
    def read(call: Call):
        return call["training"]

    try:
        with pytest.raises(InputError, match=r"got sinh called in a way .* \(KeyError\)"):
            IntervalCertifier()(make(build).eval(), Gradient(), randn(3, 4), k=1)
    finally:
        del OPERATORS[target]
