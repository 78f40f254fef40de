"""Pairs that training looks at: the lowest of them, and a width with its derivatives."""

import pytest
import torch

from nets import make, randn
from r2et.certify import margins, training_bounds
from r2et.certify.operators.activation import soft_steps
from r2et.certify.training_pairs import Candidates, width_apart
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.penalty import CertifiedRanking

F64 = torch.float64


def every_pair(model, x, radius, k):
    """Bounds of all pairs of one hidden layer, by the formula of the page: (B, k (n - k))."""
    first, last = model.layers[0], model.layers[2]
    z, width = first(x), radius * first.weight.norm(dim=1)
    steps = [torch.where(end > 0, 1.0, 0.01).to(x) for end in (z - width, z + width)]
    sign = torch.where(model(x).argmax(1) == 1, 1.0, -1.0).to(x)[:, None]
    output = sign * (last.weight[1] - last.weight[0])
    u, spread = output * (steps[0] + steps[1]) / 2, output.abs() * (steps[1] - steps[0]) / 2
    scores = Gradient(reduce="signed")(model, x)
    order, found = scores.abs().argsort(1, descending=True), []
    for row in range(len(x)):
        for i in order[row, :k]:
            mine = scores[row, i].sign() * first.weight[:, i]
            for j in order[row, k:]:
                ways = [mine - t * first.weight[:, j] for t in (1.0, -1.0)]
                gaps = [float(w @ u[row] - w.abs() @ spread[row]) for w in ways]
                found.append((row, int(i), int(j), min(gaps)))
    return found


@pytest.mark.parametrize("pairs", [1, 4, 8, 30])
def test_bounds_are_those_of_their_pairs_and_the_lowest_is_among_them(pairs, monkeypatch):
    monkeypatch.setattr(training_bounds, "ALL_PAIRS", 0)
    model = make(lambda: MLP(7, (6,)), dtype=F64).requires_grad_(False)
    x, k = randn(15, 7, dtype=F64), 3
    low, _, chosen = margins(model, x, 0.1, k=k, pairs=pairs)
    expected = {(row, i, j): gap for row, i, j, gap in every_pair(model, x, 0.1, k)}
    assert low.shape[1] == min(pairs, k * 4)
    for row in range(len(x)):
        for place, (i, j) in enumerate(chosen[row].tolist()):
            assert float(low[row, place]) == pytest.approx(expected[row, i, j])
        if pairs >= 4:  # as many as there are others
            least = min(gap for (r, _, _), gap in expected.items() if r == row)
            assert float(low[row].min()) == pytest.approx(least)


@pytest.mark.parametrize("pairs", [1, 4, 8, 30])
def test_of_few_features_the_lowest_of_all_pairs_is_taken(pairs):
    """A hand has a pair with one of the rival's signs: its bound is not below that of the pair."""
    model = make(lambda: MLP(7, (6,)), dtype=F64).requires_grad_(False)
    x, k = randn(15, 7, dtype=F64), 3
    low, _, chosen = margins(model, x, 0.1, k=k, pairs=pairs)
    expected = {(row, i, j): gap for row, i, j, gap in every_pair(model, x, 0.1, k)}
    for row in range(len(x)):
        for place, (i, j) in enumerate(chosen[row].tolist()):
            assert float(low[row, place]) >= expected[row, i, j] - 1e-8
        least = min(gap for (r, _, _), gap in expected.items() if r == row)
        assert float(low[row].min()) == pytest.approx(least)


def test_each_rival_stands_beside_the_one_it_is_closest_to():
    own, rival = torch.tensor([[3.0, 2.0]]), torch.tensor([[1.0, -1.9]])
    mine = torch.tensor([[[1.0, 0.0], [0.0, 0.5]]])
    theirs = torch.tensor([[[0.9, 0.1], [0.0, -1.0]]])
    i, j = torch.tensor([[4, 7]]), torch.tensor([[2, 5]])
    candidates = Candidates(i, j, own, rival, mine, theirs)
    # Gaps: 3 - 1 - .2, 2 - 1 - 1.3 for j = 2; 3 - 1.9 - 2 and 2 - 1.9 - .5 for j = 5, signs turned.
    found = candidates.lowest(2, signed=False)
    assert [part.tolist() for part in found] == [[[7, 4]], [[2, 5]], [[1.0, -1.0]]]
    whole = candidates.lowest(9, signed=False)
    assert whole[0].tolist() == [[4, 4, 7, 7]]
    assert whole[1].tolist() == [[2, 5, 2, 5]]


def test_the_width_is_differentiated_as_its_formula():
    columns, spread = randn(5, 4, dtype=F64), randn(3, 4, seed=1, dtype=F64).abs()
    i, j = torch.tensor([[0, 1], [2, 2], [4, 0]]), torch.tensor([[3, 2], [0, 1], [1, 3]])
    own, sign = torch.tensor([[1.0, -1.0]] * 3).to(F64), torch.tensor([[-1.0, -1.0]] * 3).to(F64)
    expected = (own[..., None] * columns[i] - sign[..., None] * columns[j]).abs()
    expected = torch.einsum("bph,bh->bp", expected, spread)
    torch.testing.assert_close(width_apart(columns, spread, i, j, own, sign), expected)
    inputs = columns.requires_grad_(), spread.requires_grad_()
    assert torch.autograd.gradcheck(lambda c, s: width_apart(c, s, i, j, own, sign), inputs)


@pytest.mark.parametrize(("left", "right"), [(0.1, 1.0), (1.0, -0.5)])
def test_steps_have_the_slope_of_a_sigmoid(left, right):
    low = randn(9, dtype=F64).requires_grad_()
    high = (low.detach() + randn(9, seed=1, dtype=F64).abs()).requires_grad_()
    middle, half = soft_steps(low, high, left, right, 0.1)
    ends = [torch.where(z > 0, right, left) for z in (low, high)]
    torch.testing.assert_close(middle, ((ends[0] + ends[1]) / 2).to(F64))
    torch.testing.assert_close(half, ((ends[0] - ends[1]).abs() / 2).to(F64))
    found = torch.autograd.grad((2 * middle + 3 * half).sum(), (low, high))
    step = [left + (right - left) * torch.sigmoid(z / 0.1) for z in (low, high)]
    wide = (step[1] - step[0]) * (1.0 if right > left else -1.0)
    expected = torch.autograd.grad((step[0] + step[1] + 1.5 * wide).sum(), (low, high))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_logits_that_are_known_change_nothing(classes):
    model = make(lambda: MLP(6, (7,), classes=classes), dtype=F64)
    x = randn(9, 6, dtype=F64).requires_grad_()
    penalty = CertifiedRanking(k=2, radius=0.1)
    one, two = penalty(model, x.detach()), penalty(model, x, out=model(x))
    torch.testing.assert_close(two, one)
    weights = list(model.parameters())
    pairs = (torch.autograd.grad(v.sum(), weights, materialize_grads=True) for v in (one, two))
    for a, b in zip(*pairs, strict=True):
        torch.testing.assert_close(a, b)
