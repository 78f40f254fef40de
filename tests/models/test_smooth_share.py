"""Smooth copies that share the model's weights, and copies of copies."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from r2et.models import MLP, smooth


def test_weights_are_copied_or_shared():
    model = MLP(3)
    apart, shared = smooth(model, 2.0), smooth(model, 2.0, share=True)
    for p, q, r in zip(model.parameters(), apart.parameters(), shared.parameters(), strict=True):
        assert q is not p
        assert r is p
    x = torch.randn(4, 3)
    before = apart(x), shared(x)
    with torch.no_grad():
        model.layers[0].weight += 1
    assert torch.equal(apart(x), before[0])
    assert not torch.equal(shared(x), before[1])
    norm = nn.Sequential(nn.BatchNorm1d(3), nn.ReLU())
    assert smooth(norm, 1.0, share=True)[0].running_mean is norm[0].running_mean


def trained_norm():
    torch.manual_seed(0)
    layers = nn.Linear(3, 8), nn.BatchNorm1d(8), nn.PReLU(), nn.Linear(8, 4), nn.ReLU()
    return nn.Sequential(*layers)


def lstm():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.act = nn.LSTM(3, 4, batch_first=True), nn.ReLU()

        def forward(self, x):
            return self.act(self.rnn(x[:, None])[0][:, -1])

    torch.manual_seed(0)
    return Last()


def moved(model):
    return model.to(torch.float64).to(torch.float32)


def doubled(model):
    return model.double()


def loaded(model):
    torch.manual_seed(1)
    other = {k: torch.rand_like(v.float()).to(v.dtype) for k, v in model.state_dict().items()}
    model.load_state_dict(other, assign=True)
    return model


@pytest.mark.parametrize("change", [moved, doubled, loaded])
@pytest.mark.parametrize("make", [trained_norm, lstm])
def test_a_shared_copy_follows_whatever_becomes_of_the_model(make, change):
    model = make()
    shared = smooth(model, 2.0, share=True)
    model = change(model)
    x = torch.randn(16, 3).to(next(model.parameters()).dtype)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    model.eval()
    shared.eval()
    torch.testing.assert_close(shared(x), smooth(model, 2.0)(x), rtol=0, atol=0)
    state = model.state_dict()
    assert all(v.data_ptr() == state[k].data_ptr() for k, v in shared.state_dict().items())


def test_a_copy_of_a_shared_copy_stands_alone():
    model = trained_norm().eval()
    alone = copy.deepcopy(smooth(model, 2.0, share=True))
    x = torch.randn(4, 3)
    before = alone(x)
    with torch.no_grad():
        for p in model.parameters():
            p += 1
    assert torch.equal(alone(x), before)


def test_prelu_keeps_its_weight_and_its_name():
    model = nn.Sequential(nn.Linear(2, 3), nn.PReLU(3))
    copied = smooth(model, 2.0, share=True)
    assert copied[1].weight is model[1].weight
    assert list(copied.state_dict()) == list(model.state_dict())


def test_a_replica_runs_on_its_own_values():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = 0.0

        def forward(self, x):
            return F.relu(x + self.shift)

    x = torch.tensor([[-3.0, 0.0, 2.0]])
    for copied in (smooth(Net(), 2.0), smooth(smooth(Net(), 2.0), 50.0)):
        replica = copied._replicate_for_data_parallel()
        replica.shift = 1.0
        torch.testing.assert_close(replica(x), F.softplus(x + 1, 2.0))
        torch.testing.assert_close(copied(x), F.softplus(x, 2.0))
