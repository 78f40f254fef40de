"""An attack is one file: a subclass that proposes points, defined here and not in the package."""

from dataclasses import dataclass

import pytest
import torch

from contracts import keeps_attack_promises
from nets import GraphNet, cnn, make, mlp, randn
from r2et.attack import Attack, Proposal
from r2et.explain import Gradient, GradientTimesInput
from r2et.models import predict
from r2et.rank import precision_at_k
from r2et.region import L2, Linf


@dataclass(frozen=True, kw_only=True)
class OneFeatureAttack(Attack):
    """Moves one feature at a time, up and down, as far as the region goes."""

    @property
    def length(self):
        return 2

    def propose(self, problem, judge, generator):
        del generator
        for feature in range(problem.x[0].numel()):
            for sign in (-1, 1):
                rows = judge.open_rows()
                part = problem.rows(rows)
                x = part.x.clone()
                x.flatten(1)[:, feature] += sign * part.ball.radius
                yield Proposal(part.region.project(x, part.x), rows)


@dataclass(frozen=True, kw_only=True)
class Cheat(Attack):
    """Proposes points far outside the region, and claims that their ranking is turned round."""

    def propose(self, problem, judge, generator):
        del generator
        rows = judge.open_rows()
        yield Proposal(problem.x[rows] + 100, rows, -problem.scores[rows])


MODELS = {
    "mlp": (mlp, (6, 6), Gradient(), 2),
    "cnn": (cnn, (3, 2, 8, 8), Gradient(reduce="abs_sum"), 10),
    "graph": (lambda: GraphNet(4), (4, 4, 4), GradientTimesInput(reduce="upper"), 2),
}


@pytest.mark.parametrize("kind", [OneFeatureAttack, Cheat])
@pytest.mark.parametrize("name", MODELS)
def test_it_keeps_the_promises_of_every_attack(kind, name):
    build, shape, explainer, k = MODELS[name]
    x = randn(*shape).clamp(-2.5, 2.5)
    attack = kind(L2(0.8, bounds=(-3, 3), frozen=[1, 4]))
    keeps_attack_promises(attack, make(build).train(), explainer, x, k)


def test_it_keeps_the_worst_of_what_it_proposed():
    """Every point by hand, each in a call of its own."""
    model, x, k, radius = make(mlp), randn(40, 6), 2, 1.5
    explainer, label = Gradient(), predict(model, x)
    worst = torch.ones(len(x))
    for feature in range(6):
        for sign in (-1, 1):
            there = x.clone()
            there[:, feature] += sign * radius
            kept = predict(model, there) == label
            precision = precision_at_k(explainer(model, x), explainer(model, there, label), k)
            worst = torch.where(kept, torch.minimum(worst, precision), worst)
    result = OneFeatureAttack(Linf(radius))(model, explainer, x, k=k)
    assert (worst < 1).any()
    torch.testing.assert_close(result.precision, worst)


def test_what_a_cheat_claims_counts_for_nothing():
    model, x = make(mlp), randn(20, 6)
    region = L2(1e-6)  # too small for anything to change
    result = Cheat(region)(model, Gradient(), x, k=2)
    assert region.contains(result.x_adv, x).all()
    assert (result.precision == 1).all()
