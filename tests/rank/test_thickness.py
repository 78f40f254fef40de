"""Thickness of linear and quadratic models is known exactly; every sum is checked by its loop."""

import math

import pytest
import torch
from scipy.integrate import quad
from torch import nn

from nets import make, mlp, quadratic, randn
from r2et.errors import InputError
from r2et.explain import Gradient, IntegratedGradients
from r2et.rank import gap, pairwise_thickness, ranking, thickness
from r2et.rank.thickness_weights import KINDS, ordered_share, rank_weights
from r2et.region import L2, Linf

F64 = torch.float64
SIGNED = Gradient(reduce="signed")


def ranked_gaps(model, x, k):
    """h of every pair at x for the quadratic's own class, (B, k, n - k), and the ranking."""
    scores = SIGNED(model, x)
    order = ranking(scores)
    return gap(scores, order, k), order


def test_a_linear_model_has_the_thickness_of_its_gap_whatever_the_distribution():
    model = nn.Linear(7, 1).double()
    x, k = randn(5, 7, dtype=F64), 3
    h, _ = ranked_gaps(model, x, k)
    for settings in (
        {"distribution": "uniform"},
        {"distribution": "uniform", "region": Linf(5.0), "over": "min", "samples": 3},
        {"distribution": "gaussian", "sigma": 2.0},
        {"distribution": "gaussian", "over": "min"},
        {"distribution": "adversarial", "x_adv": randn(2, 5, 7, seed=4, dtype=F64)},
    ):
        # The prediction may change on the way; the explained class stays that of x.
        estimate = thickness(model, x, k, explainer=SIGNED, **settings)
        torch.testing.assert_close(estimate, h.mean((1, 2)))
        sure = thickness(model, x, k, explainer=SIGNED, kind="probability", **settings)
        assert torch.equal(sure, torch.ones(5, dtype=F64))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_quadratic_models_thickness_is_its_closed_form(k):
    model, x = quadratic(), randn(4, 6, dtype=F64)
    h, order = ranked_gaps(model, x, k)
    # E over a symmetric D of A(x + t d) is A x.
    for distribution in ("uniform", "gaussian"):
        settings = {"explainer": SIGNED, "distribution": distribution, "samples": 4, "points": 3}
        torch.testing.assert_close(thickness(model, x, k, **settings), h.mean((1, 2)))
        torch.testing.assert_close(pairwise_thickness(model, x, k, **settings), h)
    # Towards one x': h + (A_i - A_j) (x' - x) / 2.
    x_adv = x + randn(4, 6, seed=3, dtype=F64)
    sign = torch.where(model(x) > 0, 1.0, -1.0).detach()
    change = sign * ((x_adv - x) @ model.a).detach() / 2
    expected = h + gap(change, order, k)
    settings = {"explainer": SIGNED, "distribution": "adversarial", "x_adv": x_adv, "points": 2}
    torch.testing.assert_close(pairwise_thickness(model, x, k, **settings), expected)
    torch.testing.assert_close(thickness(model, x, k, **settings), expected.mean((1, 2)))


def test_the_probability_kind_is_the_share_of_the_way_before_each_flip():
    """Along x + t d every gap of a quadratic is linear in t, so each flips once, at a known t."""
    model, x, k = quadratic(), randn(4, 6, dtype=F64), 2
    h, order = ranked_gaps(model, x, k)
    x_adv = x + 3 * randn(4, 6, seed=3, dtype=F64)
    sign = torch.where(model(x) > 0, 1.0, -1.0).detach()
    slope = gap(sign * ((x_adv - x) @ model.a).detach(), order, k)
    flip = torch.where(slope < 0, -h / slope, math.inf).clamp(max=1.0)
    assert (flip < 1).any()
    settings = {"explainer": SIGNED, "distribution": "adversarial", "x_adv": x_adv}
    settings |= {"kind": "probability", "points": 2000}
    estimate = pairwise_thickness(model, x, k, **settings)
    torch.testing.assert_close(estimate, flip, atol=1 / 2000, rtol=0)
    whole = thickness(model, x, k, **settings)
    torch.testing.assert_close(whole, flip.mean((1, 2)), atol=1 / 2000, rtol=0)


