"""Networks for tables in their usual forms: proved, and no search enters what is proved."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nets import make
from r2et.attack import MinimumNorm
from r2et.certify import IntervalCertifier, margins
from r2et.certify.bounds.interval_bounds import Ball, Box
from r2et.certify.bounds.propagation import interval_bounds, linear_bounds
from r2et.certify.bounds.rounding import unit_of
from r2et.certify.graph import graph_of
from r2et.certify.operators.embedding import EmbeddingOp
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.rank import top_k
from r2et.region import L2, Linf
from table_networks import NETWORKS, rows

SETTINGS = [
    ("linear", "l2", torch.float32),
    ("interval", "linf", torch.float32),
    pytest.param("linear", "linf", torch.float64, marks=pytest.mark.slow),
    pytest.param("interval", "l2", torch.float64, marks=pytest.mark.slow),
]
# Torch has no derivative of Hardsigmoid's backward pass, which attacks follow.
ATTACKED = [name for name in NETWORKS if name != "hardsigmoid"]


def network(name, dtype=torch.float32):
    return make(NETWORKS[name][0], dtype=dtype).eval().requires_grad_(False)


def changed(model, x, radius, norm, points):
    """(points, B) bool: whether the top 2 is another at points of these balls and on their rims."""
    clean = top_k(Gradient()(model, x), 2).sort(1).values
    generator = torch.Generator().manual_seed(0)
    region = (L2 if norm == "l2" else Linf)(1.0)
    move = region.sample(torch.zeros_like(x), points, generator=generator)
    move[::2] = F.normalize(move[::2], dim=2) if norm == "l2" else move[::2].sign()
    there = x + (1 - 1e-5) * radius[:, None].to(x) * move
    found = top_k(Gradient().at(model, x)(there.flatten(0, 1)), 2).sort(1).values
    return (found.view(points, *clean.shape) != clean).any(2)


@pytest.mark.parametrize(("relaxation", "norm", "dtype"), SETTINGS)
@pytest.mark.parametrize("name", NETWORKS)
def test_no_point_of_a_certified_ball_changes_the_top_k(name, relaxation, norm, dtype):
    model, x = network(name, dtype), rows(name, 10, dtype)
    certifier = IntervalCertifier(norm=norm, relaxation=relaxation, limit=2.0, tolerance=0.01)
    radius = certifier(model, Gradient(), x, k=2).radius
    assert float((radius > 0).double().mean()) > 0.5
    assert not bool((changed(model, x, radius, norm, 400) & (radius > 0)).any())
    # What is proved is not far from where it ends: a search does find changes further out.
    assert bool(changed(model, x, torch.full_like(radius, 30.0), norm, 400).any())


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", ATTACKED)
def test_no_attack_enters_a_certified_radius(name, norm):
    model, x = network(name), rows(name, 24)
    radius = IntervalCertifier(norm=norm)(model, Gradient(), x, k=2).radius
    attack = MinimumNorm((L2 if norm == "l2" else Linf)(3.0), budget="fast")
    broken = attack(model, Gradient(), x, k=2)
    flipped = broken.precision < 1
    assert bool(flipped.any())
    assert bool((radius > 0).any())
    assert bool((radius <= broken.distance.double())[flipped].all())


def test_a_category_holds_within_its_cell_and_no_further():
    """x.long() is 2 for 2 <= x < 3: the middle of the cell may move by a half."""
    model, x = network("embeddings"), rows("embeddings", 20)
    radius = IntervalCertifier(norm="linf", limit=5.0)(model, Gradient(), x, k=1).radius
    assert bool((radius > 0).all())
    assert float(radius.max()) <= 0.5


@pytest.mark.parametrize("ball", [L2, Linf])
def test_categories_that_stand_still_are_one_row_of_their_table(ball):
    """As if the embeddings were constants: the radius is that of the MLP of the numbers alone."""
    model, x = network("embeddings", torch.float64), rows("embeddings", 10, torch.float64).floor()
    x[:, :3] = rows("embeddings", 10, torch.float64)[:, :3]
    certifier = IntervalCertifier(region=ball(1.0, frozen=[3, 4]), limit=3.0)
    radius = certifier(model, Gradient(), x, k=1).radius
    assert bool((radius > 0).all())
    norm = "l2" if ball is L2 else "linf"
    for row in range(3):
        fixed = model.tables[0](x[row, 3].long()), model.tables[1](x[row, 4].long())
        layer = nn.Linear(3, 12).double()
        layer.weight.data = model.net[0].weight[:, :3].clone()
        rest = model.net[0].weight[:, 3:] @ torch.cat(fixed)
        layer.bias.data = model.net[0].bias + rest
        alone = nn.Sequential(layer, *model.net[1:]).eval().requires_grad_(False)
        expected = IntervalCertifier(norm=norm, limit=3.0)(
            alone, Gradient(), x[row : row + 1, :3], k=1
        )
        torch.testing.assert_close(radius[row : row + 1], expected.radius, rtol=0.01, atol=0)


def test_a_category_at_the_edge_of_its_cell_may_be_another():
    table = torch.tensor([[0.0, 5.0], [1.0, 3.0], [2.0, 4.0]], dtype=torch.float64)
    ball = Ball.point(torch.zeros(3, 1))
    low = torch.tensor([1.0, 0.0, -1e-9])
    high = torch.tensor([1.0, 1.0, 1e-9])
    box = EmbeddingOp(table).interval(ball, Box((low + high) / 2, (high - low) / 2))
    assert box.low.tolist() == [[1.0, 3.0], [0.0, 3.0], [0.0, 5.0]]
    assert box.high.tolist() == [[1.0, 3.0], [2.0, 5.0], [0.0, 5.0]]


@pytest.mark.parametrize("shift", [0.0, 30.0, 1000.0])
@pytest.mark.parametrize("size", [4, 40, 200])
def test_a_layer_norm_is_held_as_float32_computes_it(size, shift):
    """Also where the mean is far larger than the deviation, so that differences cancel."""

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(size)
            nn.init.normal_(self.norm.weight)

        def forward(self, x):
            return self.norm(x)

    model = make(Both).eval().requires_grad_(False)
    x = torch.randn(40, size, generator=torch.Generator().manual_seed(1)) + shift
    graph = graph_of("test", model, x)
    unit = unit_of(torch.float32)
    ball = Ball(x.double(), torch.zeros(len(x), dtype=torch.float64), "l2", unit)
    target = torch.arange(len(x)) % size
    ends = [graph.logits, graph.gradient]
    found = model(x), Gradient(of="logit", reduce="signed")(model, x, target)
    bounds = linear_bounds(graph, ball, target, "logit", ends=ends)
    boxes = interval_bounds(graph, ball, target, "logit")
    boxes |= interval_bounds(graph, ball, target, "logit", end=graph.logits)
    for end, value in zip(ends, found, strict=True):
        for bound in (bounds[end], boxes[end]):
            assert bool(((bound.low <= value) & (value <= bound.high)).all())


def test_they_are_trained_against_the_proof():
    for name in ("layer norm", "ensemble", "gated residual", "piecewise-linear"):
        model, x = make(NETWORKS[name][0]), rows(name, 8)
        bounds = margins(model, x, 1e-3, k=2)
        torch.testing.assert_close(bounds.scores, Gradient()(model, x), rtol=1e-3, atol=1e-5)
        bounds.low.sum().backward()
        slopes = [p.grad for p in model.parameters() if p.grad is not None]
        assert all(bool(slope.isfinite().all()) for slope in slopes)
        assert sum(bool(slope.any()) for slope in slopes) > 1


class Around(nn.Module):
    """A layer, somebody's function, a layer."""

    def __init__(self, function):
        super().__init__()
        self.one, self.two, self.function = nn.Linear(4, 6), nn.Linear(6, 2), function

    def forward(self, x):
        return self.two(self.function(self.one(x)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda z: torch.stack([z, z.flip(0)], 0)[0], "got "),
        (lambda z: z.sort(1).values, "got sort"),
        (lambda z: F.layer_norm(z, (6,), eps=0.0), "native_layer_norm with an eps of 0"),
        (lambda z: z + torch.eye(6)[z.long()[:, 0]], "got index by numbers that depend on x"),
        (lambda z: z * z.cumsum(1), "got cumsum"),
        (lambda z: torch.cat([z, z], 0)[: len(z)], "cat across rows|cat, whose|got "),
    ],
)
def test_what_is_not_covered_is_refused_by_name(function, message):
    with pytest.raises(InputError, match=message):
        IntervalCertifier()(
            make(lambda: Around(function)).eval(), Gradient(), torch.ones(3, 4), k=1
        )
