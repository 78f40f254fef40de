"""Algorithm 2 against independent solvers, its lemmas, and models whose answer is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

from nets import Scored, make, mlp, quadratic, randn
from r2et.attack import Outcome, TrustRegionAttack, socp
from r2et.attack.socp import Room
from r2et.attack.tr_subproblem import Merits
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.rank import gap, ranking
from r2et.region import L2, Linf


def merits(seed, size=4, features=5, k=2, box=math.inf, ball=False):
    """Random linear models of a row, with some of the region in the way."""
    rng = np.random.default_rng(seed)
    first, second = (a.ravel() for a in np.mgrid[0:k, k:features])
    center = rng.normal(size=size) if ball else None
    return Merits(
        f=rng.normal(size=size + 2) * 0.3,
        jacobian=rng.normal(size=(size + 2, size)),
        excess=rng.uniform(0.2, 1, size=len(first)),
        slopes=3 * rng.normal(size=(features, size)),
        first=first,
        second=second,
        room=Room(
            np.full(size, -box * 0.5),
            np.full(size, box),
            None if center is None else 0.9 * center / np.linalg.norm(center),
        ),
    )


def slsqp(problem, chosen, radius):
    """The smallest alpha, by another method, from several starts."""

    def limits(v):
        u = v[1:]
        away = np.linalg.norm(problem.f + problem.jacobian @ u)
        rate = (problem.slopes[problem.first] - problem.slopes[problem.second])[chosen] @ u
        over = problem.excess[chosen] + rate
        out = [v[0] - away - over, v[0] - away + over, [radius**2 - u @ u]]
        if problem.room.center is not None:
            out.append([1 - (problem.room.center + u) @ (problem.room.center + u)])
        return np.concatenate(out)

    bounds = [(None, None), *zip(problem.room.low, problem.room.high, strict=True)]
    best = math.inf
    for seed in range(4):
        start = 0.2 * radius * np.random.default_rng(seed).normal(size=problem.slopes.shape[1])
        minimum = minimize(
            lambda v: v[0],
            np.concatenate([[5.0], start]),
            method="SLSQP",
            bounds=bounds,
            constraints=[{"type": "ineq", "fun": limits}],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if minimum.success and limits(minimum.x).min() > -1e-7:
            best = min(best, minimum.x[0])
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("radius", "box", "ball"), [(0.3, math.inf, False), (1.0, 0.1, True)])
def test_tr_moo_equals_another_solver(seed, radius, box, ball):
    problem = merits(seed, box=box, ball=ball)
    chosen = np.arange(len(problem.first))
    step = problem.solve(chosen, radius)
    assert np.linalg.norm(step) <= radius + 1e-7
    assert (step <= problem.room.high + 1e-7).all()
    assert (step >= problem.room.low - 1e-7).all()
    if ball:
        assert np.linalg.norm(problem.room.center + step) <= 1 + 1e-7
    assert problem(step).max() == pytest.approx(slsqp(problem, chosen, radius), abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_tr_moo_equals_a_grid_in_the_plane(seed):
    problem, radius, cells = merits(seed, size=2), 0.7, 801
    axis = np.linspace(-radius, radius, cells)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    points = points[np.linalg.norm(points, axis=1) <= radius]
    on_grid = problem(points).max(1).min()
    solved = problem(problem.solve(np.arange(len(problem.first)), radius)).max()
    assert solved <= on_grid + 1e-7
    assert on_grid - solved < 0.03  # a cell is 0.00175 wide, and no merit is steeper than 15


@pytest.mark.parametrize("seed", range(3))
def test_few_pairs_at_a_time_solve_the_whole_problem(seed, monkeypatch):
    problem = merits(seed, size=8, features=40, k=10)
    chosen = np.arange(len(problem.first))
    every = problem(problem.solve(chosen, 0.5)).max()
    monkeypatch.setattr(socp, "BATCH", 8)
    assert problem(problem.solve(chosen, 0.5)).max() == pytest.approx(every, abs=1e-6)


@pytest.mark.parametrize(("slope", "weight"), [(3.0, 0.5), (0.6, 0.5), (0.4, 0.5), (0.0, 0.5)])
def test_chi_at_the_start_has_a_closed_form(slope, weight):
    """There f~ = 0: |1 - s r| + w r over r <= 1 is smallest at r = 1/s, at 1, or at 0."""
    heading = np.array([3.0, 0.0, 4.0]) / 5
    problem = Merits(
        f=np.zeros(3),
        jacobian=weight * np.eye(3),
        excess=np.ones(1),
        slopes=np.stack([slope * heading, np.zeros(3)]),
        first=np.array([0]),
        second=np.array([1]),
        room=Room(np.full(3, -np.inf), np.full(3, np.inf)),
    )
    expected = max(0.0, (slope - weight) * min(1.0, 1 / slope)) if slope else 0.0
    assert problem.chi(0) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_chi_and_its_shortcut_agree_with_another_solver(seed):
    problem = merits(seed, box=0.3, ball=True)
    every = np.arange(len(problem.first))
    chi = np.array([problem.chi(pair) for pair in every])
    start = problem(np.zeros(4))
    for pair in every:
        assert chi[pair] == pytest.approx(start[pair] - slsqp(problem, [pair], 1.0), abs=1e-5)
    seen = problem.surely_movable(every, 0.1)
    assert (chi[seen] >= 0.1).all()
    assert seen.any()


def bent():
    """A smooth network that curves strongly within the region."""
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
    net[0].weight.data *= 4
    return net


def watched(attack, *args, **kwargs):
    """Run an attack; return its result and what `look` saw after each iteration."""
    seen = []

    def look(search):
        trials = [(t.row, t.merits, t.pairs, t.radius, t.step, t.accepted) for t in search.trials]
        seen.append((search, search.x.clone(), search.targets.clone(), trials))

    return replace(attack, observer=look)(*args, **kwargs), seen


@pytest.fixture(scope="module")
def tanh_run():
    model = make(bent, dtype=torch.float64)
    x = randn(6, 8, dtype=torch.float64)
    attack = TrustRegionAttack(L2(1.5), epsilon=0.2, steps=25, beyond=True, rho=None)
    _, seen = watched(attack, model, Gradient(reduce="signed"), x, k=3)
    return model, x, attack, seen


def test_invariants_of_lemma_a6_at_every_iteration(tanh_run):
    """(34) to (37), with gaps and predictions computed here, in the scores' own units."""
    model, x, attack, seen = tanh_run
    scores = Gradient(reduce="signed").at(model, x)
    order = ranking(scores(x))
    epsilon = attack.epsilon * scores(x).abs().mean(1, keepdim=True)
    clean = model(x).softmax(1)
    best = clean.sort(dim=1, descending=True).values
    margin = (best[:, :1] - best[:, 1:2]) / 2**0.5
    moved = 0
    for search, at, targets, trials in seen:
        h = gap(scores(at), order, 3).flatten(1)
        change = (model(at).softmax(1) - clean) / margin
        f = epsilon * torch.cat([change, (at - x) / 1.5], 1).norm(dim=1, keepdim=True)
        t = targets * search.scaled.size[:, None]
        assert (h - t > 0).all()  # (34)
        torch.testing.assert_close(f + (h - t).abs(), epsilon.expand_as(h))  # (35)
        assert ((h - t).abs() <= epsilon * (1 + 1e-9)).all()  # (36)
        assert (f <= epsilon).all()  # (37)
        assert (model(at).argmax(1) == model(x).argmax(1)).all()
        moved += sum(trial[-1] for trial in trials)
    assert moved > 20


