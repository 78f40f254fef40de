"""Attacks find what is there: dense grids, closed forms, and each other as oracles."""

import pytest
import torch
from torch import nn

from nets import make, mlp, quadratic, randn
from r2et.attack import ERAttack, MinimumNorm, MSEAttack, RandomSearch, StrongAttack, SwapAttack
from r2et.attack.constraints import Multipliers, divergence, shortest_weights
from r2et.attack.problem import AttackProblem
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.region import L2

F64 = torch.float64


def grid_worst(model, x, radius, k, steps):
    """Smallest P@k over a dense grid of each row's ball, prediction kept; and the nearest flip."""
    axes = torch.linspace(-radius, radius, steps)
    moves = torch.cartesian_prod(*[axes] * x.shape[1])
    moves = moves[moves.norm(dim=1) <= radius]
    worst, nearest = torch.ones(len(x)), torch.full((len(x),), torch.inf)
    for i in range(len(x)):
        problem = AttackProblem.from_model(
            "grid", model, Gradient(), L2(radius), x[i : i + 1], k, None
        )
        points = x[i] + moves
        precision = problem.precision(problem.explain(points))
        precision = torch.where(problem.kept(points), precision, 1.0)
        worst[i] = precision.min()
        if bool((precision < 1).any()):
            nearest[i] = moves[precision < 1].norm(dim=1).min()
    return worst, nearest


@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
@pytest.mark.parametrize(
    ("n", "k", "radius", "steps"),
    [
        (2, 1, 0.5, 161),
        pytest.param(2, 1, 1.5, 161, marks=pytest.mark.slow),
        pytest.param(3, 1, 1.5, 45, marks=pytest.mark.slow),
        pytest.param(3, 2, 1, 45, marks=pytest.mark.slow),
    ],
)
def test_the_strong_attack_finds_what_a_dense_grid_finds(n, k, radius, steps, activation):
    model = make(lambda: MLP(n, (8,), activation=activation), seed=n + k)
    x = 2 * randn(100, n, seed=3)
    worst, nearest = grid_worst(model, x, radius, k, steps)
    assert 0.05 < (worst < 1).float().mean() < 1  # a case where something is to be found
    result = StrongAttack(L2(radius))(model, Gradient(), x, k=k)
    assert (result.precision <= worst).float().mean() >= 0.99
    near = MinimumNorm(L2(radius))(model, Gradient(), x, k=k)
    flips = nearest.isfinite()
    assert (near.radius[flips] <= 1.02 * nearest[flips]).float().mean() >= 0.99


