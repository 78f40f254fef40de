"""Bounds of contributions and columns that training uses: sound, tight at x, trainable."""

import pytest
import torch

from nets import make, randn
from r2et.certify import IntervalCertifier, margins
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients
from r2et.models import MLP
from r2et.penalty import CertifiedRanking
from r2et.region import L2, Linf

F64 = torch.float64
GROUPS = ((1, 2), (3, 5))
START = (0.4, -0.2, 0.1, 0.0, -0.5, 0.3)
SCALE = (0.5, 1.0, 0.7, 2.0, 1.3, 0.4)
EXPLAINERS = (
    Gradient(groups=GROUPS),
    Gradient(groups=GROUPS, reduce="signed"),
    GradientTimesInput(baseline=START),
    GradientTimesInput(baseline=START, groups=GROUPS, reduce="signed"),
    GradientTimesInput(baseline=START, groups=GROUPS),
)
REGIONS = (L2(0.1), Linf(0.1), L2(0.1, scale=SCALE, frozen=[0]), Linf(0.1, scale=SCALE, frozen=[4]))


@pytest.mark.parametrize("widths", [(8,), (8, 6)])
@pytest.mark.parametrize("explainer", EXPLAINERS, ids=repr)
def test_no_point_of_the_ball_is_below_the_bound(explainer, widths):
    model = make(lambda: MLP(6, widths, activation="softplus"), dtype=F64)
    x = randn(12, 6, dtype=F64)
    for region in REGIONS:
        low, scores, pairs = margins(model, x, 0.1, k=2, explainer=explainer, region=region)
        torch.testing.assert_close(scores, explainer(model, x))
        there = region.sample(x, 300)
        found = explainer.at(model, x)(there.flatten(0, 1)).view(300, 12, -1)
        i, j = (pairs[..., m].expand(300, -1, -1) for m in (0, 1))
        gap = (found.gather(2, i) - found.gather(2, j)).amin(0)
        # The lowest is a bound for all pairs of the top k and the others.
        assert (low.amin(1) <= gap.amin(1) + 1e-12).all()
        at_x = margins(model, x, 0.0, k=2, explainer=explainer, region=region)
        ranked = scores.sort(1, descending=True).values
        torch.testing.assert_close(at_x.low.amin(1), ranked[:, 1] - ranked[:, 2])


def test_training_against_it_proves_columns_contributions():
    x = randn(48, 6)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] > 0).long()
    explainer, region = (
        GradientTimesInput(baseline=START, groups=GROUPS, reduce="signed"),
        Linf(0.2),
    )
    shares = []
    for weight in (0.0, 1.0):
        model = make(lambda: MLP(6, (16,), activation="softplus"))
        penalty = CertifiedRanking(k=2, explainer=explainer, region=region, radius=0.2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(80):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            if weight:
                loss = loss + weight * penalty(model, x).mean()
            loss.backward()
            optimizer.step()
        model.eval().requires_grad_(False)
        certificate = IntervalCertifier(region=region, limit=1.0)(model, explainer, x, k=2)
        shares.append(float((certificate.radius >= 0.2).double().mean()))
    assert shares[1] > shares[0] + 0.15


def test_of_equal_scores_the_first_count_as_everywhere():
    model = make(lambda: MLP(6, (4,)))
    model.layers[0].weight.data[:, 1:] = model.layers[0].weight.data[:, :1]
    pairs = margins(model, randn(3, 6), 0.0, k=2, pairs=20).pairs
    assert set(pairs[..., 0].unique().tolist()) == {0, 1}
    assert set(pairs[..., 1].unique().tolist()) == {2, 3, 4, 5}


def test_a_class_to_prove_in_place_of_the_predicted_one():
    model, x = make(lambda: MLP(6)), randn(8, 6)
    explainer = GradientTimesInput(groups=GROUPS, reduce="signed")
    fixed = CertifiedRanking(k=1, explainer=explainer, radius=0.1, toward=0)(model, x)
    plain = CertifiedRanking(k=1, explainer=explainer, radius=0.1)
    torch.testing.assert_close(fixed, plain(model, x, 0))
    assert not torch.allclose(fixed, plain(model, x, 1))


def test_what_it_does_not_take():
    with pytest.raises(InputError, match="certified, but not cheaply enough to train against"):
        CertifiedRanking(explainer=IntegratedGradients())
    with pytest.raises(InputError, match="region must be None, an L2 or a Linf"):
        CertifiedRanking(region="linf")
    penalty = CertifiedRanking(k=4, explainer=EXPLAINERS[0])
    with pytest.raises(InputError, match=r"CertifiedRanking: k must be in 1\.\.3"):
        penalty(make(lambda: MLP(6)), randn(3, 6))