def test_every_step_promises_what_lemma_a5_says(tanh_run):
    """Reduction >= min(radius, 1) * chi of the objectives together, and at most chi of each."""
    steps = 0
    for *_, trials in tanh_run[3]:
        for _, problem, pairs, radius, step, _ in trials:
            start, zero = problem(np.zeros_like(step)), np.zeros_like(step)
            chi = start[pairs].max() - problem(problem.solve(pairs, 1.0))[pairs].max()
            promised = (problem(zero) - problem(step))[pairs]
            assert (promised >= min(radius, 1) * chi - 1e-6).all()
            steps += 1
    assert steps > 20


def test_lemma_a5_as_printed_fails_for_objectives_that_disagree():
    problem = merits(0, size=3, features=3, k=1)
    slope = np.array([2.0, 0.0, 0.0])
    problem = Merits(
        f=np.zeros(3),
        jacobian=0.1 * np.eye(3),
        excess=np.ones(2),
        slopes=np.stack([0 * slope, slope, -slope]),
        first=np.array([0, 0]),
        second=np.array([1, 2]),
        room=problem.room,
    )
    step = problem.solve(np.array([0, 1]), 1.0)
    assert min(problem.chi(0), problem.chi(1)) > 0.9
    assert (problem(np.zeros(3)) - problem(step)).max() < 1e-6