@pytest.mark.parametrize("radius", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
def test_on_a_table_it_beats_the_others(radius):
    from r2et.data import load
    from r2et.demo import train

    data = load("adult")
    model, x = train(data, 0, epochs=1), data.test.x[:60]
    region = L2(radius)
    strong = StrongAttack(region)(model, Gradient(), x, k=8).precision.mean()
    short = {"steps": 200, "step_size": radius / 200}
    for other in (
        RandomSearch(region, points=2000),
        ERAttack(region, **short),
        ERAttack(region, **short, rho=10.0),
        MSEAttack(region, **short, rho=10.0),
        SwapAttack(region, **short, rho=10.0),
    ):
        assert strong <= other(model, Gradient(), x, k=8).precision.mean() + 0.005
    # Inside a linear region the papers' attack sees a gradient of exactly zero.
    assert ERAttack(region, **short)(model, Gradient(), x, k=8).precision.mean() == 1


def test_er_attack_descends_the_sum_of_gaps_as_the_papers_do():
    """On a quadratic the sum's gradient is constant: the way is straight, of known length."""
    model, x, k = quadratic(), randn(5, 6, dtype=F64), 2
    explainer = Gradient(reduce="signed")
    result = ERAttack(L2(1.0), steps=100, step_size=5e-3, keep="last")(model, explainer, x, k=k)
    problem = AttackProblem.from_model("er", model, explainer, L2(1.0), x, k, None)
    sign = torch.where(problem.label == 1, 1.0, -1.0).double()[:, None]
    weights = torch.where(problem.top, 4.0, -2.0).double()
    slope = sign * (weights @ model.a.detach())
    expected = x - 0.5 * slope / slope.norm(dim=1, keepdim=True)
    kept = result.kept
    assert kept.any()
    torch.testing.assert_close(result.x_adv[kept], expected[kept])


def test_first_flip_is_the_step_at_which_the_closest_pair_crosses():
    model, x, k = quadratic(), randn(40, 6, dtype=F64), 2
    explainer = Gradient(reduce="signed")
    steps = 300
    result = ERAttack(L2(3.0), steps=steps, step_size=0.01)(model, explainer, x, k=k)
    problem = AttackProblem.from_model("er", model, explainer, L2(3.0), x, k, None)
    sign = torch.where(problem.label == 1, 1.0, -1.0).double()[:, None]
    weights = torch.where(problem.top, 4.0, -2.0).double()
    slope = sign * (weights @ model.a.detach())
    unit = slope / slope.norm(dim=1, keepdim=True)
    by_hand = torch.full((40,), -1)
    for step in range(steps, 0, -1):
        at = x - 0.01 * step * unit
        flipped = problem.precision(problem.explain(at)) < 1
        by_hand[flipped & problem.kept(at)] = step
    assert (by_hand > 0).any()
    assert torch.equal(result.first_flip, by_hand)


def test_the_minimum_norm_of_a_quadratic_is_the_distance_to_the_nearest_tie():
    """Gaps of a quadratic are linear: each pair ties on a plane, at h / ||A_i - A_j||."""
    model, x, k = quadratic(), randn(60, 6, dtype=F64), 2
    explainer = Gradient(reduce="signed")
    result = MinimumNorm(L2(5.0))(model, explainer, x, k=k)
    problem = AttackProblem.from_model("mn", model, explainer, L2(5.0), x, k, None)
    distances = torch.full((60,), torch.inf, dtype=F64)
    keeps = torch.zeros(60, dtype=torch.bool)
    sign = torch.where(problem.label == 1, 1.0, -1.0).double()
    for row in range(60):
        for i in problem.top[row].nonzero().flatten():
            for j in (~problem.top[row]).nonzero().flatten():
                apart = (model.a[i] - model.a[j]).detach()
                h = problem.scores[row, i] - problem.scores[row, j]
                if h / apart.norm() < distances[row]:
                    distances[row] = h / apart.norm()
                    there = x[row] - 1.0001 * sign[row] * h / apart.norm() ** 2 * apart
                    keeps[row] = problem.rows(torch.tensor([row])).kept(there[None])[0]
    assert keeps.sum() > 30
    assert (result.radius >= distances * (1 - 1e-9)).all()
    ratio = result.radius[keeps] / distances[keeps]
    assert (ratio < 1.01).float().mean() >= 0.99


def test_nothing_moves_a_linear_model():
    model, x = nn.Linear(6, 2).requires_grad_(False), randn(9, 6)
    for attack in (
        ERAttack(steps=20, step_size=0.1),
        RandomSearch(points=50),
        StrongAttack(budget="fast"),
        MinimumNorm(budget="fast"),
    ):
        result = attack(model, Gradient(), x, k=2)
        assert (result.precision == 1).all()
        assert (result.first_flip == -1).all()
        assert result.radius.isinf().all()


def test_a_row_whose_prediction_cannot_be_kept_comes_back_clean():
    model, x = make(mlp), 0.1 * randn(30, 6)
    result = ERAttack(L2(50.0), steps=50, step_size=1.0, keep="last", rho=1.0)(
        model, Gradient(), x, k=2
    )
    assert not result.kept.all()
    assert torch.equal(result.x_adv[~result.kept], x[~result.kept])
    assert (result.precision[~result.kept] == 1).all()


@pytest.mark.parametrize("count", [2, 3, 4])
def test_shortest_weights_are_the_quadratic_programs(count):
    from scipy.optimize import minimize

    vectors = randn(30, count, 5, dtype=F64) + randn(30, 1, 5, seed=1, dtype=F64)
    vectors[0, 1] = vectors[0, 0]  # a degenerate one
    weights = shortest_weights(vectors)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(1), torch.ones(30, dtype=F64))
    for row in range(30):
        v = vectors[row].numpy()
        best = minimize(
            lambda g, v=v: ((g @ v) ** 2).sum(),
            [1 / count] * count,
            bounds=[(0, 1)] * count,
            constraints={"type": "eq", "fun": lambda g: g.sum() - 1},
            options={"ftol": 1e-14},
        )
        mine = float((weights[row] @ vectors[row]).square().sum())
        assert mine <= best.fun + 1e-8


def test_multipliers_follow_their_equations():
    model, x = make(lambda: mlp(classes=2), dtype=F64), randn(3, 6, dtype=F64)
    problem = AttackProblem.from_model("t", model, Gradient(), L2(1.0), x, 2, None)
    moved, toward = x + 0.3, torch.ones_like(x)
    clean, now = model(x).log_softmax(1), model(moved).log_softmax(1)
    change = (clean.exp() * (clean - now)).sum(1).detach()  # KL by its definition
    torch.testing.assert_close(divergence(clean, now).detach(), change)
    half = torch.full((3,), 0.5, dtype=F64)
    expected = {
        "uniform": (half, half),
        "gda": (half, 0.5 + 0.7 * change),
        "hedge": (half, 0.5 * (0.7 * change).exp()),
    }
    for kind, (first, second) in expected.items():
        weights = Multipliers(kind, 0.7, problem)
        weights.combine(toward, moved)
        total = first + second
        torch.testing.assert_close(weights.gamma, torch.stack([first / total, second / total], 1))
