"""Gaps of the reasons that people are given: values by hand, and that training by them helps."""

import pytest
import torch

from credit_table import credit
from linear_person import GROUPS, Linear, contributions, people
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput
from r2et.penalty import ReasonGaps
from r2et.penalty.reason_gaps import named, reason_gap
from r2et.region import L2, Feasible, Linf

BASELINE = torch.full((6,), 0.5, dtype=torch.float64)
METHOD = GradientTimesInput(baseline=0.5, groups=GROUPS, reduce="signed")


def gap_by_hand(row, reasons, k):
    """Of one row: the least distance to another set of reasons, column by column."""
    mine = [float(v) for v, own in zip(row, reasons, strict=True) if own]
    others = [float(v) for v, own in zip(row, reasons, strict=True) if not own]
    if len(mine) == k:
        return min(mine) - max([0.0, *others])
    return min([*mine, *(-v for v in others)])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_gap_is_that_of_a_loop_over_columns(k):
    scores = torch.randn(50, 5, generator=torch.Generator().manual_seed(k)).double()
    reasons = named(scores, k)
    assert torch.equal(reasons.sum(1), (scores > 0).sum(1).clamp(max=k))
    moved = scores + 0.3 * torch.randn(50, 5, generator=torch.Generator().manual_seed(9)).double()
    for at in (scores, moved):
        expected = [gap_by_hand(row, own, k) for row, own in zip(at, reasons, strict=True)]
        assert torch.allclose(reason_gap(at, reasons, k), torch.tensor(expected).double())
    assert bool((reason_gap(scores, reasons, k) >= 0).all())
    # A gap above 0 is the same set of reasons, and one below 0 another.
    same = (named(moved, k) == reasons).all(1)
    assert torch.equal(same, reason_gap(moved, reasons, k) > 0)
    assert 0 < int(same.sum()) < 50


def test_values_on_a_linear_model():
    """Contributions of a linear model are known at x and at any other point."""
    x, region = people(40), Linf(0.025)
    noise = torch.randn(40, 6, generator=torch.Generator().manual_seed(1)).double()
    penalty = ReasonGaps(k=2, explainer=METHOD, toward=1, region=region, reach=2.0, hinge=0.3)
    rows = penalty(Linear(), x, noise=noise)
    parts = [contributions(at, BASELINE) for at in (x, x + 0.05 * noise.sign())]
    parts = [part / part.abs().mean(1, keepdim=True) for part in parts]
    reasons = named(parts[0], 2)
    expected = sum((0.3 - reason_gap(part, reasons, 2)).clamp(min=0) for part in parts)
    assert torch.allclose(rows, expected)
    assert 0 < int((rows > 0).sum()) < 40


def test_it_is_differentiable_in_the_weights():
    model, x = Linear(), people(6)
    noise = torch.randn(6, 6, generator=torch.Generator().manual_seed(2)).double()
    penalty = ReasonGaps(k=2, explainer=METHOD, toward=1, hinge=2.0)

    def value(weight):
        with torch.no_grad():
            model.weight.copy_(weight)
        return float(penalty(model, x, noise=noise).detach().sum())

    at = model.weight.detach().clone()
    penalty(model, x, noise=noise).sum().backward()
    slope = model.weight.grad.clone()
    for i in range(6):
        step = torch.zeros(6, dtype=torch.float64)
        step[i] = 1e-6
        assert float(slope[i]) == pytest.approx((value(at + step) - value(at - step)) / 2e-6, 1e-4)


def test_extreme_points_of_regions_lie_at_their_borders():
    data = credit(40)
    x = data.test.x.double()
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).double()
    for ball in (L2(0.1), Linf(0.1), L2(0.1, frozen=[0, 1]), Linf(0.2, scale=[0.5] * x.shape[1])):
        far = ball.extreme(x, noise)
        assert bool(ball.contains(far, x).all())
        assert torch.allclose(ball.distance(far, x), torch.tensor(ball.radius).double())
    region = Feasible(data.schema, moves={"age": 2, "amount": 100}, switches=2)
    far = region.extreme(x, noise)
    assert bool(region.contains(far, x).all())
    reach, places = region.box(x), (region.box(x) > 0)
    inside = (x > 0.05) & (x < 0.95) & places
    assert torch.allclose((far - x).abs()[inside], reach[inside])
    switched = ((far - x).abs() == 1).sum(1)
    assert int((switched > 0).sum()) >= len(x) // 2
    assert dict(region.scaled(3).reaches) == {"age": 6, "amount": 300}
    assert region.scaled(3).switches == 2
    assert Feasible(data.schema, moves=2).scaled(1.5).moves == 3
    assert L2(0.1, frozen=[2]).scaled(2) == L2(0.2, frozen=[2])
    one = region.extreme(x[3:4], noise[3:4])
    assert torch.equal(one[0], far[3])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"explainer": Gradient()}, "explainer must be one with reduce='signed'"),
        ({"region": 0.1}, "region must be Feasible, L2 or Linf, got 0.1"),
        ({"hinge": 0}, "hinge must be positive, got 0"),
        ({"toward": "bad"}, "toward must be None or the number of a class, got bad"),
    ],
)
def test_bad_settings(settings, sentence):
    with pytest.raises(InputError, match=f"ReasonGaps: {sentence}"):
        ReasonGaps(**settings)
