"""What torch.compile was given is what is certified and audited; nothing is compiled for it."""

import pytest
import torch
from torch import nn

from r2et.certify import IntervalCertifier
from r2et.explain import Gradient
from r2et.models.compiled import is_compiled, original_module

pytestmark = [
    pytest.mark.slow,  # torch imports its compiler, for which it takes seconds
    pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning"),  # and uses what it is
]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 2)).eval()


def nested():
    model = network()
    model[0] = torch.compile(model[0])
    return model


def in_place():
    model = network()
    model.compile()
    return model


def inner_in_place():
    model = nn.Sequential(network()).eval()
    model[0][2].compile()
    return model


@pytest.mark.parametrize("make", [lambda: torch.compile(network()), nested, in_place])
def test_the_original_is_certified(make):
    model, x = make(), torch.rand(3, 4)
    assert is_compiled(model)
    certify = IntervalCertifier()
    expected = certify(network(), Gradient(), x, k=2).radius
    assert (expected > 0).all()
    assert torch.equal(certify(model, Gradient(), x, k=2).radius, expected)
    assert is_compiled(model)  # as the caller has it


def test_originals_share_their_weights_and_have_their_names():
    model = torch.compile(network())
    bare = original_module(model)
    assert list(bare.state_dict()) == list(network().state_dict())
    assert all(a is b for a, b in zip(bare.parameters(), model.parameters(), strict=True))
    deep = inner_in_place()
    bare = original_module(deep)
    assert not is_compiled(bare)
    assert is_compiled(deep)
    assert bare[0][2].weight is deep[0][2].weight
    plain = network()
    assert original_module(plain) is plain
