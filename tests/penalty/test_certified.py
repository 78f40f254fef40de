"""The hinge on proved gaps: a ranking given to it, and what keeps rows' sets apart."""

import math
from itertools import combinations

import pytest
import torch

from nets import make, randn
from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.penalty import CertifiedRanking
from r2et.penalty.certified import rows_alike
from r2et.rank import ranking

N, K = 6, 2


def linear(weight):
    """Log-odds w . x: the gaps |w_i| - |w_j| are those of any ball."""
    model = MLP(len(weight), (), classes=1).double()
    with torch.no_grad():
        model.layers[0].weight.copy_(torch.tensor([weight], dtype=torch.float64))
    return model


@pytest.mark.parametrize("top", list(combinations(range(4), 2)))
def test_the_gaps_of_a_given_ranking_are_what_the_hinge_sees(top):
    weight = [3.0, -2.0, 1.0, 0.5]
    rest = [f for f in range(4) if f not in top]
    order = torch.tensor([[*top, *rest]])
    x = torch.randn(1, 4, dtype=torch.float64)
    found = CertifiedRanking(k=2, radius=5.0, pairs=1, margin=0.1)(linear(weight), x, order=order)
    low = min(abs(weight[i]) for i in top) - max(abs(weight[j]) for j in rest)
    mean = sum(map(abs, weight)) / 4
    assert found.tolist() == pytest.approx([max(0.0, 0.1 - low / mean)])


@pytest.mark.parametrize("widths", [(), (8,), (8, 5)])
def test_the_models_own_ranking_changes_nothing(widths):
    torch.manual_seed(0)
    model, x = MLP(N, widths).double(), torch.randn(20, N, dtype=torch.float64)
    penalty = CertifiedRanking(k=K, radius=0.2)
    own = ranking(Gradient()(model, x))
    torch.testing.assert_close(penalty(model, x, order=own), penalty(model, x), rtol=0, atol=0)


