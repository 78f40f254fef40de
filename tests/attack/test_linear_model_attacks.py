"""What TrustRegionAttack and ParetoAttack promise like every attack."""

import copy

import pytest
import torch
from torch import nn

from nets import GraphNet, Siamese, cnn, make, mlp, randn
from r2et.attack import ParetoAttack, TrustRegionAttack
from r2et.errors import InputError
from r2et.explain import Captum, Gradient, GradientTimesInput, SmoothGrad
from r2et.models import predict
from r2et.rank import precision_at_k
from r2et.region import L2, Linf

ATTACKS = [
    pytest.param(lambda region: TrustRegionAttack(region, steps=15), id="trust"),
    pytest.param(lambda region: TrustRegionAttack(region, steps=15, beyond=True), id="beyond"),
    pytest.param(lambda region: ParetoAttack(region, steps=10), id="pareto"),
    pytest.param(lambda region: ParetoAttack(region, steps=10, constraint="distance"), id="near"),
]
SCALE = [0.5, 1.0, 2.0, 1.0, 1.0, 0.7]
REGIONS = [
    L2(0.5),
    Linf(0.3),
    L2(0.8, bounds=(0, 1), frozen=[1, 4], scale=SCALE),
    Linf(0.4, bounds=([0] * 6, [1] * 6), frozen=[0], scale=SCALE),
]


def bent():
    net = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(), nn.Linear(16, 2))
    net[0].weight.data *= 3
    return net


@pytest.mark.parametrize("build", ATTACKS)
@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_stays_in_the_region_and_keeps_the_prediction(build, region):
    model, x = make(bent), torch.rand(8, 6, generator=torch.Generator().manual_seed(0))
    x[:, 0] = 0.0  # on a bound
    result = build(region)(model, Gradient(), x, k=2)
    assert region.contains(result.x_adv, x).all()
    assert (predict(model, result.x_adv) == predict(model, x)).all()
    scores = Gradient().at(model, x)
    torch.testing.assert_close(
        result.precision, precision_at_k(scores(x), scores(result.x_adv), 2), atol=0, rtol=0
    )
    assert (result.precision < 1).any()
    assert ((result.first_flip >= 0) == (result.precision < 1)).all()


@pytest.mark.parametrize("build", ATTACKS)
def test_repeats_row_by_row_and_leaves_no_trace(build):
    model, x = make(bent).train(), torch.rand(5, 6, generator=torch.Generator().manual_seed(1))
    before, clean = copy.deepcopy(model.state_dict()), x.clone()
    attack = build(L2(0.5))
    one, two = (attack(model, Gradient(), x, k=2) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        assert torch.equal(a, b)
    rows = [attack(model, Gradient(), x[i : i + 1], k=2) for i in range(5)]
    torch.testing.assert_close(torch.cat([r.precision for r in rows]), one.precision)
    assert model.training
    assert torch.equal(x, clean)
    assert all(torch.equal(v, before[name]) for name, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks or m._backward_hooks for m in model.modules())


@pytest.mark.parametrize("build", ATTACKS)
@pytest.mark.parametrize(
    ("model", "shape", "explainer"),
    [
        (lambda: mlp(6, classes=1), (6,), SmoothGrad(samples=4)),
        (cnn, (2, 8, 8), Gradient(reduce="abs_sum")),
        (lambda: Siamese(6), (2, 6), Gradient()),
        (lambda: GraphNet(4), (4, 4), GradientTimesInput(reduce="upper")),
    ],
    ids=["one logit", "images", "pairs", "graphs"],
)
def test_any_model_and_explanation(build, model, shape, explainer):
    network, x = make(model), randn(2, *shape)
    region = L2(0.5, frozen=[0])
    result = build(region)(network, explainer, x, k=3, target=1)
    assert result.x_adv.shape == x.shape
    assert region.contains(result.x_adv, x).all()
    assert (predict(network, result.x_adv) == predict(network, x)).all()


@pytest.mark.parametrize("build", ATTACKS)
def test_an_explanation_without_a_graph_is_refused(build):
    with pytest.raises(InputError, match="explainer must be one that can be differentiated"):
        build(L2(1.0))(make(bent), Captum("Saliency"), randn(2, 6), k=2)


def test_chunks_of_rows_make_one_trace():
    model, x = make(bent), torch.rand(5, 6, generator=torch.Generator().manual_seed(1))
    whole = TrustRegionAttack(L2(0.5), steps=10).trace(model, Gradient(), x, k=2)
    parts = TrustRegionAttack(L2(0.5), steps=10, chunk=2).trace(model, Gradient(), x, k=2)
    assert whole.outcome == parts.outcome
    assert torch.equal(whole.iterations, parts.iterations)
    torch.testing.assert_close(whole.h_low, parts.h_low, atol=1e-5, rtol=1e-5)
