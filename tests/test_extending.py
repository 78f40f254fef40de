"""Things added from outside the package, as CONTRIBUTING.md says: one class or function each.

A data set is added in tests/own_dataset.py, a measure of the audit in
tests/audit/test_new_measure.py.
"""

from dataclasses import dataclass

import torch

from nets import make, randn
from r2et.attack import RandomSearch
from r2et.attack.base import Attack
from r2et.attack.judge import Proposal
from r2et.explain import Explainer, Gradient
from r2et.models import MLP
from r2et.penalty.base import Penalty
from r2et.rank import precision_at_k
from r2et.region import L2
from r2et.train import RECIPES, fit
from r2et.train.recipe import Recipe
from training_data import small


@dataclass(frozen=True, kw_only=True)
class Axes(Attack):
    """One step out along each axis, both ways."""

    def propose(self, problem, judge, generator):  # noqa: ARG002
        x = problem.x
        for axis in torch.eye(x[0].numel()).view(-1, *x.shape[1:]):
            for way in (1, -1):
                rows = judge.open_rows()
                yield Proposal(x[rows] + way * self.region.radius * axis, rows)


def test_an_attack_only_proposes():
    model, x = make(lambda: MLP(5, (12,))), randn(20, 5)
    result = Axes(L2(0.7))(model, Gradient(), x, k=2)
    assert bool((result.precision < 1).any())
    assert bool((result.distance <= 0.7 + 1e-6).all())
    again = precision_at_k(Gradient()(model, x), Gradient()(model, result.x_adv), 2)
    torch.testing.assert_close(again, result.precision)


@dataclass(frozen=True, kw_only=True)
class Occlusion(Explainer):
    """What the target's logit loses when a feature is set to 0."""

    def attribute(self, model, x, target, *, create_graph):  # noqa: ARG002
        out = model(x)
        target = out.argmax(1) if target is None else target
        without = [model(x * (torch.arange(x.shape[1]) != i)) for i in range(x.shape[1])]
        return torch.stack([(out - o).gather(1, target[:, None])[:, 0] for o in without], 1)


def test_an_explainer_only_attributes():
    model, x = make(lambda: MLP(5, (), classes=2)), randn(10, 5)
    target = model(x).argmax(1)
    weight = model.layers[0].weight.detach()
    torch.testing.assert_close(Occlusion()(model, x), (weight[target] * x).abs())
    assert RandomSearch(L2(2.0), points=50)(model, Occlusion(), x, k=2).precision.min() < 1


@dataclass(frozen=True, kw_only=True)
class SmallScores(Penalty):
    """The sum of scores."""

    def rows(self, batch):
        return batch.scores.sum(1)


def test_a_penalty_and_a_recipe_train(monkeypatch):
    for name, weight in (("small-scores", 1.0), ("no-weight", 0.0)):
        monkeypatch.setitem(RECIPES, name, Recipe(name, SmallScores(), weight))
    data = small()
    trained = {
        name: fit(
            make(lambda: MLP(8, (8,))), data, name, k=2, epochs=2, seed=0, progress=False
        ).model
        for name in ("vanilla", "no-weight", "small-scores")
    }
    sums = {name: Gradient()(model, data.test.x).sum() for name, model in trained.items()}
    assert sums["small-scores"] < 0.9 * sums["vanilla"]
    plain = trained["vanilla"].state_dict()
    for name, value in trained["no-weight"].state_dict().items():
        assert torch.equal(value, plain[name])
