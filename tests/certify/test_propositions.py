"""Propositions 4.4 to 4.7 in numbers: where they hold, and where as printed they do not."""

import pytest
import torch

from nets import make, quadratic, randn
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.rank import gap, pairwise_thickness, ranking, thickness_bounds
from r2et.region import L2

K = 2


def setting(n=5, rows=12, seed=0):
    """A quadratic logit x'Ax/2 + b'x: the gradient is Ax + b, its derivative A, everywhere."""
    model = quadratic(n, seed)
    x = randn(rows, n, seed=seed + 1, dtype=torch.float64)
    explainer = Gradient(reduce="signed", of="logit")
    target = torch.ones(rows, dtype=torch.long)
    return model, x, explainer, target, model.a.detach()


def apart(a, order):
    """||H_i - H_j|| for the pairs of each row: (B, k, n - k)."""
    rows = a[order]
    return (rows[:, :K, None] - rows[:, None, K:]).norm(dim=3)


def test_4_4_bounds_thickness_when_the_norm_is_a_supremum():
    model, x, explainer, target, a = setting()
    scores = explainer(model, x, target)
    order = ranking(scores)
    radius = 0.5
    suprema = torch.cdist(a, a).expand(len(x), -1, -1)
    low, high = thickness_bounds(scores, K, radius, suprema)
    at = explainer.at(model, x, target)
    theta = pairwise_thickness(at, x, K, region=L2(radius), samples=200, points=20)
    assert bool((low <= theta + 1e-9).all())
    assert bool((theta <= high + 1e-9).all())
    # As printed, the upper bound is twice as far away as it need be, and more.
    lengths = a.norm(dim=1)[order]
    printed = gap(scores, order, K) + radius * (lengths[:, :K, None] + lengths[:, None, K:])
    assert bool((printed >= high - 1e-12).all())


def test_4_5_is_exact_for_one_pair_of_a_quadratic():
    model, x, explainer, target, a = setting()
    scores = explainer(model, x, target)
    order = ranking(scores)
    h, most = gap(scores, order, K), apart(a, order)
    radius = (h / most).flatten(1).amin(1)
    at = explainer.at(model, x, target)
    moves = L2(1.0).sample(x, 300) - x
    for share, flips in ((0.999, False), (1.001, True)):
        pair = (h / most).flatten(1).argmin(1)
        i, j = order.gather(1, (pair // 3)[:, None]), order.gather(1, K + (pair % 3)[:, None])
        way = -(a[i[:, 0]] - a[j[:, 0]])
        worst = x + share * radius[:, None] * way / way.norm(dim=1, keepdim=True)
        left = gap(at(worst), order, K).flatten(1).amin(1)
        assert bool(((left < 0) == flips).all())
    inside = gap(at((x + radius[:, None] * moves).flatten(0, 1)), order.repeat(300, 1), K)
    assert float(inside.min()) > 0


def test_4_5_is_false_of_a_piecewise_linear_network():
    model = make(lambda: MLP(5, (16,)))
    x = randn(30, 5)
    clean = Gradient()(model, x)
    # H is 0 at x and at almost every other point, so the printed radius is infinite; and yet:
    order = ranking(clean)
    scores = Gradient().at(model, x)
    left = gap(scores(x + 3 * randn(30, 5, seed=9)), order, K).flatten(1).amin(1)
    assert bool((left < 0).any())


def test_4_6_the_worst_sum_of_gaps_of_a_quadratic_is_its_curvature():
    """max over ||sum of d|| <= eps of - sum h(x + d_ij) = - sum h + max <H_i - H_j, d_ij>.

    The moves enter (7) one pair each, but the constraint is on their sum: as printed two moves that
    cancel are free, and the maximum is infinite unless all H_i - H_j are alike. With a bound eps on
    each move both sides are exact: - sum h + eps sum ||H_i - H_j||, the form of (6).
    """
    model, x, explainer, target, a = setting()
    scores = explainer(model, x, target)
    order = ranking(scores)
    at = explainer.at(model, x, target)
    epsilon = 0.3
    h, most = gap(scores, order, K), apart(a, order)
    right = -h.flatten(1).sum(1) + epsilon * most.flatten(1).sum(1)
    rows = a[order]
    left = torch.zeros(len(x), dtype=torch.float64)
    for i in range(K):
        for j in range(K, 5):
            way = rows[:, j] - rows[:, i]
            moved = x + epsilon * way / way.norm(dim=1, keepdim=True)
            left -= gap(at(moved), order, K)[:, i, j - K]
    assert torch.allclose(left, right)
    # Two moves that cancel, of any size, have the sum 0: the printed constraint does not bind.
    for size in (1.0, 100.0):
        way = rows[:, 0] - rows[:, K]
        other = rows[:, 0] - rows[:, K + 1]
        gain = size * ((other - way) * (other - way)).sum(1)
        one = gap(at(x - size * (way - other)), order, K)[:, 0, 0]
        two = gap(at(x + size * (way - other)), order, K)[:, 0, 1]
        assert torch.allclose(h[:, 0, 0] + h[:, 0, 1] - one - two, gain, rtol=1e-6)


def test_4_7_the_worst_score_in_the_ball_is_the_score_less_its_curvature():
    """min over ||d|| <= eps of l I(x + d) = l I(x) - eps ||l H_i||, exact for a quadratic."""
    model, x, explainer, target, a = setting()
    scores = explainer(model, x, target)
    at = explainer.at(model, x, target)
    epsilon = 0.4
    for i in range(5):
        for weight in (3.0, -2.0):
            way = -weight * a[i]
            worst = weight * at(x + epsilon * way / way.norm())[:, i]
            assert torch.allclose(
                worst, weight * scores[:, i] - epsilon * abs(weight) * a[i].norm()
            )
            points = at(L2(epsilon).sample(x, 50).flatten(0, 1)).view(50, len(x), 5)
            assert bool((weight * points[:, :, i] >= worst - 1e-9).all())


@pytest.mark.parametrize("seed", [0, 1])
def test_4_7_so_a_margin_that_holds_in_the_ball_is_one_on_score_less_curvature(seed):
    model, x, explainer, target, a = setting(seed=seed)
    scores = explainer(model, x, target)
    margin = scores - 0.4 * a.norm(dim=1)
    points = explainer.at(model, x, target)(L2(0.4).sample(x, 200).flatten(0, 1))
    assert bool((points.view(200, len(x), 5) >= margin - 1e-9).all())
