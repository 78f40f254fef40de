"""The bound that training uses: sound, exact where it should be, differentiable, cheap."""

import pytest
import torch
from torch import nn

from nets import make, mlp, randn
from r2et.certify import margins
from r2et.explain import Gradient
from r2et.models import MLP, smooth
from r2et.penalty.certified import CertifiedRanking
from r2et.region import L2, Linf


def double(build, seed=0):
    return make(build, seed=seed, dtype=torch.float64)


def pair_gaps(scores, pairs):
    """s_i a_i - |a_j| of signed gradients (S, B, n), with s the sign at x, scores[0]."""
    i, j = (pairs[..., m].expand(len(scores), -1, -1) for m in (0, 1))
    side = scores[:1].sign().expand_as(scores).gather(2, i)
    return side * scores.gather(2, i), scores.gather(2, j)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("widths", [(8,), (8, 6), (6, 5, 4)])
@pytest.mark.parametrize("act", ["leaky_relu", "softplus", "tanh", "gelu"])
def test_no_point_of_the_ball_is_below_the_bound(act, widths, norm):
    model = double(lambda: MLP(5, widths, classes=2, activation=act))
    x, radius = randn(20, 5, dtype=torch.float64), 0.1
    low, scores, pairs = margins(model, x, radius, k=2, norm=norm)
    assert torch.allclose(scores, Gradient()(model, x))
    there = torch.cat([x[None], (L2 if norm == "l2" else Linf)(radius).sample(x, 500)])
    found = Gradient(reduce="signed").at(model, x)(there.flatten(0, 1)).view(501, 20, 5)
    mine, other = pair_gaps(found, pairs)
    # For one of the two signs of the rival, the one that the bound is of.
    least = torch.maximum((mine - other).amin(0), (mine + other).amin(0))
    assert bool((low <= least + 1e-12).all())
    if len(widths) == 1:  # pairs are told apart, so that the lowest bound is that of all pairs
        ranked = found.abs().gather(2, scores.argsort(1, descending=True).expand(501, -1, -1))
        gap = (ranked[:, :, :2].amin(2) - ranked[:, :, 2:].amax(2)).amin(0)
        assert bool((low.amin(1) <= gap + 1e-12).all())


def test_one_layer_is_exact_over_the_box_of_derivatives():
    model = double(lambda: MLP(4, (3,))).requires_grad_(False)
    x, radius = randn(30, 4, seed=3, dtype=torch.float64), 0.3
    first, last = model.layers[0], model.layers[2]
    low, _, pairs = margins(model, x, radius, k=1, pairs=1)
    clean = Gradient(reduce="signed")(model, x)
    for row, z in enumerate(first(x)):
        width = radius * first.weight.norm(dim=1)
        sure = z.abs() > width
        sides = [[1.0 if a > 0 else 0.01] for a in z]
        slopes = [a if s else [0.01, 1.0] for a, s in zip(sides, sure, strict=True)]
        corners = torch.cartesian_prod(*[torch.tensor(s, dtype=torch.float64) for s in slopes])
        sign = 1 if model(x[row : row + 1]).argmax() == 1 else -1
        a = (sign * corners * (last.weight[1] - last.weight[0])) @ first.weight
        i, j = pairs[row, 0]
        own = clean[row, i].sign() * a[:, i]
        gaps = [float((own - a[:, j]).min()), float((own + a[:, j]).min())]
        assert float(low[row, 0]) in (pytest.approx(gaps[0]), pytest.approx(gaps[1]))


def test_at_radius_zero_the_bound_is_the_gap():
    model = double(lambda: MLP(6, (7, 5), activation="softplus"))
    x = randn(9, 6, dtype=torch.float64)
    low, scores, _ = margins(model, x, 0.0, k=3, pairs=1)
    ranked = scores.sort(dim=1, descending=True).values
    assert torch.allclose(low[:, 0], ranked[:, 2] - ranked[:, 3])


