"""Every value, derivative and gradient on the way lies where the bounds say, in float32 too."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from nets import ResidualNet, make, randn
from r2et.certify.bounds.interval_bounds import Ball
from r2et.certify.bounds.linear_bounds import linear_bound
from r2et.certify.bounds.output_gradient import (
    output_gradient,
    output_gradient_bound,
    output_gradient_box,
)
from r2et.certify.bounds.propagation import interval_bounds, linear_bounds
from r2et.certify.bounds.rounding import unit_of
from r2et.certify.graph import build, trace
from r2et.certify.operators.linear import Dense
from r2et.certify.problem import CertificationProblem
from r2et.certify.search.branch_and_bound import (
    Parts,
    _empty,
    _split,
    open_units,
)
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.region import L2, Linf
from table_networks import NETWORKS, Clipped
from table_networks import rows as inputs

POINTS = 150
NORMS = ("l2", "linf")


class Twice(nn.Module):
    """The same layers twice, differences, constants on either side, a sum before the first bend."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(6, 6), nn.Linear(6, 6, bias=False), nn.Linear(6, 3)

    def forward(self, x):
        z = 0.3 - (x + self.a(x)) / 2
        z = z - self.b(torch.nn.functional.gelu(self.a(z) * 1.5))
        return -self.out(torch.nn.functional.elu(z, 0.7))


def pools(pool):
    first = nn.Conv2d(1, 4, 3, padding=1, stride=2, bias=False)
    second = nn.Conv2d(4, 4, 2, groups=2, dilation=2, padding=1)
    norm = nn.BatchNorm2d(4, affine=False)
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    return nn.Sequential(first, norm, nn.SiLU(), pool, second, nn.Tanh(), nn.Flatten())


def scaled():
    norm = nn.BatchNorm1d(5)
    norm.running_mean.fill_(100.0)
    return nn.Sequential(norm, nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 2))


MODELS = {
    "clipped": (Clipped, (5,)),
    **{
        act: (lambda act=act: MLP(5, (8, 7, 6), classes=2, activation=act), (5,))
        for act in ("relu", "leaky_relu", "softplus", "tanh", "sigmoid", "elu", "silu", "gelu")
    },
    "four classes": (lambda: MLP(5, (8, 7), classes=4, activation="tanh"), (5,)),
    "twice": (Twice, (6,)),
    "scaled": (scaled, (5,)),
    "linear": (lambda: nn.Linear(40, 2), (40,)),
    "residual": (lambda: ResidualNet(1, nn.LeakyReLU), (1, 4, 4)),
    "max": (lambda: pools(nn.MaxPool2d(2, 1, padding=1)), (1, 5, 5)),
    "average": (lambda: pools(nn.AvgPool2d(2, 1, padding=1)), (1, 5, 5)),
    "adaptive": (lambda: pools(nn.AdaptiveAvgPool2d(2)), (1, 5, 5)),
}


@cache
def traced(name, dtype, rows):
    """A network, a few rows, the problem that they pose: whatever norm and radius they are for."""
    if name in MODELS:
        build, shape = MODELS[name]
        x = randn(rows, *shape, dtype=dtype)
    else:
        build, x = NETWORKS[name][0], inputs(name, rows, dtype)
    model = make(build, dtype=dtype)
    return model, x, CertificationProblem.from_model("test", model, Gradient(), x, 2, None)


def setting(name, norm, radius, dtype=torch.float32, rows=4):
    """A problem of a few rows, points around them (POINTS + 1, B, ...), and balls of these."""
    model, x, problem = traced(name, dtype, rows)
    region = (L2 if norm == "l2" else Linf)(radius)
    points = region.sample(x, POINTS, generator=torch.Generator().manual_seed(1))
    if norm == "linf":
        points[::2] = x + radius * (points[::2] - x).sign()
    far = region.distance(points.flatten(0, 1).double(), x.double().repeat(POINTS, *shape_of(x)))
    ball = problem.ball(far.view(POINTS, -1).amax(0), norm)
    return model, problem, ball, torch.cat([x[None], points])


def shape_of(x):
    return [1] * (x.ndim - 1)


