"""Certificates of contributions, integrated gradients, SmoothGrad and columns, in any region."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import nn

from nets import randn
from r2et.attack import MinimumNorm
from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients, SmoothGrad
from r2et.rank import precision_at_k
from r2et.region import L2, Linf

F64 = torch.float64
GROUPS = ((1, 2), (3, 5))
START = (0.4, -0.2, 0.1, 0.0, -0.5, 0.3)
SCALE = (0.5, 1.0, 0.7, 2.0, 1.3, 0.4)
EXPLAINERS = {
    "gradient": lambda **s: Gradient(**s),
    "contribution": lambda **s: GradientTimesInput(baseline=START, **s),
    "integrated": lambda **s: IntegratedGradients(points=5, baseline=START, **s),
    "trapezoid": lambda **s: IntegratedGradients(points=4, rule="trapezoid", **s),
    "smooth": lambda **s: SmoothGrad(samples=4, sigma=0.3, **s),
}
REGIONS = {
    "l2": L2(1.0),
    "linf": Linf(1.0),
    "ellipsoid": L2(1.0, scale=SCALE, frozen=[2], bounds=(-1.2, 1.0)),
    "box": Linf(1.0, scale=SCALE, frozen=[0], bounds=(-1.2, 1.0)),
}


def net(layer, deep, classes=2, seed=0):
    torch.manual_seed(seed)
    middle = [nn.Linear(8, 8), layer()] if deep else []
    model = nn.Sequential(nn.Linear(6, 8), layer(), *middle, nn.Linear(8, classes))
    for weight in model.parameters():
        weight.data *= 1.5
    return model.eval().requires_grad_(False)


def rows(count=16, seed=1):
    return randn(count, 6, seed=seed).clamp(-1.1, 0.9)


def inside(region, x, radius, count, generator):
    """Points of each row's region, half of them on its edge: (count, B, 6)."""
    open_ended = replace(region, bounds=None)
    zero = torch.zeros(x.shape, dtype=F64)
    move = open_ended.sample(zero, count, generator=generator)
    far = torch.stack([open_ended.distance(m, zero) for m in move]).clamp(min=1e-12)
    corner = (
        move / far[..., None]
        if isinstance(region, L2)
        else move.sign() * torch.tensor(region.scale or (1.0,), dtype=F64)
    )
    move = torch.where((torch.arange(count) % 2 == 0)[:, None, None], move, corner)
    there = (x.double() + (1 - 1e-6) * radius[:, None] * move).to(x)
    there = there if region.bounds is None else there.clamp(*region.bounds)
    there[..., list(region.frozen)] = x[..., list(region.frozen)]
    return there


def certified(kind, region, number, groups, reduce, x):
    layers = {"gradient": nn.ReLU, "contribution": nn.ReLU, "smooth": nn.Tanh}
    model = net(layers.get(kind, nn.Softplus), number % 2, 2 + number % 2, seed=number)
    explainer = EXPLAINERS[kind](groups=groups, reduce=reduce)
    certifier = IntervalCertifier(region=region, limit=3.0, tolerance=0.02)
    return model, explainer, certifier(model, explainer, x, k=2).radius


CASES = tuple(enumerate(product((None, GROUPS), ("abs", "signed"))))


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("kind", EXPLAINERS)
def test_no_point_of_a_region_breaks_a_certificate(kind, name):
    region, generator = REGIONS[name], torch.Generator().manual_seed(0)
    x, positive = rows(), 0
    for number, (groups, reduce) in CASES:
        model, explainer, radius = certified(kind, region, number, groups, reduce, x)
        target = model(x).argmax(1)
        clean = explainer(model, x, target)
        points = inside(region, x, radius, 100, generator)
        scores = explainer(model, points.flatten(0, 1), target.repeat(100))
        assert precision_at_k(clean.repeat(100, 1), scores, 2).min() == 1
        positive += int((radius > 1e-3).sum())
    assert positive > 48


@pytest.mark.slow
@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("kind", EXPLAINERS)
def test_no_attack_breaks_a_certificate(kind, name):
    region, x, ratios = REGIONS[name], rows(), []
    for number, (groups, reduce) in CASES:
        model, explainer, radius = certified(kind, region, number, groups, reduce, x)
        broken = MinimumNorm(replace(region, radius=3.0), budget="fast")(model, explainer, x, k=2)
        assert (broken.radius.double() > radius).all()
        ratios.append((radius / broken.radius).median())
    assert torch.stack(ratios).median() > 0.3


