"""Penalties against closed forms: a quadratic logit has gradient Ax + b and Hessian A, exactly."""

import itertools

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

from nets import Quadratic, quadratic
from r2et.explain import Concept, Gradient, GradientTimesInput, IntegratedGradients, SmoothGrad
from r2et.models import MLP
from r2et.penalty import (
    R2ET,
    SSR,
    AdversarialTraining,
    BallR2ET,
    CertifiedRanking,
    CertifiedRatio,
    EstimatedHessian,
    ExactHessian,
)
from r2et.penalty.adversarial import row_losses

N, K = 6, 2
ODDS = Gradient()  # of the log-odds, which is the quadratic itself


@pytest.fixture
def case():
    torch.manual_seed(1)
    model = quadratic(N)
    x = torch.randn(5, N, dtype=torch.float64)
    # The predicted class's log-odds: the logit for class 1, minus it for class 0.
    sign = torch.where(model(x)[:, 0] > 0, 1.0, -1.0).double()[:, None]
    gradient = sign * (x @ model.a + model.b)
    return model, x, gradient.detach(), model.a.detach()


def gaps(scores: torch.Tensor, places: list[tuple[int, int]]) -> torch.Tensor:
    ranked = scores.sort(dim=1, descending=True).values
    return torch.stack([ranked[:, i] - ranked[:, j] for i, j in places], 1)


PLACES = {
    "all": list(itertools.product(range(K), range(K, N))),
    "closest": [(1, 2), (0, 3)],
    "anchor": [(0, 1), (1, 2), (1, 3)],
}


@pytest.mark.parametrize("pairs", PLACES)
@pytest.mark.parametrize("form", ["gap", "exponential"])
def test_gap_term(case, pairs, form):
    model, x, gradient, _ = case
    penalties = R2ET(k=K, pairs=pairs, form=form, l1=0.7, l2=0.0, explainer=ODDS)(model, x)
    h = gaps(gradient.abs(), PLACES[pairs])
    expected = -h if form == "gap" else (-h).exp()
    torch.testing.assert_close(penalties, 0.7 * expected.mean(1))


@pytest.mark.parametrize("by", ["difference", "product"])
def test_curvature_along_the_signs(case, by):
    model, x, gradient, a = case
    v = gradient.sign() / N**0.5
    expected = (v @ a).norm(dim=1)
    penalties = EstimatedHessian(explainer=ODDS, by=by)(model, x)
    torch.testing.assert_close(penalties, expected)
    both = R2ET(k=K, by=by, explainer=ODDS, l1=2.0, l2=3.0)(model, x)
    h = gaps(gradient.abs(), PLACES["all"]).mean(1)
    torch.testing.assert_close(both, -2 * h + 3 * expected)


def test_exact_hessian_and_its_largest_eigenvalue(case):
    model, x, _, a = case
    torch.testing.assert_close(ExactHessian(explainer=ODDS)(model, x), a.norm().expand(5))
    largest = torch.linalg.eigvalsh(a).abs().max()
    torch.testing.assert_close(SSR(explainer=ODDS, steps=500)(model, x), largest.expand(5))


def test_eigenvalues_that_differ_in_sign_alone():
    x = torch.tensor([[0.3, 0.7], [-2.0, 1.0]], dtype=torch.float64)
    product = Quadratic(torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), torch.zeros(2).double())
    penalties = SSR(explainer=ODDS)(product, x)  # of x1 * x2: eigenvalues 1 and -1
    torch.testing.assert_close(penalties, torch.ones(2).double())
    penalties.sum().backward()
    # The model grows with A, wherever in their plane the vector is: <A, d|l|/dA> = |l|, two rows.
    torch.testing.assert_close((product.a.grad * product.a).sum(), torch.tensor(2.0).double())


@pytest.mark.parametrize("n", [6, 30, 100])
def test_largest_eigenvalue_at_the_default_steps(n):
    # 20 steps do not separate eigenvalues closer than some 5%: too low by 15% at most, never high.
    for seed in range(10):
        model, x = quadratic(n, seed), torch.ones(1, n, dtype=torch.float64)
        largest = torch.linalg.eigvalsh(model.a.detach()).abs().max().item()
        penalties = SSR(explainer=ODDS)(model, x).item()
        assert 0.85 * largest <= penalties <= largest * (1 + 1e-9)


