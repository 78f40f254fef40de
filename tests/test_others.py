"""perf/others.py turns bounds of gradients into proofs of a top k, and sees those that fail."""

import torch
from torch import nn

import others
from r2et.rank import ranking


def test_intervals_prove_a_top_k_where_they_do_not_meet():
    top = torch.tensor([[True, False, False]]).expand(4, -1)
    low = torch.tensor([[2.0, -1, 0], [-3, -1, 0], [2, -2.5, 0], [-1, 0, 0]])
    high = torch.tensor([[3.0, 1, 1], [-2, 1, 1], [3, 1, 1], [3, 0.5, 0.5]])
    # A sign that may change leaves a score of 0 possible; a rival counts by its larger end.
    assert others.top_k_proved(low, high, top).tolist() == [True, True, False, False]


def test_pairs_are_gaps_of_absolute_scores(monkeypatch):
    monkeypatch.setattr(others, "K", 2)
    gradient = torch.tensor([[3.0, -1.0, -2.0, 0.5]])
    gaps = (others.pair_matrix(gradient, ranking(gradient.abs())) @ gradient[0])[0]
    assert sorted(gaps.tolist()) == [1.0, 1.5, 2.0, 2.5, 2.5, 3.0, 3.5, 4.0]


def test_bounds_that_are_too_narrow_are_seen():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).requires_grad_(False)
    x = torch.rand(3, 4)
    exact = others.gradients(model, x)
    wide = others.outside(model, x, "l2", 0.1, exact - 10, exact + 10)
    narrow = others.outside(model, x, "l2", 0.1, exact, exact)
    assert (wide["rows_float32"], wide["rows_float64"]) == (0, 0)
    assert narrow["rows_float32"] == narrow["rows_float64"] == 3
    assert narrow["excess_float64"] > 0


def test_radii_that_are_too_large_are_seen(monkeypatch):
    monkeypatch.setattr(others, "K", 2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).requires_grad_(False)
    x = torch.rand(5, 4)
    radius = torch.full((5,), 1e-6, dtype=torch.float64)
    assert others.broken(model, x, "l2", radius) == 0
    assert others.broken(model, x, "linf", 1e7 * radius) > 0
