"""The bounds hold where they claim to, and the first-order estimate is no bound."""

import pytest
import torch

from nets import quadratic, randn
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput
from r2et.rank import (
    first_order_thickness,
    gap,
    pairwise_thickness,
    ranking,
    thickness_bounds,
)
from r2et.rank.bounds import score_jacobian
from r2et.region import L2

F64 = torch.float64
SIGNED = Gradient(reduce="signed")


def distances(rows):
    """||H_i - H_j|| pair by pair."""
    return torch.stack([(rows[:, i : i + 1] - rows).norm(dim=2) for i in range(rows.shape[1])], 1)


def test_the_jacobian_of_an_explanation():
    model, x = quadratic(), randn(3, 6, dtype=F64)
    sign = torch.where(model(x) > 0, 1.0, -1.0).detach()[:, :, None]
    torch.testing.assert_close(score_jacobian(SIGNED.at(model, x), x), (sign * model.a).detach())
    # Of Grad x Input: diag(grad) + diag(x) H. The paper's A.1.2 leaves out diag(x).
    times = GradientTimesInput(reduce="signed")
    slope = (sign[:, :, 0] * (x @ model.a + model.b)).detach()
    expected = torch.diag_embed(slope) + x[:, :, None] * (sign * model.a).detach()
    torch.testing.assert_close(score_jacobian(times.at(model, x), x), expected)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_quadratic_attains_its_bounds(k):
    """H is A everywhere: the bound is exact, and the worst x' of each pair is known."""
    model, x, radius = quadratic(), randn(4, 6, dtype=F64), 0.7
    scores = SIGNED(model, x)
    apart = distances(model.a.detach().expand(4, 6, 6))
    bounds = thickness_bounds(scores, k, radius, apart)
    sign = torch.where(model(x) > 0, 1.0, -1.0).detach()
    order = ranking(scores)
    for i in range(k):
        for j in range(k, 6):
            slope = sign * (model.a[order[:, i]] - model.a[order[:, j]]).detach()
            worst = x - radius * slope / slope.norm(dim=1, keepdim=True)
            settings = {"explainer": SIGNED, "distribution": "adversarial"}
            low = pairwise_thickness(model, x, k, x_adv=worst, **settings)[:, i, j - k]
            torch.testing.assert_close(low, bounds.lower[:, i, j - k])
            high = pairwise_thickness(model, x, k, x_adv=2 * x - worst, **settings)[:, i, j - k]
            torch.testing.assert_close(high, bounds.upper[:, i, j - k])
    estimate = first_order_thickness(model, x, k, radius, explainer=SIGNED)
    torch.testing.assert_close(estimate.lower, bounds.lower)
    torch.testing.assert_close(estimate.upper, bounds.upper)


def test_bounds_hold_for_a_network_with_true_suprema_and_are_tighter_by_pair():
    """z = sum of v tanh(Wx): |tanh''| <= 0.7699, so ||H_i|| has a bound over all of space."""
    n, width, radius, k = 6, 4, 1.0, 2
    weight, head = randn(width, n, seed=2, dtype=F64), randn(width, seed=3, dtype=F64)

    class Shallow(torch.nn.Module):
        def forward(self, x):
            return (torch.tanh(x @ weight.T) @ head)[:, None]

    model, x = Shallow(), 0.3 * randn(5, n, dtype=F64)
    most = 4 / (3 * 3**0.5) * head.abs()  # the largest value of |v tanh''|
    each = (most * weight.abs().T) @ weight.norm(dim=1)  # of ||H_i||, over everything
    differences = (weight.T[:, None] - weight.T[None]).abs()
    pair = (differences * most) @ weight.norm(dim=1)
    scores = SIGNED(model, x)
    wide = thickness_bounds(scores, k, radius, each.expand(5, n))
    tight = thickness_bounds(scores, k, radius, pair.expand(5, n, n))
    assert (tight.lower >= wide.lower - 1e-12).all()
    for seed in range(20):
        end = L2(radius).sample(x, generator=torch.Generator().manual_seed(seed))[0]
        end = x + (end - x) / (end - x).norm(dim=1, keepdim=True) * radius
        estimate = pairwise_thickness(
            model, x, k, explainer=SIGNED, distribution="adversarial", x_adv=end, points=50
        )
        for bounds in (wide, tight):
            assert (estimate >= bounds.lower).all()
            assert (estimate <= bounds.upper).all()


def test_the_first_order_estimate_is_no_bound():
    """A score of -x0^2 / 2 has slope 0 at 0, so the estimate says that nothing moves."""

    def scores(x):
        return torch.stack([-(x[:, 0] ** 2) / 2, 0 * x[:, 0] - 0.1], 1)

    x = torch.zeros(1, 2, dtype=F64)
    estimate = first_order_thickness(scores, x, 1, 1.0)
    true = pairwise_thickness(
        scores, x, 1, distribution="adversarial", x_adv=x + torch.tensor([1.0, 0.0]), points=100
    )
    assert true < estimate.lower
    bounds = thickness_bounds(scores(x), 1, 1.0, torch.tensor([[1.0, 0.0]], dtype=F64))
    assert bounds.lower <= true <= bounds.upper


def test_a_linear_model_is_flat_whether_its_weights_are_frozen_or_not():
    x = randn(3, 6)
    for frozen in (False, True):
        model = torch.nn.Linear(6, 2).requires_grad_(not frozen)
        bounds = first_order_thickness(model, x, 2, 0.1)
        torch.testing.assert_close(bounds.lower, bounds.upper)


def test_radius_zero_is_the_gap_itself():
    scores = randn(3, 5, dtype=F64)
    bounds = thickness_bounds(scores, 2, 0.0, torch.ones(3, 5, dtype=F64))
    torch.testing.assert_close(bounds.lower, gap(scores, ranking(scores), 2))
    torch.testing.assert_close(bounds.upper, bounds.lower)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: thickness_bounds(randn(2, 4), 2, 1.0, randn(2, 3).abs()),
            "thickness_bounds: suprema must be finite norms of shape (2, 4) or (2, 4, 4)",
        ),
        (
            lambda: thickness_bounds(randn(2, 4), 2, 1.0, -randn(2, 4).abs()),
            "thickness_bounds: suprema must be finite norms of shape",
        ),
        (
            lambda: thickness_bounds(randn(2, 4), 2, -1.0, randn(2, 4).abs()),
            "thickness_bounds: radius must be 0 or more and finite, got -1.0.",
        ),
        (
            lambda: first_order_thickness(lambda at: at.detach(), randn(2, 4), 2, 1.0),
            "score_jacobian: model must be differentiable in x twice, got float32 tensor",
        ),
        (
            lambda: thickness_bounds(randn(2, 4), 4, 1.0, randn(2, 4).abs()),
            "thickness_bounds: k must be in 1..3 for 4 features, got 4.",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