def holds(bound, found, move):
    """found (S, B, ...) is in the linear bound and in its interval, for moves (S, B, n)."""
    found = found.double()
    slope = bound.slope.expand(move.shape[1], *bound.slope.shape[1:])
    slope = slope.reshape(*slope.shape[:2], -1)
    line = torch.einsum("sbn,bnh->sbh", move, slope).view(found.shape) + bound.centre
    slack = 1e-13 * (1 + line.abs())
    assert bool(((found - line).abs() <= bound.spread + slack).all())
    assert bool((found >= bound.low - slack).all())
    assert bool((found <= bound.high + slack).all())


CASES = [(name, norm, radius) for name in MODELS for norm in NORMS for radius in (1e-6, 0.05, 0.5)]
CASES += [
    (name, norm, radius)
    for name in NETWORKS
    for norm, radius in zip(NORMS, (0.05, 0.01), strict=True)
]


@cache
def live_graph(name):
    """The operators in the model's own arithmetic."""
    model, x, _ = traced(name, torch.float32, 4)
    return build("test", trace("test", model, x), exact=False)


@pytest.mark.parametrize(("name", "norm", "radius"), CASES)
def test_linear_bounds_and_boxes_hold_what_float32_computes(name, norm, radius):
    model, problem, ball, points = setting(name, norm, radius)
    graph, rows, target = problem.graph, len(problem.x), problem.target
    flat, copies = points.flatten(0, 1), target.repeat(len(points))
    with torch.no_grad():
        live = live_graph(name)
        at = interval_bounds(live, Ball.point(flat), copies, "log_odds")
        at |= interval_bounds(live, Ball.point(flat), copies, "log_odds", end=live.logits)
    torch.testing.assert_close(at[live.logits].centre, model(flat).detach())
    real = Gradient(reduce="signed").at(model, problem.x.float())(flat)
    torch.testing.assert_close(at[live.gradient].centre.flatten(1), real)
    move = (points.double() - problem.x).flatten(2)

    ends = [graph.logits, graph.gradient]
    bounds = linear_bounds(graph, ball, target, "log_odds", ends=ends)
    boxes = interval_bounds(graph, ball, target, "log_odds")
    boxes |= interval_bounds(graph, ball, target, "log_odds", end=graph.logits)
    assert set(bounds) == set(boxes) == set(at)
    for value, bound in bounds.items():
        found = at[value].centre.view(len(points), rows, *at[value].centre.shape[1:])
        holds(bound, found, move)
        assert bool((found >= boxes[value].low - 1e-13).all())
        assert bool((found <= boxes[value].high + 1e-13).all())

    a = real.view(len(points), rows, -1)
    pairs, _ = problem.pairwise_bounds(ball)
    every = torch.arange(a.shape[2]).expand(rows, -1)
    gap = pairs.gaps(problem.side, every, every)
    least = ((problem.side * a)[..., :, None] - a.abs()[..., None, :]).amin(0)
    assert bool((gap <= least).all())
    low, high = pairs.interval()
    assert bool(((low <= a) & (a <= high)).all())


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_entries_that_tie_at_the_edge_of_the_ball_may_both_be_the_largest(first):
    model = nn.Sequential(nn.MaxPool2d((1, 2)), nn.Flatten()).eval()
    x = torch.tensor([first, 1 - first]).view(1, 1, 1, 2)
    explainer = Gradient(of="logit", reduce="signed")
    problem = CertificationProblem.from_model("test", model, explainer, x, 1, 1)
    ball = problem.ball(torch.tensor([0.5], dtype=torch.float64), "linf")
    edge = torch.full_like(x, 0.5)
    found = torch.stack([explainer(model, z, 1) for z in (x, edge)])
    pairs, box = problem.pairwise_bounds(ball)[0], problem.gradient_box(ball)
    for low, high in (pairs.interval(), (box.low.flatten(1), box.high.flatten(1))):
        assert bool(((low <= found.flatten(2)) & (found.flatten(2) <= high)).all())