def test_the_integral_over_the_way_agrees_with_scipy():
    model, x, k = make(lambda: mlp(act="tanh"), dtype=F64), randn(2, 6, dtype=F64), 2
    x_adv = x + 2 * randn(2, 6, seed=1, dtype=F64)
    scores = Gradient().at(model, x)
    order = ranking(scores(x))

    def mean_gap(t, row):
        at = x + t * (x_adv - x)
        return float(gap(scores(at), order, k)[row].mean())

    estimate = thickness(model, x, k, distribution="adversarial", x_adv=x_adv, points=4000)
    for row in range(2):
        exact = quad(mean_gap, 0, 1, args=(row,), epsabs=1e-10, limit=300)[0]
        assert estimate[row].item() == pytest.approx(exact, abs=1e-6)


def by_definition(ranked, k, kind):
    """Each kind from the papers' sums, pair by pair; ranks count from 1."""
    n = len(ranked)

    def mean(size):
        pairs = [(i, j) for i in range(size) for j in range(size, n)]
        return sum(ranked[i] - ranked[j] for i, j in pairs) / len(pairs)

    if kind == "gap":
        return mean(k)
    if kind == "average_precision":
        return sum(mean(size) for size in range(1, k + 1)) / k
    pairs = [(i, j) for i in range(1, k + 1) for j in range(k + 1, n + 1)]
    if kind == "discounted":
        return sum((ranked[i - 1] - ranked[j - 1]) / math.log(j - i + 1) for i, j in pairs)
    return sum(ranked[i - 1] >= ranked[j - 1] for i, j in pairs) / len(pairs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (6, 1), (6, 5), (9, 4), (28, 8)])
def test_every_kind_equals_its_loop_over_pairs(kind, n, k):
    ranked = randn(7, n, dtype=F64)
    ranked[:3] = ranked[:3].round()  # ties
    sure = kind == "probability"
    estimate = ordered_share(ranked, k) if sure else ranked @ rank_weights(n, k, kind)
    expected = [by_definition(row, k, kind) for row in ranked.tolist()]
    torch.testing.assert_close(estimate, torch.tensor(expected, dtype=F64))


def test_kinds_through_the_public_function():
    model, x, k = make(mlp, dtype=F64), randn(3, 6, dtype=F64), 3
    x_adv = x + randn(3, 6, seed=1, dtype=F64)
    scores = Gradient().at(model, x)
    order = ranking(scores(x))
    middle = scores((x + x_adv) / 2).gather(1, order)
    for kind in KINDS:
        estimate = thickness(
            model, x, k, kind=kind, distribution="adversarial", x_adv=x_adv, points=1
        )
        expected = [by_definition(row, k, kind) for row in middle.tolist()]
        torch.testing.assert_close(estimate, torch.tensor(expected, dtype=F64))


def test_permuting_features_changes_nothing_and_scaling_scales():
    shuffle = torch.tensor([3, 0, 5, 1, 4, 2])
    model, x = make(mlp, dtype=F64), randn(4, 6, dtype=F64)
    x_adv = x + randn(4, 6, seed=1, dtype=F64)
    scores = Gradient().at(model, x)

    def shuffled(at):
        back = torch.empty_like(at)
        back[:, shuffle] = at
        return scores(back)[:, shuffle]

    def doubled(at):
        return 2 * scores(at)

    for kind in KINDS:
        settings = {"kind": kind, "distribution": "adversarial"}
        plain = thickness(scores, x, 2, x_adv=x_adv, **settings)
        moved = thickness(shuffled, x[:, shuffle], 2, x_adv=x_adv[:, shuffle], **settings)
        torch.testing.assert_close(moved, plain)
        more = thickness(doubled, x, 2, x_adv=x_adv, **settings)
        torch.testing.assert_close(more, plain if kind == "probability" else 2 * plain)