def test_largest_eigenvalue_has_the_derivative_of_an_eigenvalue(case):
    model, x, _, a = case
    SSR(explainer=ODDS, steps=2000)(model, x[:1]).sum().backward()
    values, vectors = torch.linalg.eigh(a)
    v = vectors[:, values.abs().argmax()]
    expected = values[values.abs().argmax()].sign() * torch.outer(v, v)
    # The model uses A without its transpose's help, so its gradient is that of A alone.
    symmetric = (model.a.grad + model.a.grad.T) / 2
    torch.testing.assert_close(symmetric, expected, atol=1e-6, rtol=1e-6)


def test_certified_ratio_is_the_radius_of_proposition_4_5(case):
    model, x, gradient, a = case
    penalties = CertifiedRatio(k=K, explainer=ODDS, cap=1e9)(model, x)
    for row, g in enumerate(gradient):
        order = g.abs().argsort(descending=True)
        signed = g.sign()[:, None] * a
        ratios = [
            (g.abs()[i] - g.abs()[j]) / (signed[i] - signed[j]).norm()
            for i in order[:K]
            for j in order[K:]
        ]
        # At the sampled points other signs may hold, which only lengthens the rows' distance.
        assert -penalties[row] <= min(ratios) + 1e-9
    alone = CertifiedRatio(k=K, explainer=ODDS, cap=1e9, samples=0)(model, x[:1])
    g, order = gradient[0], gradient[0].abs().argsort(descending=True)
    signed = g.sign()[:, None] * a
    best = min(
        (g.abs()[i] - g.abs()[j]) / (signed[i] - signed[j]).norm()
        for i in order[:K]
        for j in order[K:]
    )
    torch.testing.assert_close(-alone[0], best)
    assert CertifiedRatio(k=K, explainer=ODDS, cap=1e-3)(model, x).min().item() == -1e-3


class Cubic(torch.nn.Module):
    """One logit sum of c_i x_i^3 / 6: gradient c_i x_i^2 / 2 and Hessian diag(c_i x_i)."""

    def __init__(self, c):
        super().__init__()
        self.c = torch.nn.Parameter(c)

    def forward(self, x):
        return (self.c * x**3).sum(1, keepdim=True) / 6


def test_certified_ratio_looks_at_the_sampled_points():
    torch.manual_seed(0)
    c, x = torch.rand(N).double() + 1, torch.rand(4, N).double()
    noise = torch.randn_like(x)
    penalty = CertifiedRatio(k=K, explainer=ODDS, cap=1e9, radius=0.7, samples=2)
    penalties = penalty(Cubic(c), x, noise=noise)
    for row, point in enumerate(x):
        v = noise[row] / noise[row].norm()
        points = (point, point + 0.7 * v, point + 0.7 * v.roll(1))
        scores = c * point**2 / 2
        order = scores.argsort(descending=True).tolist()
        best = min(
            (scores[i] - scores[j]) / max((c * p)[[i, j]].norm() for p in points)
            for i in order[:K]
            for j in order[K:]
        )
        torch.testing.assert_close(-penalties[row], best.detach())