@pytest.mark.parametrize("of", ["log_odds", "loss"])
@pytest.mark.parametrize("radius", [0.02, 0.2, 1.0])
def test_the_softmax_of_the_others_is_held(of, radius):
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator).double()  # noqa: E731
    centre, slope, spread = 2 * draw(40, 4), 2 * draw(40, 3, 4), radius * draw(40, 4).abs()
    ball = Ball(
        draw(40, 3), torch.full((40,), radius, dtype=torch.float64), "linf", unit_of(torch.float64)
    )
    logits = linear_bound(centre, slope, spread, ball, None)
    move = radius * (2 * torch.rand(400, 40, 3, generator=generator).double() - 1)
    move[::2] = radius * move[::2].sign()
    inside = 2 * torch.rand(400, 40, 4, generator=generator).double() - 1
    at = centre + torch.einsum("sbn,bnc->sbc", move, slope) + spread * inside.sign()
    target = torch.randint(4, (40,), generator=generator)
    found = output_gradient(at.flatten(0, 1), target.repeat(400), of).view(400, 40, 4)
    holds(output_gradient_bound(logits, target, of, ball), found, move)
    box = output_gradient_box(logits.box, target, of)
    assert bool(((box.low - 1e-12 <= found) & (found <= box.high + 1e-12)).all())


def rims(weights, biases, x, radius):
    """Points (30, B, n) where the plane of each unit, if it does, cuts the sphere of each row."""
    for weight, bias in zip(weights, biases, strict=True):
        unit = weight / weight.norm()
        far = -(x @ weight + bias) / weight.norm() * (1 + 1e-6)  # just beyond
        aside = randn(30, *x.shape, dtype=x.dtype)
        aside = nn.functional.normalize(aside - (aside @ unit)[..., None] * unit, dim=2)
        wide = (radius.square() - far.square()).clamp(min=0).sqrt()
        move = far[:, None] * unit + wide[:, None] * aside
        yield x + torch.where((far.abs() < radius)[:, None], move * (1 - 1e-12), 0.0)


def units_of(problem, parts, norm):
    here = replace(problem.rows(parts.rows), x=parts.x)
    _, bounds = here.pairwise_bounds(here.ball(parts.radius, norm), parts.sides)
    return open_units(here, parts, norm, bounds)


@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("act", ["relu", "leaky_relu"])
def test_parts_cover_the_ball(act, norm, depth):
    """Every point is in a part on the right sides of its units, and none is in an empty part."""
    _, problem, ball, points = setting(act, norm, 0.8, torch.float64, rows=12)
    graph, rows = problem.graph, torch.arange(len(problem.x))
    if norm == "l2":
        first = next(operator for operator in graph.operators() if isinstance(operator, Dense))
        points = torch.cat([points, *rims(first.matrix, first.bias, problem.x, ball.radius)])
    parts = Parts(rows, problem.x, ball.radius, {})
    smaller = emptied = 0
    for _ in range(depth):
        weights, planes = units_of(problem, parts, norm)
        going = torch.ones(len(parts.rows), dtype=torch.bool)
        pick = torch.cat(list(weights.values()), 1).argmax(1)
        parts = _split(parts, weights, planes, going, pick, norm)
        smaller += int((parts.radius < ball.radius[parts.rows]).sum())
    flat = points.flatten(0, 1)
    copies = problem.target.repeat(len(points))
    at = interval_bounds(graph, Ball.point(flat), copies, "log_odds")
    _, planes = units_of(problem, parts, norm)
    empty = _empty(problem, ball.radius, parts, planes, torch.zeros(len(parts.rows)) > 0)
    covered = torch.zeros(len(points), len(rows), dtype=torch.bool)
    for p, row in enumerate(parts.rows.tolist()):
        gone = points[:, row] - parts.x[p]
        far = gone.norm(dim=1) if norm == "l2" else gone.abs().amax(1)
        held = far <= parts.radius[p] * (1 + 1e-9)
        for source, side in parts.sides.items():
            z = at[source].centre.view(*points.shape[:2], -1)[:, row]
            inside = (side[p] * z >= 0).all(1)
            held &= inside
        if norm == "l2" and bool(empty[p]):
            emptied += 1
            assert not bool(held.any())
        covered[:, row] |= held
    assert bool(covered.all())
    assert norm == "linf" or depth == 1 or (smaller > 0 and emptied > 0)
