"""Which of several candidates is kept, by hand."""

import pytest

from r2et.train.protocol import best_candidate, reaches


def candidates(*triples):
    return [{"auc": auc, "precision": p, "met": met} for auc, p, met in triples]


@pytest.mark.parametrize(
    ("given", "preferred", "choice"),
    [
        ([(0.8, 0.5, True), (0.7, 0.9, True), (0.9, 0.95, False)], None, (1, True)),
        ([(0.8, 0.5, False), (0.82, 0.1, False)], None, (1, False)),
        ([(0.8, 0.5, True), (0.7, 0.5, True)], None, (0, True)),  # a tie
        ([(0.8, 0.5, True), (0.7, 0.9, True)], [True, False], (0, True)),
        ([(0.8, 0.5, True), (0.7, 0.9, True)], [False, False], (1, True)),
        ([(None, 0.5, True)], None, (0, True)),
    ],
)
def test_accurate_enough_first_then_the_most_stable(given, preferred, choice):
    assert best_candidate(candidates(*given), preferred) == choice


def test_what_reaches_a_threshold():
    assert reaches(0.7, 0.7)
    assert not reaches(0.69, 0.7)
    assert reaches(None, 0.7)  # of a single class
    assert reaches(0.1, None)
