"""What TrustRegionAttack and ParetoAttack promise like every attack."""

import copy

import pytest
import torch
from torch import nn

from nets import GraphNet, Siamese, cnn, make, mlp, randn
from r2et.attack import ParetoAttack, TrustRegionAttack
from r2et.attack.problem import AttackProblem
from r2et.attack.scaled_problem import ScaledProblem
from r2et.errors import InputError
from r2et.explain import Captum, Gradient, GradientTimesInput, SmoothGrad
from r2et.models import predict
from r2et.rank import precision_at_k
from r2et.region import L2, Linf

ATTACKS = [
    pytest.param(lambda region: TrustRegionAttack(region, steps=8), id="trust"),
    pytest.param(lambda region: TrustRegionAttack(region, steps=8, beyond=True), id="beyond"),
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
    model, x = make(bent), torch.rand(5, 6, generator=torch.Generator().manual_seed(0))
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
    rows = [attack(model, Gradient(), x[i : i + 1], k=2) for i in range(2)]
    torch.testing.assert_close(torch.cat([r.precision for r in rows]), one.precision[:2])
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
    network, x = make(model), randn(1, *shape)
    region = L2(0.5, frozen=[0])
    result = build(region)(network, explainer, x, k=3, target=1)
    assert result.x_adv.shape == x.shape
    assert region.contains(result.x_adv, x).all()
    assert (predict(network, result.x_adv) == predict(network, x)).all()


@pytest.mark.parametrize("build", ATTACKS)
def test_an_explanation_without_a_graph_is_refused(build):
    with pytest.raises(InputError, match="explainer must be one that can be differentiated"):
        build(L2(1.0))(make(bent), Captum("Saliency"), randn(2, 6), k=2)


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_slopes_and_room_are_those_of_the_region_s_units(region):
    """Against finite differences, and against where the region ends."""
    model = make(lambda: mlp(6, "tanh"), dtype=torch.float64)
    x = torch.rand(3, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    problem = AttackProblem.from_model("test", model, Gradient(), region, x, 2, None)
    scaled = ScaledProblem.of(problem, model, "all", 0.5)
    here = region.project(x + 0.1, x)
    slopes, size = scaled.slopes(here), 1e-6
    unit = region.radius * torch.tensor(region.scale or [1.0] * 6, dtype=torch.float64)[scaled.free]
    for column in range(len(scaled.free)):
        move = torch.zeros(3, len(scaled.free), dtype=torch.float64)
        move[:, column] = size
        there = here.clone()
        there[:, scaled.free] += move * unit
        rate = (scaled.gaps(there) - scaled.gaps(here)) / size
        first, second = scaled.places.T
        slope = slopes.scores[:, first, column] - slopes.scores[:, second, column]
        torch.testing.assert_close(slope, rate, atol=1e-4, rtol=1e-4)
        change = (scaled.away(there) - scaled.away(here))[:, :3] / size
        torch.testing.assert_close(slopes.prediction[:, :, column], change, atol=1e-4, rtol=1e-4)
    for row, room in enumerate(scaled.room(here)):
        for limit, side in ((room.low, -1), (room.high, 1)):  # a step to the end reaches an end
            ends = here[row, scaled.free] + torch.from_numpy(limit) * unit
            expected = torch.full_like(ends, side * torch.inf)
            if region.bounds is not None:
                expected = torch.full_like(ends, 0.0 if side < 0 else 1.0)
            if isinstance(region, Linf):
                ball = x[row, scaled.free] + side * unit
                expected = (torch.maximum if side < 0 else torch.minimum)(expected, ball)
            torch.testing.assert_close(ends, expected)
        assert (room.center is not None) == isinstance(region, L2)


def test_chunks_of_rows_make_one_trace():
    model, x = make(bent), torch.rand(5, 6, generator=torch.Generator().manual_seed(1))
    whole = TrustRegionAttack(L2(0.5), steps=10).trace(model, Gradient(), x, k=2)
    parts = TrustRegionAttack(L2(0.5), steps=10, chunk=2).trace(model, Gradient(), x, k=2)
    assert whole.outcome == parts.outcome
    assert torch.equal(whole.iterations, parts.iterations)
    torch.testing.assert_close(whole.h_low, parts.h_low, atol=1e-5, rtol=1e-5)