def test_the_smallest_of_the_samples_is_no_larger_than_their_mean():
    model, x = make(mlp), randn(6, 6)
    for distribution in ("uniform", "gaussian"):
        low = thickness(model, x, 2, distribution=distribution, over="min")
        assert (low <= thickness(model, x, 2, distribution=distribution)).all()
    each = [thickness(model, x, 2, distribution="adversarial", x_adv=x + d) for d in (0.5, -0.5)]
    both = torch.stack([x + 0.5, x - 0.5])
    low = thickness(model, x, 2, distribution="adversarial", x_adv=both, over="min")
    torch.testing.assert_close(low, torch.minimum(*each))


def test_a_call_repeats_and_a_generator_changes_it():
    model, x = make(lambda: mlp(act="tanh")), randn(3, 6)
    a = thickness(model, x, 2, samples=4)
    assert torch.equal(a, thickness(model, x, 2, samples=4))
    other = thickness(model, x, 2, samples=4, generator=torch.Generator().manual_seed(5))
    assert not torch.equal(a, other)


def test_odd_samples_and_many_chunks_give_the_same(monkeypatch):
    model, x = make(mlp, dtype=F64), randn(5, 6, dtype=F64)
    whole = thickness(model, x, 2, samples=7)
    monkeypatch.setattr("r2et.rank.sampling_paths.CHUNK_NUMBERS", 1)
    torch.testing.assert_close(thickness(model, x, 2, samples=7), whole)


def test_thickness_trains_the_weights_and_moves_x():
    model = make(lambda: mlp(act="softplus"), dtype=F64)
    x = randn(3, 6, dtype=F64)
    scores = Gradient().at(model, x, create_graph=True)
    thickness(scores, x, 2, samples=2, points=2).sum().backward()
    assert all(p.grad is not None for n, p in model.named_parameters() if n.endswith("0.weight"))
    step = 1e-6
    before = thickness(model, x, 2, samples=2, points=2).sum()
    weight = model.layers[0].weight
    slope = weight.grad[0, 0].item()
    weight.data[0, 0] += step
    after = thickness(model, x, 2, samples=2, points=2).sum()
    assert (after - before).item() / step == pytest.approx(slope, rel=1e-3)
    free = x.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda v: thickness(model, v, 2, samples=2, points=2, region=L2(0.1)), free
    )


def test_a_rows_thickness_does_not_depend_on_its_batch(monkeypatch):
    model, x = make(lambda: mlp(act="tanh"), dtype=F64), randn(6, 6, dtype=F64)
    x_adv = x + randn(2, 6, 6, seed=1, dtype=F64)
    whole = thickness(model, x, 2, samples=4)
    pairs = pairwise_thickness(model, x, 2, samples=4)
    given = thickness(model, x, 2, distribution="adversarial", x_adv=x_adv)
    for i in range(6):
        row = x[i : i + 1]
        torch.testing.assert_close(thickness(model, row, 2, samples=4), whole[i : i + 1])
    monkeypatch.setattr("r2et.rank.sampling_paths.CHUNK_NUMBERS", 12)  # two rows at a time
    torch.testing.assert_close(thickness(model, x, 2, samples=4), whole)
    torch.testing.assert_close(pairwise_thickness(model, x, 2, samples=4), pairs)
    torch.testing.assert_close(
        thickness(model, x, 2, distribution="adversarial", x_adv=x_adv), given
    )


def test_defaults_are_what_the_page_says():
    model, x = make(lambda: mlp(act="tanh")), randn(3, 6)
    torch.testing.assert_close(thickness(model, x, 2), thickness(model, x, 2, region=L2(1.0)))
    assert not torch.equal(thickness(model, x, 2), thickness(model, x, 2, region=L2(0.5)))
    noisy = {"distribution": "gaussian", "region": L2(0.7)}
    expected = thickness(model, x, 2, **noisy, sigma=0.7 / 6**0.5)
    torch.testing.assert_close(thickness(model, x, 2, **noisy), expected)


def test_gaussian_points_are_gaussian():
    """Of a score -d0^2 the mean along x + t d is sigma^2 / 3, which no uniform ball would give."""

    def scores(at):
        return torch.stack([-(at[:, 0] ** 2), torch.full_like(at[:, 0], -100.0)], 1)

    x = torch.zeros(1, 2, dtype=F64)
    estimate = thickness(scores, x, 1, distribution="gaussian", sigma=1.5, samples=4000, points=20)
    assert estimate.item() == pytest.approx(100 - 1.5**2 / 3, abs=0.06)


