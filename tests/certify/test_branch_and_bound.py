"""Parts of a ball beyond a plane: a float value is beyond it already within its rounding."""

import pytest
import torch
from torch import nn

from r2et.certify.problem import CertificationProblem
from r2et.certify.search.branch_and_bound import (
    Parts,
    Plane,
    _empty,
    _split,
    open_units,
)
from r2et.explain import Gradient

ONE = torch.ones(1, dtype=torch.float64)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def plane(value, noise):
    """z = value + d_1, known up to noise, in two dimensions."""
    return {1: Plane(numbers([value]), numbers([noise]), numbers([1.0], [0.0]))}


def split(radius, planes, x=None):
    """The parts of one ball when its only unit is put on either side."""
    x = torch.zeros(1, 2, dtype=torch.float64) if x is None else x
    parts = Parts(torch.tensor([0]), x, radius, {})
    yes, first = torch.tensor([True]), torch.tensor([0])
    return _split(parts, {1: torch.ones_like(radius)[:, None]}, planes, yes, first, "l2")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_ball_beyond_a_plane_reaches_back_by_the_rounding(sign):
    # What may be beyond is d_1 <= -0.8: a cap whose rim is (-0.8, 0.6) in the unit ball.
    parts = split(ONE, plane(sign * 0.9, 0.1))
    beyond = int((parts.sides[1][:, 0] == -sign).nonzero())
    torch.testing.assert_close(parts.radius[beyond], 0.6 * ONE[0])
    for rim in (0.6, -0.6):
        far = (numbers(-sign * 0.8, rim) - parts.x[beyond]).norm()
        assert float(far) <= float(parts.radius[beyond])


@pytest.mark.parametrize(("value", "count"), [(1.05, 2), (1.15, 1), (-1.05, 2), (-1.15, 1)])
def test_a_plane_out_of_reach_by_less_than_its_rounding_is_within_reach(value, count):
    assert len(split(ONE, plane(value, 0.1)).rows) == count


def problem_of(model, x):
    return CertificationProblem.from_model("test", model, Gradient(), x, 1, None)


def parts_on(sides, x):
    rows = torch.zeros(len(sides), dtype=torch.long)
    return Parts(rows, x.expand(len(sides), -1), ONE.expand(len(sides)), {1: sides})


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_part_is_empty_only_beyond_the_rounding_of_its_planes(noise):
    # d_1 >= a and d_2 >= a meet in the unit ball up to a = 1 / sqrt(2).
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).double().eval()
    x = torch.zeros(1, 2, dtype=torch.float64)
    for most, side in ((1.0, [1.0, 0.0]), (0.5**0.5, [1.0, 1.0]), (0.5**0.5, [-1.0, 1.0])):
        sides, problem = numbers(side, side), problem_of(model, x)
        need = noise + most * numbers([0.999], [1.001])
        planes = {1: Plane(-sides * need, torch.full_like(sides, noise), torch.eye(2).double())}
        parts = parts_on(sides, x)
        empty = _empty(problem, ONE, parts, planes, torch.tensor([False, False]))
        assert empty.tolist() == [False, True]


class Offset(nn.Module):
    """One unit on large features that cancel: float32 knows it to a thousandth only."""

    def __init__(self, weight, bias):
        super().__init__()
        self.first, self.out = nn.Linear(5, 1), nn.Linear(1, 1)
        self.first.weight.data, self.first.bias.data = weight, bias

    def forward(self, x):
        return self.out(torch.relu(self.first(x)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_points_that_float32_puts_beyond_a_plane_are_in_a_part(seed):
    """The ball ends just before the plane, and yet the unit is off at some of its points."""
    torch.manual_seed(seed)
    weight, base = torch.randn(1, 5), torch.tensor([[4096.0, 4096.0, 0.0, 0.0, 0.0]])
    model = Offset(weight, 0.5 - base @ weight[0]).eval().requires_grad_(False)
    x = base + 0.1 * torch.randn(1, 5)
    w, b = weight[0].double(), model.first.bias.double()
    value = x.double() @ w + b
    assert float(value) > 0
    radius = value / w.norm() * (1 - 1e-8)
    foot = x.double() - radius[:, None] * w / w.norm()
    points = (foot + 1e-4 * torch.randn(50_000, 5, dtype=torch.float64)).float()
    points = points[(points.double() - x.double()).norm(dim=1) <= radius]
    assert bool((points.double() @ w + b > 0).all())
    off = points[model.first(points)[:, 0] <= 0].double()
    assert len(off) > 0

    problem = problem_of(model, x)
    whole = Parts(torch.tensor([0]), problem.x, radius, {})
    _, bounds = problem.pairwise_bounds(problem.ball(radius, "l2"))
    _, planes = open_units(problem, whole, "l2", bounds)
    ((source, plane_of),) = planes.items()
    parts = split(radius, {1: plane_of}, problem.x)
    left = parts.sides[1][:, 0] < 0
    assert left.sum() == 1
    assert bool(((off - parts.x[left]).norm(dim=1) <= parts.radius[left] * (1 + 1e-9)).all())
    there = whole._replace(sides={source: -torch.ones_like(radius)[:, None]})
    assert not bool(_empty(problem, radius, there, planes, torch.tensor([False])))
