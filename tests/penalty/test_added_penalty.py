"""A penalty is one file: a subclass with one method, defined here and not in the package."""

from dataclasses import dataclass

import pytest
import torch
from torch.nn.functional import cross_entropy

from contracts import keeps_penalty_promises
from nets import ResidualNet, Siamese, mlp
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.penalty import Penalty
from r2et.train import fit, recipe
from training_data import small


@dataclass(frozen=True, kw_only=True)
class ScoreEnergy(Penalty):
    """Sum of the squared scores of a row."""

    def rows(self, batch):
        return batch.scores.square().sum(1)


MODELS = {
    "mlp": (mlp, (6,)),
    "norm and dropout": (lambda: ResidualNet(1, torch.nn.ReLU), (1, 4, 4)),
    "siamese": (lambda: Siamese(6), (2, 6)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_it_keeps_the_promises_of_every_penalty(kind):
    torch.manual_seed(0)
    build, shape = MODELS[kind]
    keeps_penalty_promises(ScoreEnergy(), build().train(), torch.randn(4, *shape))


def test_of_a_linear_model_it_is_the_squared_norm_of_the_weights():
    torch.manual_seed(0)
    model, x = MLP(6, ()).double(), torch.randn(5, 6).double()
    weight = model.layers[0].weight
    expected = (weight[1] - weight[0]).square().sum().expand(5)
    torch.testing.assert_close(ScoreEnergy(explainer=Gradient())(model, x), expected)


def test_it_says_its_own_name_where_input_is_wrong():
    with pytest.raises(InputError, match=r"^ScoreEnergy: x must be finite"):
        ScoreEnergy()(MLP(6), torch.full((2, 6), torch.nan))


def test_a_loop_of_ones_own_lowers_it():
    torch.manual_seed(0)
    data, penalty = small(), ScoreEnergy(explainer=Gradient())
    x, y = data.train
    energies = {}
    for weight in (0.0, 0.1):
        torch.manual_seed(1)
        model = MLP(8)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(40):
            optimizer.zero_grad()
            (cross_entropy(model(x), y) + weight * penalty(model, x).mean()).backward()
            optimizer.step()
        energies[weight] = float(penalty(model, x).mean().detach())
    assert energies[0.1] < 0.5 * energies[0.0]


def test_fit_takes_it_in_a_recipe():
    data, penalty = small(), ScoreEnergy(explainer=Gradient())
    energies = {}
    for weight in (0.0, 0.1):
        chosen = recipe("est-h", penalty=penalty, weight=weight, every=1, batch=32)
        trained = fit(None, data, chosen, epochs=10, seed=0, progress=False).model
        energies[weight] = float(penalty(trained, data.test.x).mean().detach())
    assert energies[0.1] < 0.5 * energies[0.0]