def test_other_explanations_and_regions():
    model, x = make(mlp), randn(3, 6).clamp(0, 1)
    region = L2(0.5, bounds=(0, 1), frozen=[0, 1])
    estimate = thickness(model, x, 2, explainer=IntegratedGradients(points=5), region=region)
    assert estimate.shape == (3,)


MODEL, X = make(mlp), randn(3, 6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: thickness(MODEL, X, 0), "thickness: k must be in 1..5 for 6 features, got 0."),
        (lambda: thickness(MODEL, X, 6), "thickness: k must be in 1..5 for 6 features, got 6."),
        (
            lambda: thickness(MODEL, X, 2, kind="mean"),
            "thickness: kind must be one of gap, probability, average_precision, discounted",
        ),
        (
            lambda: pairwise_thickness(MODEL, X, 2, kind="discounted"),
            "pairwise_thickness: kind must be gap or probability, got discounted.",
        ),
        (lambda: thickness(MODEL, X, 2, over="max"), "thickness: over must be mean or min"),
        (lambda: thickness(MODEL, X, 2, samples=0), "thickness: samples must be a positive whole"),
        (lambda: thickness(MODEL, X, 2, points=1.5), "thickness: points must be a positive whole"),
        (
            lambda: thickness(MODEL, X, 2, distribution="normal"),
            "thickness: distribution must be one of uniform, gaussian, adversarial, got normal.",
        ),
        (
            lambda: thickness(MODEL, X, 2, distribution="adversarial"),
            "thickness: x_adv must be given for an adversarial distribution, got None.",
        ),
        (
            lambda: thickness(MODEL, X, 2, x_adv=X),
            "thickness: x_adv must be None for a uniform distribution, got float32 tensor",
        ),
        (
            lambda: thickness(MODEL, X, 2, distribution="adversarial", x_adv=X[:2]),
            "thickness: x_adv must be of x's shape (3, 6), or several of it stacked, got float32",
        ),
        (
            lambda: thickness(MODEL, X, 2, sigma=9.0),
            "thickness: sigma must be None for a uniform distribution, got 9.0.",
        ),
        (
            lambda: thickness(MODEL, X, 2, distribution="adversarial", x_adv=X, region=L2(1)),
            "thickness: region must be None when x_adv is given, got L2(",
        ),
        (
            lambda: thickness(MODEL, X, 2, region=0.3),
            "thickness: region must be a Region such as L2(0.3), got 0.3.",
        ),
        (
            lambda: thickness(MODEL, X, 2, explainer=Gradient),
            "thickness: explainer must be an Explainer such as Gradient(), got <class",
        ),
        (
            lambda: thickness(MODEL, X, 2, generator=3),
            "thickness: generator must be a torch.Generator, got 3.",
        ),
        (
            lambda: thickness(MODEL, X, 2, distribution="adversarial", x_adv=X.double()),
            "thickness: x_adv must be torch.float32 on cpu, as x is, got float64 tensor",
        ),
        (
            lambda: thickness(lambda at: at.repeat(2, 1), X, 2),
            "thickness: model must be one that gives 3 rows of scores, got float32 tensor",
        ),
        (
            lambda: thickness(lambda at: at[:, :1], X, 1),
            "thickness: x must be explained by at least 2 scores, got 1 score.",
        ),
        (lambda: thickness(3, X, 2), "thickness: model must be a torch.nn.Module or a function"),
        (
            lambda: thickness(lambda at: at[:1], X, 2),
            "thickness: model must be one that gives 3 rows of scores, got float32 tensor",
        ),
        (
            lambda: thickness(lambda at: at, X, 2, explainer=Gradient()),
            "thickness: explainer must be None when scores come from a function, got Gradient",
        ),
        (lambda: thickness(MODEL, X / 0, 2), "thickness: x must be finite, got NaN or infinity"),
        (
            lambda: thickness(MODEL, X, 2, distribution="gaussian", sigma=-1.0),
            "L2: sigma must be positive and finite, got -1.0.",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
