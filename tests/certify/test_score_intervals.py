"""Bounds of the scores themselves over a region: exact on linear models, never left on others."""

import pytest
import torch

from credit_table import credit
from linear_person import GROUPS, WEIGHTS, Linear, contributions, people
from nets import mlp
from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients, SmoothGrad
from r2et.region import L2, Feasible, Linf

METHOD = GradientTimesInput(baseline=0.5, groups=GROUPS, reduce="signed")


def bounds(model, explainer, x, region, target=None):
    return IntervalCertifier(region=region).score_intervals(model, explainer, x, target=target)


def test_a_linear_model_has_them_in_closed_form():
    x = people(20)
    clean = contributions(x, torch.full((6,), 0.5, dtype=torch.float64))
    size = WEIGHTS.abs()
    moves = 0.1 * torch.stack([size[0], size[1:4].sum(), size[4], size[5]])
    low, high, above = bounds(Linear().eval(), METHOD, x, Linf(0.1), target=1)
    assert torch.allclose(low, clean - moves, atol=1e-6)
    assert torch.allclose(high, clean + moves, atol=1e-6)
    # Columns share no feature, so that the worst of both is possible at once.
    least = clean[:, :, None] - clean[:, None] - moves[:, None] - moves
    off = ~torch.eye(4, dtype=torch.bool)
    assert torch.equal(above[:, off], (least > 0)[:, off])
    assert 0 < int(above.sum()) < above.numel()


EXPLAINERS = (
    Gradient(reduce="signed"),
    GradientTimesInput(baseline=0.2, reduce="signed", groups=((0, 1), (3, 4))),
    IntegratedGradients(points=5, baseline=0.2, reduce="signed", groups=((1, 2, 5),)),
    SmoothGrad(samples=4, reduce="signed"),
)
REGIONS = (
    L2(0.05),
    Linf(0.02),
    L2(0.1, frozen=[0, 3]),
    Linf(0.05, scale=[1.0, 0.1, 2, 1, 1, 0.5]),
)


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("region", REGIONS, ids=str)
def test_no_point_of_the_region_leaves_them(explainer, region):
    torch.manual_seed(0)
    model, x = mlp(act="leaky_relu").eval(), torch.rand(4, 6)
    target = torch.tensor([0, 1, 0, 1])
    low, high, above = bounds(model, explainer, x, region, target)
    inside = region.sample(x, 400, generator=torch.Generator().manual_seed(1))
    noise = torch.randn(400, *x.shape, generator=torch.Generator().manual_seed(2))
    edge = torch.stack([region.extreme(x, one) for one in noise])
    scores_at = explainer.at(model, x, target)
    for points in (inside, edge):
        scores = scores_at(points.flatten(0, 1)).view(400, 4, -1).double()
        assert bool((scores >= low).all())
        assert bool((scores <= high).all())
        order = scores[:, :, :, None] > scores[:, :, None]
        assert bool((order | ~above).all())
    assert bool(above.any())


def test_every_change_of_a_table_is_within():
    data = credit(60)
    model, x = mlp(data.train.x.shape[1]).eval(), data.test.x[:3]
    region = Feasible(data.schema, moves={"age": 2, "duration in months": 1}, switches=1)
    explainer = IntegratedGradients(points=4, reduce="signed", groups=data.groups)
    low, high, above = bounds(model, explainer, x, region, target=1)
    for i in range(3):
        points = torch.cat([part for _, part in region.enumerate(x[i : i + 1])])
        scores = explainer(model, points, 1).double()
        assert bool(((scores >= low[i]) & (scores <= high[i])).all())
        order = scores[:, :, None] > scores[:, None]
        assert bool((order | ~above[i]).all())
    assert bool(above.any())


def test_what_cannot_be_bounded_is_refused():
    x, data = people(2), credit(40)
    with pytest.raises(InputError, match="region must be given for score_intervals, got None"):
        IntervalCertifier().score_intervals(Linear().eval(), METHOD, x)
    with pytest.raises(InputError, match="explainer must be one with reduce='signed'"):
        bounds(Linear().eval(), Gradient(), x, L2(0.1))
    many = Feasible(data.schema, switches=2)
    with pytest.raises(InputError, match="region must be such that labels switch in at most 3"):
        IntervalCertifier(region=many, patterns=3).score_intervals(
            mlp(data.train.x.shape[1]).eval(), Gradient(reduce="signed"), data.test.x[:1]
        )
