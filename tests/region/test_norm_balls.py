"""Balls: the projection is the nearest point, samples are uniform, bounds and frozen are exact."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import kstest

from r2et.errors import InputError
from r2et.region import L2, Linf

N = 5
LOW = (-0.3, -1.0, 0.0, -0.2, -0.5)
HIGH = (0.2, 0.1, 0.4, 0.3, 0.6)
REGIONS = [
    L2(0.7),
    L2(0.7, bounds=(LOW, HIGH)),
    L2(0.7, bounds=(-0.3, 0.3), frozen=[1, 3]),
    L2(0.7, scale=(0.5, 1, 2, 1, 3), bounds=(LOW, HIGH)),
    L2(0.7, scale=(0.5, 1, 2, 1, 3), frozen=[0]),
    Linf(0.2),
    Linf(0.2, bounds=(LOW, HIGH), frozen=[4]),
    Linf(0.2, scale=(0.5, 1, 2, 1, 3), bounds=(LOW, HIGH)),
]


def rows(count, seed=0, dtype=torch.float64):
    """Rows inside LOW..HIGH and inside (-0.3, 0.3), some of them exactly on a bound."""
    low, high = torch.tensor(LOW, dtype=dtype), torch.tensor(HIGH, dtype=dtype)
    low, high = low.clamp(min=-0.3), high.clamp(max=0.3)
    share = torch.rand(count, N, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    share[: count // 3] = share[: count // 3].round()
    return torch.minimum(torch.maximum(low + share * (high - low), low), high)


def noise(count, seed=1, size=2.0, dtype=torch.float64):
    return size * torch.randn(count, N, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_projection_is_the_nearest_point_by_an_independent_solver(region):
    x = rows(6)
    wanted = x + noise(6)
    projected = region.project(wanted, x)
    scale = torch.tensor(region.scale or (1.0,) * N, dtype=torch.float64)
    low, high = region.bounds or (-math.inf, math.inf)
    low = torch.tensor(low, dtype=torch.float64).expand(N)
    high = torch.tensor(high, dtype=torch.float64).expand(N)
    for i in range(len(x)):
        box = [
            (float(x[i, j]),) * 2 if j in region.frozen else (float(low[j]), float(high[j]))
            for j in range(N)
        ]

        def length(z, i=i):
            return ((torch.as_tensor(z) - x[i]) / scale).square().sum().item()

        def cost(z, i=i):
            return ((torch.as_tensor(z) - wanted[i]) / scale).square().sum().item()

        if isinstance(region, Linf):
            reach = region.radius * scale
            box = [
                (max(a, float(x[i, j] - reach[j])), min(b, float(x[i, j] + reach[j])))
                for j, (a, b) in enumerate(box)
            ]
            ball = []
        else:
            ball = [{"type": "ineq", "fun": lambda z: region.radius**2 - length(z)}]
        best = minimize(cost, x[i].numpy(), bounds=box, constraints=ball, options={"ftol": 1e-14})
        # The solver may overstep the ball by its own tolerance.
        assert cost(projected[i]) <= best.fun * (1 + 1e-7)
        torch.testing.assert_close(projected[i], torch.as_tensor(best.x), atol=2e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_projection_lands_inside_and_is_idempotent(region, dtype):
    x = rows(300, dtype=dtype)
    for size in (1e-3, 0.3, 30.0, 1e6):
        once = region.project(x + noise(300, size=size, dtype=dtype), x)
        assert region.contains(once, x).all()
        torch.testing.assert_close(region.project(once, x), once)
    assert torch.equal(region.project(x, x), x)


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_samples_stay_inside_and_repeat_under_a_seed(region):
    x = rows(7)
    draw = [region.sample(x, 50, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert draw[0].shape == (50, 7, N)
    assert torch.equal(draw[0], draw[1])
    for points in draw[0]:
        assert region.contains(points, x).all()
    assert draw[0].std(0)[:, [j for j in range(N) if j not in region.frozen]].min() > 0


def test_l2_samples_are_uniform_in_the_ball():
    region, x = L2(0.7, scale=2.0), torch.zeros(1, N, dtype=torch.float64)
    points = region.sample(x, 20000, generator=torch.Generator().manual_seed(0))[:, 0]
    share = region.distance(points, x.expand_as(points)) / region.radius
    assert kstest(share.numpy() ** N, "uniform").pvalue > 0.01
    # A direction's first coordinate squared is Beta(1/2, (n-1)/2) distributed.
    first = (points / points.norm(dim=1, keepdim=True))[:, 0].square()
    assert kstest(first.numpy(), "beta", args=(0.5, (N - 1) / 2)).pvalue > 0.01


def test_linf_samples_are_uniform_in_the_box():
    x = torch.zeros(1, 3, dtype=torch.float64)
    points = Linf(0.2).sample(x, 20000, generator=torch.Generator().manual_seed(0))[:, 0]
    for j in range(3):
        assert kstest((points[:, j].numpy() + 0.2) / 0.4, "uniform").pvalue > 0.01


def test_samples_at_a_corner_are_uniform_in_what_the_bounds_leave():
    x = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    region = L2(0.5, bounds=(0, 1))
    points = region.sample(x, 20000, generator=torch.Generator().manual_seed(0))[:, 0]
    share = region.distance(points, x.expand_as(points)) / region.radius
    assert kstest(share.numpy() ** 2, "uniform").pvalue > 0.01
    assert (points[:, 0] > 0).double().mean() > 0.999  # folded back, not piled up on the bound


def test_antithetic_samples_cancel_odd_terms():
    x = rows(4)
    for region in (L2(0.5), Linf(0.5)):
        points = region.sample(x, 10, antithetic=True)
        torch.testing.assert_close(points.mean(0), x)


def test_gaussian_points_have_the_asked_spread_and_leave_frozen_features():
    x = rows(1)
    region = L2(1.0, scale=(0.5, 1, 2, 1, 3), frozen=[1])
    points = region.gaussian(x, 0.1, 20000, generator=torch.Generator().manual_seed(0))
    spread = points.std(0)[0]
    expected = torch.tensor([0.05, 0.0, 0.2, 0.1, 0.3], dtype=torch.float64)
    torch.testing.assert_close(spread, expected, rtol=0.03, atol=1e-12)


def test_far_points_and_tiny_radii_project_without_overflow():
    x = torch.zeros(2, 4)
    far = L2(1.0).project(torch.full((2, 4), 1e25), x)
    torch.testing.assert_close(far, torch.full((2, 4), 0.5))
    assert torch.equal(L2(1e-40).project(x + 1, x), x) or L2(1e-40).contains(x, x).all()
    assert L2(1e-40).project(x + 1, x).isfinite().all()


def test_contains_allows_rounding_and_no_more():
    x = torch.full((1, 4), 3.0)
    edge = x + torch.tensor([[0.5, 0, 0, 0]])
    for region in (L2(0.5), Linf(0.5)):
        assert region.contains(edge, x).all()
        assert not region.contains(x + (edge - x) * (1 + 1e-5), x).any()


def test_indices_come_in_any_form():
    expected = (1, 2)
    for frozen in (
        [2, 1, 1],
        (i for i in (1, 2)),
        map(int, ["1", "2"]),
        torch.tensor([1, 2]),
        np.array([1, 2]),
        list(np.array([1, 2])),
        range(1, 3),
    ):
        assert L2(1, frozen=frozen).frozen == expected


def test_draws_repeat_and_leave_the_global_generator_alone():
    x, state = rows(3), torch.get_rng_state()
    for draw in (lambda: L2(1).sample(x, 2), lambda: Linf(1).gaussian(x, 0.1, 2)):
        assert torch.equal(draw(), draw())
    assert torch.equal(torch.get_rng_state(), state)
    together = L2(1).sample(x, 4, shared=True) - x
    torch.testing.assert_close(together, together[:, :1].expand_as(together))


def test_distance_and_contains():
    x = torch.zeros(2, 2)
    there = torch.tensor([[0.3, 0.4], [0.6, 0.8]])
    torch.testing.assert_close(L2(1).distance(there, x), torch.tensor([0.5, 1.0]).double())
    torch.testing.assert_close(Linf(1).distance(there, x), torch.tensor([0.4, 0.8]).double())
    assert L2(0.7).contains(there, x).tolist() == [True, False]
    assert L2(2, frozen=[0]).contains(there, x).tolist() == [False, False]
    assert L2(2, bounds=(0, 0.5)).contains(there, x).tolist() == [True, False]


def test_images_use_flat_feature_numbers():
    x = torch.zeros(2, 1, 3, 3)
    moved = L2(1.0, frozen=[4]).project(torch.ones_like(x), x)
    assert moved.shape == x.shape
    assert (moved[:, 0, 1, 1] == 0).all()
    torch.testing.assert_close(moved.flatten(1).norm(dim=1), torch.ones(2))


def test_a_region_is_a_value():
    region = L2(1, bounds=(torch.zeros(2), [1, 1]), frozen=torch.tensor([1, 0, 1]))
    assert region == L2(1.0, bounds=((0.0, 0.0), (1.0, 1.0)), frozen=(0, 1))
    assert eval(repr(region)) == region
    assert hash(region)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L2(0), "L2: radius must be positive and finite, got 0."),
        (lambda: L2(-1.0), "L2: radius must be positive and finite, got -1.0."),
        (lambda: Linf(math.inf), "Linf: radius must be positive and finite, got inf."),
        (lambda: L2("1"), "L2: radius must be a number, got 1."),
        (lambda: L2(1, bounds=(1, 0)), "L2: bounds must be a pair with low <= high, got (1, 0)."),
        (lambda: L2(1, bounds=3), "L2: bounds must be a pair (low, high), got 3."),
        (lambda: L2(1, bounds=(0, "a")), "L2: bounds must be a number, got a."),
        (
            lambda: L2(1, frozen=[-1]),
            "L2: frozen must be feature indices, each 0 or more, got [-1].",
        ),
        (lambda: L2(1, frozen=3), "L2: frozen must be feature indices, each 0 or more, got 3."),
        (
            lambda: L2(1, scale=[1, 0]),
            "L2: scale must be positive and finite (use frozen to hold a feature), got (1.0, 0.0).",
        ),
        (
            lambda: L2(1, frozen=[7]).check(torch.zeros(1, 5)),
            "L2: frozen must be below 5, the number of features, got 7.",
        ),
        (
            lambda: L2(1, scale=[1, 2]).check(torch.zeros(1, 5)),
            "L2: scale must be one number or 5, one per feature, got (1.0, 2.0).",
        ),
        (
            lambda: L2(1, bounds=(0, 1)).project(torch.zeros(2, 1), torch.tensor([[0], [1.5]])),
            "L2: bounds must be around x, got x[1] with feature 0 = 1.5.",
        ),
        (
            lambda: L2(1).project(torch.zeros(2, 3), torch.zeros(2, 2)),
            "L2: x_adv must be of the shape of x, (2, 2), "
            "got float32 tensor of shape (2, 3) on cpu.",
        ),
        (
            lambda: L2(1).sample(torch.zeros(1, 2), 0),
            "L2: count must be a positive whole number, got 0.",
        ),
        (
            lambda: L2(1).sample(torch.zeros(1, 2).long()),
            "L2: x must be a floating-point tensor (use x.float()), "
            "got int64 tensor of shape (1, 2) on cpu.",
        ),
        (
            lambda: L2(1, frozen=[0, 1]).check(torch.zeros(1, 2)),
            "L2: frozen must be fewer than all 2 features, got all 2.",
        ),
    ],
)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == message