def test_another_models_ranking_is_learned_and_proved():
    torch.manual_seed(0)
    x = torch.randn(60, N, dtype=torch.float64)
    order = torch.arange(N).flip(0).repeat(60, 1)
    model = MLP(N, (8,)).double()
    penalty = CertifiedRanking(k=K, radius=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        penalty(model, x, order=order).mean().backward()
        optimizer.step()
    radius = IntervalCertifier(limit=0.2)(model.eval(), Gradient(), x, k=K).radius
    kept = ranking(Gradient()(model, x))[:, :K].sort(1).values == torch.tensor([N - 2, N - 1])
    assert float((kept.all(1) & (radius >= 0.1)).double().mean()) > 0.95


def test_a_ranking_that_cannot_be_one_is_refused():
    model, x = MLP(N), torch.zeros(3, N)
    penalty = CertifiedRanking(k=K)
    with pytest.raises(InputError, match=r"^CertifiedRanking: order must be of the shape of the "):
        penalty(model, x, order=torch.zeros(3, N - 1).long())
    with pytest.raises(InputError, match=r"order must be of features 0\.\.5, got 6\.$"):
        penalty(model, x, order=torch.arange(1, N + 1).repeat(3, 1))
    with pytest.raises(InputError, match=r"individuality must be 0 or a positive number, got -1"):
        CertifiedRanking(individuality=-1)


# Far from the border, so that the soft sets are sets.
FIRST, OTHER = [9.0, 9.0, 0.0, 0.0], [0.0, 9.0, 0.0, 9.0]


def test_far_rows_of_the_same_set_are_counted():
    scores = torch.tensor([FIRST, FIRST, OTHER, FIRST, OTHER], dtype=torch.float64)
    x = 10 * torch.arange(5, dtype=torch.float64)[:, None]
    logs = [math.log(count) for count in (3, 3, 2, 3, 2)]
    # Sets that differ by one feature are 2 apart.
    other = math.exp(-2 / 0.5)
    exact = [math.log(math.exp(a) + (5 - math.exp(a)) * other) for a in logs]
    assert rows_alike(scores, x, 2, 1.0).tolist() == pytest.approx(exact)
    # Rows 0 and 1, 1 and 2, ... are neighbours now, and no longer counted.
    counts = [(2, 2), (2, 1), (2, 1), (3, 0), (2, 2)]
    near = [math.log(same + apart * other) for same, apart in counts]
    assert rows_alike(scores, x, 2, 10.0).tolist() == pytest.approx(near)
    assert rows_alike(scores, x, 2, 1e9).tolist() == [0.0] * 5


@pytest.mark.parametrize(("norm", "near"), [("l2", 1.4), ("linf", 0.9)])
def test_near_is_meant_in_the_norm_of_the_ball(norm, near):
    scores = torch.tensor([FIRST, FIRST], dtype=torch.float64)
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    assert rows_alike(scores, x, 2, near, norm).tolist() == pytest.approx([math.log(2)] * 2)
    assert rows_alike(scores, x, 2, near + 0.2, norm).tolist() == [0.0, 0.0]


def test_alike_is_differentiable_and_does_not_see_the_order_of_features():
    torch.manual_seed(0)
    scores, x = torch.rand(7, N).double(), torch.rand(7, 3).double()
    shuffled = torch.randperm(N)
    torch.testing.assert_close(
        rows_alike(scores[:, shuffled], x, K, 0.1), rows_alike(scores, x, K, 0.1)
    )
    with_border = rows_alike(scores, x, K, 0.1)
    assert bool((with_border >= 0).all())
    assert bool((with_border <= math.log(7)).all())
    # The border is a constant of the derivative: compare with one that is held still.
    point = scores.clone().requires_grad_()
    (slope,) = torch.autograd.grad(rows_alike(point, x, K, 0.1).sum(), point)
    border = scores.topk(K + 1, 1).values[:, K - 1 :].mean(1, keepdim=True)

    def held(s):
        inside = torch.sigmoid((s - border) / 0.1)
        apart = torch.cdist(inside, inside).square()
        far = torch.cdist(x, x) > 0.1
        return torch.log(1 + (torch.exp(-apart / 0.5) * far).sum(1)).sum()

    step = 1e-6
    way = torch.randn_like(scores)
    numeric = (held(scores + step * way) - held(scores - step * way)) / (2 * step)
    assert float((slope * way).sum()) == pytest.approx(float(numeric), rel=1e-6)


def test_individuality_adds_the_count_of_a_linear_model():
    model = linear([3.0, -2.0, 1.0, 0.5])
    x = 10 * torch.arange(5, dtype=torch.float64)[:, None].expand(5, 4)
    plain, told = (CertifiedRanking(k=2, radius=1.0, individuality=f) for f in (0.0, 0.3))
    expected = plain(model, x) + 0.3 * math.log(5)
    torch.testing.assert_close(told(model, x), expected)


def test_individuality_makes_sets_differ_that_are_proved_all_the_same():
    """Two clusters, far apart, and labels that say nothing: the hinge alone proves one set."""
    torch.manual_seed(0)
    x = torch.cat([torch.rand(40, N) * 0.1, 1 - torch.rand(40, N) * 0.1]).double()
    y = torch.cat([torch.zeros(40), torch.ones(40)]).long()
    found = []
    for individuality in (0.0, 0.1):
        torch.manual_seed(1)
        model = MLP(N, (16,)).double()
        penalty = CertifiedRanking(k=K, radius=0.1, individuality=individuality)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(300):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            (loss + 3 * penalty(model, x).mean()).backward()
            optimizer.step()
        radius = IntervalCertifier(limit=0.2)(model.eval(), Gradient(), x, k=K).radius
        assert float((radius >= 0.1).double().mean()) > 0.95
        top = ranking(Gradient()(model, x))[:, :K].sort(1).values
        found.append(len(torch.unique(top, dim=0)))
    assert found[0] < found[1]


def test_proved_rows_whose_balls_meet_have_one_set():
    """What bounds individuality from above, whatever the training."""
    torch.manual_seed(0)
    model, x = MLP(N, (8,)).double().eval(), torch.rand(300, N, dtype=torch.float64)
    radius = IntervalCertifier()(model, Gradient(), x, k=K).radius
    meet = torch.cdist(x, x) < radius[:, None] + radius
    top = ranking(Gradient()(model, x))[:, :K].sort(1).values
    same = (top[:, None] == top).all(2)
    assert int((meet & ~torch.eye(300, dtype=torch.bool)).sum()) > 100
    assert bool(same[meet].all())
    assert not bool(same.all())


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_unit_that_sees_nothing_leaves_gradients_finite(norm):
    model = make(lambda: MLP(5, (6,)))
    with torch.no_grad():
        model.layers[0].weight[2] = 0.0
    penalty = CertifiedRanking(k=2, radius=0.3, norm=norm)(model, randn(8, 5))
    assert float(penalty.detach().sum()) > 0
    (slope,) = torch.autograd.grad(penalty.sum(), model.layers[0].weight)
    assert bool(slope.isfinite().all())
    assert bool((slope != 0).any())
