import copy

import pytest
import torch
from torch import nn

from r2et.errors import InputError
from r2et.models import MLP


def test_the_papers_network_has_one_hidden_layer_of_32_leaky_units():
    model = MLP(28)
    kinds = [type(layer) for layer in model.layers]
    assert kinds == [nn.Linear, nn.LeakyReLU, nn.Linear]
    assert sum(p.numel() for p in model.parameters()) == 28 * 32 + 32 + 32 * 2 + 2
    assert model(torch.zeros(5, 28)).shape == (5, 2)


def test_without_hidden_layers_it_is_affine():
    model = MLP(3, (), classes=4).double()
    x = torch.randn(6, 3, dtype=torch.float64)
    (layer,) = model.layers
    assert torch.equal(model(x), x @ layer.weight.T + layer.bias)


def test_its_settings_build_it_again():
    model = MLP(4, (7, 3), classes=5, activation="tanh")
    again = MLP(**model.settings)
    assert repr(again) == repr(model)
    again.load_state_dict(model.state_dict())
    x = torch.randn(2, 4)
    assert torch.equal(again(x), model(x))
    assert copy.deepcopy(model).settings == model.settings


def test_rows_of_another_width_are_refused_by_name():
    with pytest.raises(InputError) as caught:
        MLP(5)(torch.zeros(2, 4))
    message = "MLP: x must be rows of shape (B, 5), got float32 tensor of shape (2, 4) on cpu."
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": 0}, "MLP: features must be a whole number, at least 1, got 0."),
        ({"features": True}, "MLP: features must be a whole number, at least 1, got True."),
        ({"features": 2.0}, "MLP: features must be a whole number, at least 1, got 2.0."),
        (
            {"features": 2, "classes": -1},
            "MLP: classes must be a whole number, at least 1, got -1.",
        ),
        ({"features": 2, "widths": 8}, "MLP: widths must be a list of whole numbers, got 8."),
        ({"features": 2, "widths": "88"}, "MLP: widths must be a list of whole numbers, got 88."),
        (
            {"features": 2, "widths": [4, 0]},
            "MLP: every width must be a whole number, at least 1, got 0.",
        ),
        (
            {"features": 10**30},
            f"MLP: features must be at most 2147483647, got {10**30}.",
        ),
        (
            {"features": 2, "activation": "step"},
            "MLP: activation must be one of elu, gelu, leaky_relu, relu, sigmoid, silu, softplus, "
            "tanh, got step.",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(InputError) as caught:
        MLP(**settings)
    assert str(caught.value) == message
