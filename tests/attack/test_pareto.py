"""Steepest descent for several objectives: the direction, the line search, where it ends."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, nnls
from torch import nn

from nets import Scored, make, mlp, randn
from r2et.attack import ParetoAttack
from r2et.attack.constraints import shortest_weights
from r2et.attack.judge import Judge
from r2et.attack.multiobjective_descent import CommonDescent, Near, common_descent
from r2et.attack.pareto import HALVINGS
from r2et.attack.problem import AttackProblem
from r2et.attack.scaled_problem import ScaledProblem
from r2et.attack.socp import Room
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.rank import gap, ranking
from r2et.region import L2

ANYWHERE = Room(np.full(5, -np.inf), np.full(5, np.inf))


def instance(seed, features, k, size=5, shift=1.0):
    """Scores' slopes (n, N) that leave a common descent, and all pairs."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(features, size))
    slopes[:k] += shift
    first, second = (a.ravel() for a in np.mgrid[0:k, k:features])
    return slopes, first, second


def hull(slopes, first, second):
    return slopes[first] - slopes[second]


@pytest.mark.parametrize("seed", range(5))
def test_few_objectives_point_along_the_exact_shortest_vector(seed):
    slopes, first, second = instance(seed, 4, 2)
    descent = common_descent(slopes, first, second, ANYWHERE, 1.0)
    vectors = torch.from_numpy(hull(slopes, first, second))[None]
    exact = (shortest_weights(vectors)[0] @ vectors[0]).numpy()
    np.testing.assert_allclose(descent.step, -exact, atol=1e-6)
    assert descent.theta == pytest.approx(-exact @ exact / 2, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_many_objectives_point_along_the_shortest_vector_of_another_solver(seed):
    """min ||G' w|| on the simplex, as non-negative least squares with sum(w) = 1 weighted high."""
    slopes, first, second = instance(seed, 28, 8, shift=2.5)
    descent = common_descent(slopes, first, second, ANYWHERE, 1.0)
    vectors, heavy = hull(slopes, first, second), 1e4
    weights, _ = nnls(
        np.vstack([vectors.T, heavy * np.ones(len(first))]), np.r_[np.zeros(5), heavy]
    )
    np.testing.assert_allclose(descent.step, -vectors.T @ (weights / weights.sum()), atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_every_objective_falls_unless_the_point_is_critical(seed):
    slopes, first, second = instance(seed, 6, 2, shift=1.0 - 0.3 * seed)
    descent = common_descent(slopes, first, second, ANYWHERE, 1.0)
    vectors = hull(slopes, first, second)
    weights = shortest_weights(torch.from_numpy(vectors)[None])[0].numpy()
    shortest = np.linalg.norm(weights @ vectors)
    if shortest > 1e-4:
        np.testing.assert_array_less(vectors @ descent.step, -0.99 * shortest**2)
    else:
        assert descent.theta > -1e-7
        assert np.linalg.norm(descent.step) < 1e-3


def test_opposite_gradients_have_no_common_descent():
    slopes = np.array([[0.0] * 5, [1.0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0]])
    descent = common_descent(slopes, np.array([0, 0]), np.array([1, 2]), ANYWHERE, 1.0)
    assert abs(descent.theta) < 1e-8
    assert np.abs(descent.step).max() < 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_direction_inside_a_region_and_near_a_prediction_equals_another_solver(seed):
    rng = np.random.default_rng(seed)
    slopes, first, second = instance(seed, 5, 2)
    center = rng.normal(size=5)
    center *= 0.8 / np.linalg.norm(center)
    room = Room(np.full(5, -0.2), np.full(5, 0.5), center)
    near = Near(rng.normal(size=3) * 0.6, rng.normal(size=(3, 5)), 2.0)
    descent = common_descent(slopes, first, second, room, 1.0, near)
    vectors = hull(slopes, first, second)

    def limits(v):
        u = v[2:]
        away = near.f + near.jacobian @ u
        ball = 1 - (center + u) @ (center + u)
        return np.concatenate([v[0] - vectors @ u, [ball, (1 + v[1]) ** 2 - away @ away]])

    # From several starts: its line search may end at rounding's edge and call that a failure.
    ends = [
        minimize(
            lambda v: v[0] + 2 * v[1] + v[2:] @ v[2:] / 2,
            np.r_[start, start, np.zeros(5)],
            method="SLSQP",
            bounds=[(None, None), (0, None), *[(-0.2, 0.5)] * 5],
            constraints=[{"type": "ineq", "fun": limits}],
            options={"maxiter": 500, "ftol": 1e-13},
        )
        for start in (5.0, 4.0, 3.0, 6.0)
    ]
    best = next((end for end in ends if end.success), ends[0])
    over = max(0.0, np.linalg.norm(near.f) - 1)
    assert best.success
    assert descent.theta == pytest.approx(best.fun - 2 * over, abs=1e-5)
    np.testing.assert_allclose(descent.step, best.x[2:], atol=1e-3)


def constant():
    """A model that always says the same, so that nothing but the gaps matters."""
    net = nn.Linear(3, 2)
    net.bias.data += torch.tensor([100.0, 0.0])
    return net


def posed(explainer, model, x, k=1, radius=10.0):
    return AttackProblem.from_model("test", model, explainer, L2(radius), x, k, None)


A, B = (torch.tensor(p, dtype=torch.float64) for p in ([1.0, 0.0, 0.5], [-1.0, 1.0, 0.0]))


def two_bowls(x):
    """Gaps (x - a)^2 and 2 (x - b)^2: no step lowers both exactly on the segment from a to b."""
    first = torch.full_like(x[:, 0], 20.0)
    return torch.stack(
        [first, first - (x - A).square().sum(1), first - 2 * (x - B).square().sum(1)], 1
    )


def test_two_quadratics_end_on_their_pareto_set():
    model = make(constant, dtype=torch.float64)
    x = 2 * randn(12, 3, dtype=torch.float64)
    attack = ParetoAttack(
        L2(50.0), pairs="all", constraint="none", rho=None, keep="last", tolerance=1e-6
    )
    x_adv = attack(model, Scored(function=two_bowls), x, k=1).x_adv
    along = ((x_adv - A) @ (B - A) / (B - A).square().sum()).clamp(0, 1)
    torch.testing.assert_close(x_adv, A + along[:, None] * (B - A), atol=1e-4, rtol=0)
    assert along.max() - along.min() > 0.2  # not all the same point


def test_the_line_search_takes_the_first_step_that_armijo_allows():
    model = make(constant, dtype=torch.float64)
    x = 2 * randn(8, 3, dtype=torch.float64)
    problem = posed(Scored(function=two_bowls), model, x)
    attack = ParetoAttack(L2(10.0), pairs="all", constraint="none", rho=None, armijo=0.4)
    scaled = ScaledProblem.of(problem, model, "all", 1.0)
    descents = attack._directions(scaled, x, torch.arange(8), torch.full((8,), 3.0).double())
    there, share, _ = attack._search(scaled, x, descents)
    size = problem.scores.abs().mean(1)
    order = ranking(problem.scores)

    def allowed(row, t):
        points = x[row] + t * 10 * torch.from_numpy(descents[row].step)
        h = gap(two_bowls(torch.stack([x[row], points])), order[[row, row]], 1).flatten(1)
        fall = torch.from_numpy(descents[row].rates) * size[row]
        return bool((h[1] <= h[0] + 0.4 * t * fall + 1e-12).all())

    for row in range(8):
        t = float(share[row])
        assert allowed(row, t)
        assert t == 1 or not allowed(row, 2 * t)
        torch.testing.assert_close(
            there[row], x[row] + t * 10 * torch.from_numpy(descents[row].step)
        )
    assert len(set(share.tolist())) > 1


def test_a_promise_nothing_can_keep_ends_the_search():
    model = make(constant, dtype=torch.float64)
    x = randn(1, 3, dtype=torch.float64)
    scaled = ScaledProblem.of(posed(Scored(function=two_bowls), model, x), model, "all", 1.0)
    false = CommonDescent(np.array([1.0, 0, 0]), np.full(2, -1e6), -1.0)
    there, share, _ = ParetoAttack(rho=None)._search(scaled, x, [false])
    assert share.tolist() == [0.0]
    assert torch.equal(there, x)
    assert HALVINGS > 3


def test_a_step_that_changes_the_class_is_halved_until_it_does_not():
    model = make(lambda: nn.Linear(3, 1), dtype=torch.float64)
    model.weight.data = torch.tensor([[1.0, 0.0, 0.0]]).double()
    model.bias.data = torch.tensor([0.5]).double()  # class 1 as long as x_0 > -0.5

    def scores(x):
        return torch.stack([5 + x[:, 0], x.new_zeros(len(x))], 1)

    x = torch.zeros(1, 3, dtype=torch.float64)
    scaled = ScaledProblem.of(
        posed(Scored(function=scores), model, x, radius=1.0), model, "all", 1.0
    )
    descent = CommonDescent(np.array([-0.9, 0, 0]), np.array([-0.9 / 2.5]), -1.0)
    there, share, _ = ParetoAttack(rho=None)._search(scaled, x, [descent])
    assert share.tolist() == [0.5]
    assert float(there[0, 0]) == pytest.approx(-0.45)
    freely = ParetoAttack(rho=None, constraint="none")._search(scaled, x, [descent])
    assert freely[1].tolist() == [1.0]


def steps_of(attack, model, x, k=2):
    """The points an attack passes, row by row."""
    problem = AttackProblem.from_model("test", model, Gradient(), attack.region, x, k, None)
    judge = Judge(problem, "last", 1.0)
    paths = [[x[i]] for i in range(len(x))]
    for proposal in attack.propose(problem, judge, torch.Generator()):
        judge(proposal)
        for row, point in zip(proposal.rows.tolist(), proposal.points, strict=True):
            paths[row].append(point)
    return [torch.stack(path) for path in paths]


def bent():
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    net[0].weight.data *= 4
    return net


@pytest.mark.parametrize("pairs", ["all", "closest"])
def test_every_gap_falls_at_every_step(pairs):
    model, x = make(bent, dtype=torch.float64), randn(5, 6, dtype=torch.float64)
    attack = ParetoAttack(L2(1.0), pairs=pairs, constraint="none", rho=None, steps=15)
    moves = 0
    for row, path in enumerate(steps_of(attack, model, x)):
        clean = x[row].expand_as(path)
        scores = Gradient().at(model, clean)(path)
        order = ranking(scores[:1]).expand_as(scores)
        h = gap(scores, order, 2)
        h = h.flatten(1) if pairs == "all" else torch.stack([h[:, 1, 0], h[:, 0, 1]], 1)
        assert (h.diff(dim=0) < 0).all()
        moves += len(path) - 1
    assert moves > 10


def test_the_equality_form_never_leaves_the_class_and_without_it_some_do():
    model, x = make(bent, dtype=torch.float64), randn(24, 6, dtype=torch.float64)

    def left(constraint):
        attack = ParetoAttack(L2(1.0), constraint=constraint, rho=None, steps=15)
        paths = steps_of(attack, model, x)
        return sum(int((model(p).argmax(1) != model(p[:1]).argmax(1)).any()) for p in paths)

    assert left("argmax") == 0
    assert left("distance") == 0  # by default within what surely keeps the class
    assert left("none") > 0


def test_the_inequality_form_keeps_its_limit_and_without_it_some_exceed_it():
    model, x, limit = make(bent, dtype=torch.float64), randn(8, 6, dtype=torch.float64), 0.05

    def furthest(constraint):
        attack = ParetoAttack(L2(1.0), constraint=constraint, limit=limit, rho=None, steps=15)
        paths = steps_of(attack, model, x)
        away = [(model(p).softmax(1) - model(p[:1]).softmax(1)).norm(dim=1).max() for p in paths]
        assert max(len(p) for p in paths) > 2
        return max(away)

    assert furthest("distance") <= limit * (1 + 1e-9)
    assert furthest("argmax") > 2 * limit


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"steps": -1}, "ParetoAttack: steps must be a positive whole number, got -1."),
        ({"pairs": "anchor"}, "ParetoAttack: pairs must be all or closest, got anchor."),
        ({"armijo": 1.5}, "ParetoAttack: armijo must be between 0 and 1, got 1.5."),
        (
            {"constraint": "kl"},
            "ParetoAttack: constraint must be one of none, argmax, distance, got kl.",
        ),
        ({"limit": 0.0}, "ParetoAttack: limit must be None or positive, got 0.0."),
        ({"penalty": 0.0}, "ParetoAttack: penalty must be positive, got 0.0."),
        ({"tolerance": math.inf}, "ParetoAttack: tolerance must be positive, got inf."),
    ],
)
def test_bad_settings_get_one_sentence(settings, sentence):
    with pytest.raises(InputError) as error:
        ParetoAttack(**settings)(make(lambda: mlp(6)), Gradient(), randn(2, 6), k=2)
    assert str(error.value) == sentence