def test_adversarial_training_is_the_loss_one_step_away():
    # Three classes, so that the predicted one's explanation is not minus the label's.
    torch.manual_seed(0)
    roots = torch.randn(3, N, N).double()
    a, b = (roots + roots.mT) / 2, torch.randn(3, N).double()

    class Three(torch.nn.Module):
        def forward(self, x):
            return torch.einsum("bi,cij,bj->bc", x, a, x) / 2 + x @ b.T

    model, x = Three(), torch.randn(5, N).double()
    chosen = model(x).argmax(1)
    for y in (chosen, (chosen + 1) % 3, torch.zeros(5).long()):
        penalty = AdversarialTraining(k=K, radius=0.3, explainer=Gradient(of="logit"))
        penalties = penalty(model, x, y)
        scores = torch.einsum("bij,bj->bi", a[chosen], x) + b[chosen]
        weight = torch.full_like(scores, -1 / (N - K)).scatter(
            1, scores.abs().argsort(dim=1, descending=True)[:, :K], 1 / K
        )
        slope = torch.einsum("bi,bij->bj", weight * scores.sign(), a[chosen])
        worse = x - 0.3 * slope / slope.norm(dim=1, keepdim=True)
        expected = -model(worse).softmax(1).log()[torch.arange(5), y]
        torch.testing.assert_close(penalties, expected)
    torch.testing.assert_close(penalty(model, x), penalty(model, x, chosen))


@pytest.mark.parametrize("shape", [(5, 3), (5, 1), (5,)])
def test_losses_of_rows_are_reduced_as_asked(shape):
    torch.manual_seed(0)
    out, y = torch.randn(shape).double(), torch.tensor([0, 1, 0, 1, 1])
    rows = row_losses(out, y)
    two = torch.stack([torch.zeros(5).double(), out.flatten()[:5]], 1)
    probability = (out if shape == (5, 3) else two).softmax(1)[torch.arange(5), y]
    torch.testing.assert_close(rows, -probability.log())
    torch.testing.assert_close(row_losses(out, y, "mean"), rows.mean())
    torch.testing.assert_close(row_losses(out, y, reduction="sum"), rows.sum())


def test_certified_ranking_reaches_beyond_its_radius():
    torch.manual_seed(0)
    model, x = MLP(N, activation="tanh").double(), torch.randn(5, N).double()
    near, far = (CertifiedRanking(k=K, radius=r, reach=1.0)(model, x) for r in (0.2, 0.22))
    torch.testing.assert_close(CertifiedRanking(k=K, radius=0.2)(model, x), far)
    torch.testing.assert_close(CertifiedRanking(k=K, radius=0.1, reach=2.2)(model, x), far)
    assert bool((near < far).any())


def test_ball_term_compares_relative_scores_across_the_ball(case):
    model, x, gradient, a = case
    noise = torch.randn_like(x)
    penalties = BallR2ET(k=K, radius=0.5, l1=0.1, l2=2.0)(model, x, noise=noise)
    v = noise / noise.norm(dim=1, keepdim=True)
    sign = torch.where(model(x) > 0, 1.0, -1.0)
    there = (gradient + 0.5 * sign * (v @ a)).abs()
    here = gradient.abs()
    here, there = (s / s.mean(1, keepdim=True) for s in (here, there))
    expected = -0.1 * gaps(here, PLACES["closest"]).mean(1) + 2 * (there - here).norm(dim=1)
    torch.testing.assert_close(penalties, expected)


def test_the_worst_end_is_one_step_against_the_gap(case):
    """On a quadratic, whose gradient at any point is known; its gap's gradient by differences."""
    model, x, gradient, a = case
    noise = torch.randn_like(x)
    sign = torch.where(model(x) > 0, 1.0, -1.0)
    top = gradient.abs().argsort(dim=1, descending=True)[:, :K]
    weights = torch.full_like(x, -1 / (N - K)).scatter(1, top, 1 / K)

    def scores(points):
        raw = (gradient + sign * ((points - x) @ a)).abs()
        return raw / raw.mean(1, keepdim=True)

    start = x + 0.125 * noise.sign() / N**0.5
    up = torch.zeros_like(x)
    for i in range(N):
        move = torch.zeros_like(x)
        move[:, i] = 1e-6
        up[:, i] = (weights * (scores(start + move) - scores(start - move))).sum(1)
    end = start - 0.375 * up.sign() / N**0.5
    expected = (scores(end) - scores(x)).norm(dim=1)
    penalties = BallR2ET(k=K, radius=0.5, l1=0.0, ends="worst")(model, x, noise=noise)
    torch.testing.assert_close(penalties, expected)