def test_the_radius_of_a_contribution_of_a_linear_model_is_its_closed_form():
    # S_c = w_c (x_c - b_c): the nearest tie of signed scores i and j is the plane
    # w_i (x_i - b_i) = w_j (x_j - b_j), at distance gap / ||(w_i, w_j)|| in units of scale.
    weight = torch.tensor([1.0, -2.0, 0.5, 1.5, -1.0, 0.7], dtype=F64)
    model = nn.Linear(6, 1, dtype=F64).eval().requires_grad_(False)
    model.weight.data, x = weight[None], rows(6).double()
    scale = torch.tensor(SCALE, dtype=F64)
    scores = weight * (x - torch.tensor(START, dtype=F64))
    explainer = GradientTimesInput(baseline=START, reduce="signed")
    order = scores.argsort(1, descending=True)
    for region, length in ((L2(1.0, scale=SCALE), 2), (Linf(1.0, scale=SCALE), 1)):
        nearest = torch.full((6,), torch.inf, dtype=F64)
        for i, j in product(range(2), range(2, 6)):
            a, b = order[:, i : i + 1], order[:, j : j + 1]
            gap = (scores.gather(1, a) - scores.gather(1, b))[:, 0]
            slope = torch.stack([(weight * scale)[a[:, 0]], (weight * scale)[b[:, 0]]])
            nearest = torch.minimum(nearest, gap / slope.norm(p=length, dim=0))
        limit = 2 * float(nearest.max())
        certifier = IntervalCertifier(region=region, limit=limit, tolerance=1e-4)
        certificate = certifier(model, explainer, x, k=2, target=1)
        torch.testing.assert_close(certificate.radius, nearest, rtol=3e-4, atol=0)


class Products(nn.Module):
    """f = sum of a_i x_i^2 / 2: gradient a x, integrated gradients from 0 a x^2 / 2."""

    def __init__(self, a):
        super().__init__()
        self.first, self.out = nn.Linear(2, 2, dtype=F64), nn.Linear(2, 1, dtype=F64)
        self.first.weight.data, self.out.weight.data = torch.eye(2, dtype=F64), a[None] / 2
        self.first.bias.data.zero_()
        self.out.bias.data.zero_()

    def forward(self, x):
        z = self.first(x)
        return self.out(z * z)


def test_integrated_gradients_of_a_quadratic():
    a = torch.tensor([1.0, 2.0], dtype=F64)
    model, x = Products(a).eval().requires_grad_(False), torch.tensor([[2.0, 0.5]], dtype=F64)
    explainer = IntegratedGradients(points=3, rule="midpoint", reduce="signed")
    torch.testing.assert_close(explainer(model, x, 1), a * x * x / 2)
    # 2 - e against sqrt(2) (0.5 + e) in a box: equal at e = (2 - sqrt(2) / 2) / (1 + sqrt(2)).
    exact = (2 - 2**0.5 / 2) / (1 + 2**0.5)
    radius = float(IntervalCertifier(norm="linf")(model, explainer, x, k=1, target=1).radius)
    assert 0.4 * exact < radius <= exact


def test_columns_of_one_hot_features_hold_farther_than_their_features():
    # Two features that carry the same weight: apart they tie, together they do not.
    model = nn.Linear(4, 1).eval().requires_grad_(False)
    model.weight.data = torch.tensor([[1.0, 1.0, 0.5, 0.2]])
    x = torch.ones(1, 4)
    apart = IntervalCertifier()(model, GradientTimesInput(), x, k=1, target=1)
    together = IntervalCertifier()(model, GradientTimesInput(groups=[(0, 1)]), x, k=1, target=1)
    assert float(apart.radius) == 0
    # 2 + e0 + e1 against 0.5 (1 + e2).
    assert float(together.radius) == pytest.approx(1.5 / 2.25**0.5, rel=3e-3)


def test_chunks_of_points_and_rows_change_nothing(monkeypatch):
    model, x = net(nn.Softplus, True), rows(5)
    explainer = IntegratedGradients(points=9, groups=GROUPS)
    whole = IntervalCertifier()(model, explainer, x, k=2).radius
    monkeypatch.setattr("r2et.certify.bounds.score_bounds.POINT_NUMBERS", 1000)
    apart = IntervalCertifier(chunk=2)(model, explainer, x, k=2).radius
    torch.testing.assert_close(whole, apart, rtol=1e-9, atol=0)
    assert (whole > 0).all()


def test_intervals_alone_are_looser_and_sound():
    model, x = net(nn.Tanh, False), rows()
    for kind in EXPLAINERS.values():
        explainer = kind(groups=GROUPS)
        loose = IntervalCertifier(relaxation="interval")(model, explainer, x, k=1).radius
        tight = IntervalCertifier()(model, explainer, x, k=1).radius
        assert (loose <= 1.01 * tight).all()
        assert (loose > 0).all()


def test_what_is_refused_says_why():
    model, x = net(nn.Tanh, False), rows(2)
    with pytest.raises(InputError, match="of must be log_odds or logit for an explanation of sev"):
        IntervalCertifier()(model, IntegratedGradients(of="probability"), x, k=2)
    with pytest.raises(InputError, match="region must be None, an L2, a Linf or a Feasible"):
        IntervalCertifier(region="l2")
    with pytest.raises(InputError, match=r"k must be in 1\.\.3"):
        IntervalCertifier()(model, Gradient(groups=GROUPS), x, k=4)
    with pytest.raises(InputError, match="bounds must be around x"):
        IntervalCertifier(region=L2(1.0, bounds=(5, 6)))(model, Gradient(), x, k=2)


def test_contributions_to_a_probability_rank_as_those_to_its_log_odds():
    model, x = net(nn.ReLU, True), rows()
    radii = [
        IntervalCertifier()(model, GradientTimesInput(baseline=START, of=of), x, k=2).radius
        for of in ("log_odds", "probability")
    ]
    torch.testing.assert_close(*radii, rtol=0.01, atol=0)