@pytest.mark.parametrize("classes", [1, 2, 4])
@pytest.mark.parametrize("signed", [False, True])
def test_scores_are_the_explainers(classes, signed):
    model = double(lambda: MLP(6, (7,), classes=classes, activation="tanh"))
    x = randn(9, 6, dtype=torch.float64)
    scores = margins(model, x, 0.1, k=3, signed=signed).scores
    assert torch.allclose(scores, Gradient(reduce="signed" if signed else "abs")(model, x))


def test_a_smooth_copy_is_read_as_one_activation():
    model = smooth(make(lambda: mlp(6, classes=2)), rho=5.0).double()
    x = randn(9, 6, dtype=torch.float64)
    assert torch.allclose(margins(model, x, 0.0, k=3).scores, Gradient()(model, x))


def test_the_penalty_is_differentiable_and_leaves_no_trace():
    model = double(lambda: MLP(6, (7, 5), activation="softplus")).train()
    x = randn(9, 6, dtype=torch.float64)
    penalty = CertifiedRanking(k=2, radius=0.1)
    loss = penalty(model, x).mean()
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    gradients = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True)
    step = 1e-6
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        way = torch.randn_like(parameter)
        with torch.no_grad():
            parameter += step * way
            above = penalty(model, x).mean()
            parameter -= 2 * step * way
            below = penalty(model, x).mean()
            parameter += step * way
        assert float((above - below) / (2 * step)) == pytest.approx(float((gradient * way).sum()))


def test_the_penalty_does_not_see_the_scale_of_scores():
    model = double(lambda: MLP(6, (7,)))
    x = randn(9, 6, dtype=torch.float64)
    penalty = CertifiedRanking(k=2, radius=0.1)
    before = penalty(model, x)
    with torch.no_grad():
        model.layers[2].weight *= 7
    assert torch.allclose(penalty(model, x), before)


def test_a_convolution_is_bounded_feature_by_feature():
    build = lambda: nn.Sequential(  # noqa: E731
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2)
    )
    model = double(build)
    x = randn(3, 1, 6, 6, dtype=torch.float64)
    low, scores, _ = margins(model, x, 0.0, k=5, pairs=1)
    ranked = Gradient()(model, x).sort(dim=1, descending=True).values
    assert torch.allclose(scores, Gradient()(model, x))
    assert torch.allclose(low[:, 0], ranked[:, 4] - ranked[:, 5])


class Shortcut(nn.Module):
    """A sum before the first activation, and a branch that leads nowhere."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(5, 5), nn.Linear(5, 6), nn.Linear(6, 2)

    def forward(self, x):
        torch.tanh(self.first(x))
        return self.out(nn.functional.softplus(self.second(x + self.first(x))))


class Words(nn.Module):
    """One dense layer for all of three words of two numbers."""

    def __init__(self):
        super().__init__()
        self.first, self.out = nn.Linear(2, 4), nn.Linear(12, 2)

    def forward(self, x):
        return self.out(torch.tanh(self.first(x)).flatten(1))


@pytest.mark.parametrize(("build", "shape"), [(Shortcut, (5,)), (Words, (3, 2))])
def test_first_layers_of_other_kinds_are_bounded(build, shape):
    model, x, radius = double(build), randn(6, *shape, dtype=torch.float64), 0.05
    low, scores, pairs = margins(model, x, radius, k=2)
    assert torch.allclose(scores, Gradient()(model, x))
    there = torch.cat([x[None], L2(radius).sample(x, 300)])
    found = Gradient(reduce="signed").at(model, x)(there.flatten(0, 1)).view(301, 6, -1)
    mine, other = pair_gaps(found, pairs)
    assert bool((low <= (mine - other.abs()).amin(0) + 1e-12).all())


def test_a_changed_setting_is_seen():
    model, x = double(lambda: MLP(5)), randn(4, 5, dtype=torch.float64)
    margins(model, x, 0.1, k=2)
    model.layers[1].negative_slope = 0.7
    assert torch.allclose(margins(model, x, 0.1, k=2).scores, Gradient()(model, x))