def test_every_accepted_step_lowers_all_targets_by_lemma_a9(tanh_run):
    _, _, attack, seen = tanh_run
    before = None
    for _, _, targets, trials in seen:
        for row, _, pairs, radius, _, accepted in trials:
            if accepted and before is not None:
                fall = (before - targets)[row, pairs]
                assert (fall >= attack.eta * attack.tolerance * min(radius, 1) * 0.99).all()
            elif before is not None:
                assert (before == targets)[row].all()
        before = targets
    assert before is not None


def test_a_target_that_was_passed_is_set_below_the_gap_again(tanh_run):
    search = tanh_run[3][-1][0]
    gaps, f = search.targets[0] - 0.3, 0.2 * torch.nn.functional.normalize(search.f[0] + 1, dim=0)
    merit = f.norm() + (gaps - search.targets[0]).abs()
    search._move(0, search.x[0], gaps, f, merit)
    torch.testing.assert_close(gaps - search.targets[0] + f.norm(), torch.ones_like(gaps))


@pytest.mark.parametrize("seed", range(4))
def test_a_linear_explanation_flips_within_theorem_5_1(seed):
    """Nothing bends, so no step is refused, and kappa is 1 / (eta tolerance trust)."""
    model, x = quadratic(6, seed), randn(3, 6, seed=seed, dtype=torch.float64)
    model.b.data *= 3
    explainer, k = Gradient(reduce="signed"), 2
    scores = explainer.at(model, x)(x)
    sign = torch.where(model(x) > 0, 1.0, -1.0)
    rows = model.a.detach()[None] * sign[:, :, None]
    order = ranking(scores)
    steep = torch.cdist(rows, rows).gather(1, order[:, :k, None].expand(-1, -1, 6))
    steep = steep.gather(2, order[:, None, k:].expand(-1, k, -1))
    nearest = (gap(scores, order, k) / steep).flatten(1).amin(1)  # exact distance to a flip
    attack = TrustRegionAttack(
        L2(float(nearest.max()) * 4),
        **{"prediction": 0.0, "rho": None, "epsilon": 0.05, "steps": 1000},
        **{"eta": 0.9, "tolerance": 0.3, "trust": 0.5},
    )
    trace = attack.trace(model, explainer, x, k=k)
    assert (trace.result.distance >= nearest * (1 - 1e-9))[trace.result.precision < 1].all()
    unit = attack.epsilon * scores.abs().mean(1)
    bound = ((trace.h_up - trace.h_low) / unit + 1) / (0.9 * 0.3 * 0.5)
    assert (trace.iterations <= bound.ceil()).all()
    kept = [end for end in trace.outcome if end is Outcome.FLIPPED]
    assert kept
    assert set(trace.outcome) <= {Outcome.FLIPPED, Outcome.STUCK}
    _, seen = watched(attack, model, explainer, x, k=k)
    assert all(trial[-1] for *_, trials in seen for trial in trials)


def test_the_radius_stays_above_the_bound_of_lemma_a7():
    """Gaps x'Qx / 2 + c'x with known curvature: (39), with the factor 1/2 of Taylor's theorem."""
    curve, tilt = 30.0, torch.tensor([1.0, 2.0], dtype=torch.float64)

    def scores(x):
        first = 6 + x @ tilt + curve / 2 * (x[:, :1] ** 2)[:, 0]
        return torch.stack([first, torch.ones_like(first)], 1)

    x = torch.zeros(1, 2, dtype=torch.float64)
    attack = TrustRegionAttack(
        L2(1.0),
        **{"prediction": 0.0, "rho": None, "epsilon": 0.1, "trust": 1.0, "tolerance": 0.2},
        **{"eta": 0.5, "gamma": 0.7, "steps": 60},
    )
    model = make(lambda: nn.Linear(2, 2), dtype=torch.float64)
    _, seen = watched(attack, model, Scored(function=scores), x, k=1)
    curvature = curve / (0.1 * 3.5)  # in units of epsilon times the mean score, (6 + 1) / 2
    least = min(1.0, attack.gamma * 2 * (1 - attack.eta) * attack.tolerance / curvature)
    radii = [trial[3] for *_, trials in seen for trial in trials]
    assert min(radii) >= least
    assert min(radii) < 1  # some were refused


