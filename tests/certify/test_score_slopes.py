"""Norms of pairs of slopes: those of the slopes written out, whichever way they are had."""

import pytest
import torch

from nets import make, randn
from r2et.certify import IntervalCertifier
from r2et.certify.bounds.score_slopes import ScoreSlopes
from r2et.explain import Gradient
from r2et.models import MLP

F64 = torch.float64


def slopes(units, scores, norm, *, by_row=False, moved=False):
    source = randn(3, 6, units, dtype=F64)
    matrix = randn(*((3,) if by_row else ()), scores, units, seed=1, dtype=F64)
    beside = randn(3, 6, scores, seed=2, dtype=F64) if moved else None
    return ScoreSlopes(source, matrix, beside, norm)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(("units", "moved"), [(2, False), (2, True), (9, False)])
def test_norms_of_pairs_are_those_of_the_slopes_themselves(units, moved, by_row, norm):
    made = slopes(units, 5, norm, by_row=by_row, moved=moved)
    assert made.factored == (units == 2 and norm == "l2" and not moved)
    matrix = made.matrix if by_row else made.matrix.expand(3, -1, -1)
    written = torch.einsum("bnh,bch->bnc", made.source, matrix)
    written = written if made.moved is None else written + made.moved
    order = 2 if norm == "l2" else 1
    i = torch.tensor([[0, 3], [1, 4], [2, 2]])
    for sign, found in zip((1.0, -1.0), made.apart(i), strict=True):
        for row in range(3):
            for place, one in enumerate(i[row]):
                pair = written[row, :, one, None] - sign * written[row]
                expected = pair.norm(p=order, dim=0)
                torch.testing.assert_close(found[row, place], expected, rtol=1e-9, atol=1e-5)
                assert bool((found[row, place] >= expected).all())
    expected = written.norm(p=order, dim=1)
    torch.testing.assert_close(made.norms, expected)
    assert bool((made.norms >= expected).all())


def test_a_long_sum_that_cancels_is_not_lost():
    """Units that undo each other: the slope is small, what rounding takes is not."""
    source = randn(1, 50, 1, dtype=F64) * torch.tensor([1e4, 1e4])
    matrix = torch.tensor([[1.0, -1.0], [1.0, -1.0 + 1e-12], [0.5, 0.5]], dtype=F64)
    made = ScoreSlopes(source, matrix, None, "l2")
    assert made.factored
    exact = (source.double() @ matrix.T).norm(dim=1)
    assert bool((made.norms >= exact).all())


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_radii_do_not_hang_on_how_slopes_are_had(norm, monkeypatch):
    model, x = make(lambda: MLP(12, (6,), activation="softplus")), randn(6, 12)
    found = IntervalCertifier(norm=norm)(model, Gradient(), x, k=3).radius
    plain = ScoreSlopes.__init__

    def dense(self, *settings):
        plain(self, *settings)
        self.factored = False

    monkeypatch.setattr(ScoreSlopes, "__init__", dense)
    again = IntervalCertifier(norm=norm)(model, Gradient(), x, k=3).radius
    assert bool((found > 0).all())
    torch.testing.assert_close(found, again, rtol=1e-9, atol=0)