def test_where_nothing_bends_the_worst_end_is_a_random_one():
    torch.manual_seed(0)
    model, x = MLP(N, (6,)).double(), torch.rand(5, N).double()
    noise = torch.randn_like(x)
    end = x + 0.5 * noise.sign() / N**0.5
    here, there = (Gradient()(model, points) for points in (x, end))
    here, there = (s / s.mean(1, keepdim=True) for s in (here, there))
    penalties = BallR2ET(k=K, radius=0.5, l1=0.0, ends="worst")(model, x, noise=noise)
    torch.testing.assert_close(penalties, (there - here).norm(dim=1))


def test_ball_term_does_not_see_the_scale(case):
    model, x, _, _ = case
    noise = torch.randn_like(x)
    before = BallR2ET(k=K)(model, x, noise=noise)
    with torch.no_grad():
        model.a *= 7
        model.b *= 7
    torch.testing.assert_close(BallR2ET(k=K)(model, x, noise=noise), before)


def test_hinge_asks_for_no_more_than_enough(case):
    model, x, gradient, _ = case
    scores = gradient.abs() / gradient.abs().mean(1, keepdim=True)
    penalties = BallR2ET(k=K, l1=1.0, l2=0.0, hinge=0.4)(model, x)
    expected = (0.4 - gaps(scores, PLACES["closest"])).clamp(min=0).mean(1)
    torch.testing.assert_close(penalties, expected)


def test_a_given_ranking_is_the_one_preserved(case):
    model, x, gradient, _ = case
    order = torch.arange(N).repeat(5, 1)
    penalties = R2ET(k=K, l2=0.0, explainer=ODDS)(model, x, order=order)
    scores = gradient.abs()
    torch.testing.assert_close(penalties, scores[:, K:].mean(1) - scores[:, :K].mean(1))


@pytest.mark.parametrize(
    "penalty",
    [
        R2ET(k=2, step=0.1),
        R2ET(k=2, by="product"),
        R2ET(k=2, form="exponential", pairs="anchor"),
        BallR2ET(k=2),
        BallR2ET(k=2, ends="worst"),
        EstimatedHessian(),
        ExactHessian(),
        SSR(steps=400),
        CertifiedRatio(k=2, samples=1),
        R2ET(k=2, explainer=GradientTimesInput(of="probability")),
        R2ET(k=2, explainer=IntegratedGradients(points=5, of="probability")),
        R2ET(k=2, explainer=SmoothGrad(samples=4, of="probability")),
    ],
    ids=lambda p: f"{type(p).__name__}-{type(p.explainer).__name__}-{getattr(p, 'by', '')}",
)
def test_derivatives_in_the_weights(penalty):
    torch.manual_seed(0)
    model = MLP(4, (3,), activation="tanh").double()
    x = torch.randn(3, 4, dtype=torch.float64)
    noise = torch.randn_like(x)

    class With(torch.nn.Module):
        """The model with weights that gradcheck may replace."""

        def __init__(self, weights):
            super().__init__()
            names = (name for name, _ in model.named_parameters())
            self.weights = dict(zip(names, weights, strict=True))

        def forward(self, points):
            return functional_call(model, self.weights, (points,))

    weights = tuple(p.detach().clone().requires_grad_() for p in model.parameters())
    assert gradcheck(lambda *w: penalty(With(w), x, noise=noise), weights, atol=1e-4, rtol=1e-3)


def test_concept_derivatives():
    torch.manual_seed(0)
    model = MLP(4, (6,), activation="tanh").double()
    x, noise = torch.randn(3, 4).double(), torch.randn(3, 4).double()
    penalty = R2ET(k=2, explainer=Concept(), l2=0.5)
    penalty(model, x, noise=noise).sum().backward()
    weight = model.layers[0].weight
    step = 1e-6
    for place in ((0, 0), (3, 2), (5, 3)):
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                weight[place] += sign * step
                values.append(penalty(model, x, noise=noise).sum().item())
                weight[place] -= sign * step
        slope = (values[0] - values[1]) / (2 * step)
        assert weight.grad[place].item() == pytest.approx(slope, rel=1e-4, abs=1e-7)
