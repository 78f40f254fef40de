"""An explanation and a recipe, added from outside the package.

CONTRIBUTING.md names the tests that add all other kinds of things.
"""

from dataclasses import dataclass

import torch

from nets import make, randn
from r2et.attack import RandomSearch
from r2et.explain import Explainer
from r2et.models import MLP
from r2et.penalty import R2ET
from r2et.region import L2
from r2et.train import RECIPES, fit
from r2et.train.recipe import Recipe
from training_data import small


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


def test_a_recipe_is_settings_under_a_name(monkeypatch):
    for name, weight in (("gaps-alone", 1.0), ("no-weight", 0.0)):
        monkeypatch.setitem(RECIPES, name, Recipe(name, R2ET(l2=0.0), weight))
    data, trained = small(), {}
    for name in ("vanilla", "no-weight", "gaps-alone"):
        model = make(lambda: MLP(8, (8,)))
        trained[name] = fit(model, data, name, k=2, epochs=2, seed=0, progress=False).model
    weights = {name: model.state_dict() for name, model in trained.items()}
    for name, value in weights["vanilla"].items():
        assert torch.equal(value, weights["no-weight"][name])
    assert not torch.equal(trained["vanilla"](data.test.x), trained["gaps-alone"](data.test.x))