def test_a_linear_model_is_reported_stuck():
    model = make(lambda: nn.Linear(5, 3))
    trace = TrustRegionAttack(L2(1.0)).trace(model, Gradient(of="logit"), randn(4, 5), k=2)
    assert trace.outcome == (Outcome.STUCK,) * 4
    assert (trace.iterations == 0).all()
    assert (trace.objectives == 0).all()
    torch.testing.assert_close(trace.h_up > trace.h_low, torch.tensor([True] * 4))
    assert (trace.result.precision == 1).all()
    assert "certificate" in Outcome.STUCK.value


def test_a_piecewise_linear_network_needs_a_smooth_copy():
    model, x = make(lambda: mlp(6, "relu")), randn(8, 6)
    blind = TrustRegionAttack(L2(2.0), rho=None).trace(model, Gradient(), x, k=2)
    seeing = TrustRegionAttack(L2(2.0)).trace(model, Gradient(), x, k=2)
    assert set(blind.outcome) == {Outcome.STUCK}
    assert seeing.outcome.count(Outcome.FLIPPED) >= 4
    for row, end in enumerate(seeing.outcome):
        flipped = end is Outcome.FLIPPED
        assert bool(seeing.result.precision[row] < 1) == flipped
        if flipped:  # the attack stops at once
            assert 0 < seeing.result.first_flip[row] <= seeing.iterations[row]  # accepted steps


def test_going_on_after_the_first_flip_lowers_precision():
    model, x = make(bent), randn(6, 8)
    first = TrustRegionAttack(Linf(0.5))(model, Gradient(), x, k=3)
    beyond = TrustRegionAttack(Linf(0.5), beyond=True)(model, Gradient(), x, k=3)
    assert (beyond.precision <= first.precision).all()
    assert beyond.precision.mean() < first.precision.mean()


def test_a_trust_region_that_shrinks_to_nothing_is_reported():
    """Scores with a kink at x: every step promises what never comes."""
    model = make(lambda: nn.Linear(2, 2), dtype=torch.float64)
    x = torch.zeros(1, 2, dtype=torch.float64)

    def scores(x):
        up = 2 + (x[:, 0] + 1e-9).abs() * 5
        return torch.stack([up, torch.ones_like(up)], 1)

    attack = TrustRegionAttack(L2(1.0), rho=None, steps=200)
    trace = attack.trace(model, Scored(function=scores), x, k=1)
    assert trace.outcome == (Outcome.COLLAPSED,)
    few = TrustRegionAttack(L2(1.0), rho=None, steps=3)
    assert few.trace(model, Scored(function=scores), x, k=1).outcome == (Outcome.EXHAUSTED,)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"steps": 0}, "TrustRegionAttack: steps must be a positive whole number, got 0."),
        ({"epsilon": 0.0}, "TrustRegionAttack: epsilon must be positive, got 0.0."),
        ({"trust": -1.0}, "TrustRegionAttack: trust must be positive, got -1.0."),
        ({"input": -0.5}, "TrustRegionAttack: input must be 0 or more, got -0.5."),
        ({"gamma": 1.0}, "TrustRegionAttack: gamma must be between 0 and 1, got 1.0."),
        ({"eta": 0.0}, "TrustRegionAttack: eta must be between 0 and 1, got 0.0."),
        ({"rho": -1.0}, "TrustRegionAttack: rho must be None or positive, got -1.0."),
    ],
)
def test_bad_settings_get_one_sentence(settings, sentence):
    with pytest.raises(InputError) as error:
        TrustRegionAttack(**settings)(make(lambda: mlp(6)), Gradient(), randn(2, 6), k=2)
    assert str(error.value) == sentence
