"""What is proved of each reason by itself, and in regions with frozen features and scales."""

import pytest
import torch
from torch import nn

from nets import make, randn
from r2et.certify import HessianCertifier, IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput
from r2et.models import MLP
from r2et.region import L2, Linf

GROUPS = ((0, 1), (4, 5))


@pytest.fixture(scope="module")
def certified():
    model, x = make(lambda: MLP(8)), randn(12, 8)
    explainer = GradientTimesInput(groups=GROUPS)
    return model, x, explainer, IntervalCertifier(limit=3.0)(model, explainer, x, k=3)


def test_all_stay_within_the_radius_and_some_beyond(certified):
    model, x, explainer, certificate = certified
    scores = explainer(model, x)
    top = torch.zeros_like(scores, dtype=torch.bool).scatter(1, scores.topk(3).indices, True)
    radius = certificate.radius
    for at in (0.5 * float(radius.min()), float(radius.median()), 2 * float(radius.median())):
        stays = certificate.stays_at(at)
        assert stays.shape == top.shape
        assert not (stays & ~top).any()
        inside = radius >= at
        assert torch.equal(stays[inside], top[inside])
        share = stays.sum(1).double() / 3
        assert (share <= certificate.precision_at(at) + 1e-9).all()
    assert certificate.stays_at(2 * float(radius.median())).any()


def test_a_reasons_radius_is_the_largest_at_which_it_stays(certified):
    model, x, explainer, certificate = certified
    each = certificate.reason_radius
    order = explainer(model, x).argsort(1, descending=True)[:, :3]
    assert each.shape == (12, 3)
    assert (each >= certificate.radius[:, None]).all()
    assert (each.amin(1) <= 1.01 * certificate.radius).all()
    assert (each[:, 0] > each[:, 2]).any()
    for row in range(4):
        for place in range(3):
            at, feature = float(each[row, place]), int(order[row, place])
            assert certificate.stays_at(at * 0.999)[row, feature]
            if at < 2.9:
                assert not certificate.stays_at(at * 1.01)[row, feature]


def test_no_random_point_takes_a_proved_reason_out(certified):
    model, x, explainer, certificate = certified
    each, target = certificate.reason_radius, model(x).argmax(1)
    order = explainer(model, x).argsort(1, descending=True)[:, :3]
    generator = torch.Generator().manual_seed(0)
    for place in range(3):
        move = L2(1.0).sample(torch.zeros(12, 8), 200, generator=generator)
        there = x + 0.999 * each[:, place].view(1, -1, 1).float() * move
        scores = explainer(model, there.flatten(0, 1), target.repeat(200))
        rank = (scores > scores.gather(1, order[:, place].repeat(200)[:, None])).sum(1)
        assert (rank < 3).all()


def test_hessians_know_reasons_too():
    model = nn.Sequential(nn.Linear(5, 6), nn.Softplus(), nn.Linear(6, 1))
    model, x = model.eval().requires_grad_(False), randn(4, 5)
    certificate = HessianCertifier(limit=3.0)(model, Gradient(), x, k=2)
    assert (certificate.reason_radius >= certificate.radius[:, None]).all()
    with pytest.raises(InputError, match="no groups and no part"):
        HessianCertifier()(model, Gradient(groups=[(0, 1)]), x, k=2)
    with pytest.raises(InputError, match="stays_at: radius must be 0 or more and finite, got -1"):
        certificate.stays_at(-1)


def test_a_frozen_features_scale_has_no_part():
    model, x = make(lambda: MLP(8)), randn(6, 8)
    radii = []
    for far in (1.0, 1e9):
        region = L2(1.0, scale=[1.0] * 7 + [far], frozen=[7])
        radii.append(IntervalCertifier(region=region)(model, Gradient(), x, k=3).radius)
    assert torch.equal(*radii)
    assert (radii[0] > 0).all()
    free = IntervalCertifier(region=L2(1.0))(model, Gradient(), x, k=3).radius
    assert (radii[0] >= 0.99 * free).all()


def test_a_region_certificate_holds_what_the_region_calls_inside():
    """Inputs of 1e4: a projected point lies outside of its ball by their spacing, and counts."""
    model = make(lambda: MLP(8))
    model.requires_grad_(False)
    first = next(m for m in model.modules() if isinstance(m, nn.Linear))
    first.weight.data /= 100
    first.bias.data -= 1e4 * first.weight.data.sum(1)
    x = 1e4 + 100 * randn(8, 8)
    for ball in (L2, Linf):
        certificate = IntervalCertifier(region=ball(1.0), limit=100.0)(model, Gradient(), x, k=3)
        plain = IntervalCertifier(norm=ball.__name__.lower(), limit=100.0)
        radius, exact = certificate.radius, plain(model, Gradient(), x, k=3).radius
        spacing = torch.finfo(torch.float32).eps * 2e4 * (8**0.5 if ball is L2 else 1)
        assert (radius > 0).all()
        assert (radius <= exact).all()
        assert (exact < 99).all()
        assert (exact - radius).max() > 0.5 * spacing
