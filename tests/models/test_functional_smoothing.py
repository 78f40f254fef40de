"""Activations that are called as functions: found however they are called, or refused by name."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import relu as alias

from r2et.errors import InputError
from r2et.models import smooth

RHO = 3.0
X = torch.linspace(-4, 8, 49, dtype=torch.float64)[None]
SLOPE = torch.tensor([0.25], dtype=torch.float64)


class Calls(nn.Module):
    """A model that calls one function on its input."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x * 1)


class Tutorial(nn.Module):
    """The way most networks are written, with a branch that no tracer could follow."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 2, 3), nn.Linear(18, 2)
        self.unlisted = [nn.ReLU()]

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2) if float(x.sum()) > -1e9 else x
        return self.unlisted[0](self.fc(torch.flatten(x, 1)))


def soft(x, kink=0.0):
    return torch.logaddexp(RHO * (x - kink), torch.zeros_like(x)) / RHO


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (F.relu, soft(X)),
        (alias, soft(X)),
        (torch.relu, soft(X)),
        (lambda x: torch.relu(input=x), soft(X)),
        (lambda x: x.relu(), soft(X)),
        (lambda x: x.relu_(), soft(X)),
        (torch.relu_, soft(X)),
        (lambda x: F.relu(x, True), soft(X)),
        (lambda x: F.relu(x, inplace=True), soft(X)),
        (nn.ReLU(inplace=True).forward, soft(X)),
        (lambda x: x.clamp(min=0), soft(X)),
        (lambda x: x.clamp(0.0), soft(X)),
        (lambda x: x.clamp_(min=0), soft(X)),
        (lambda x: x.clamp_min(0), soft(X)),
        (lambda x: torch.clip(x, 0), soft(X)),
        (lambda x: torch.clamp(x, 0, 6), soft(X) - soft(X, 6)),
        (lambda x: x.clamp(0, 1), soft(X) - soft(X, 1)),
        (lambda x: x.clamp(min=torch.tensor(0.0)), soft(X)),
        (lambda x: x.clamp(torch.zeros(1), torch.tensor(6)), soft(X) - soft(X, 6)),
        (F.relu6, soft(X) - soft(X, 6)),
        (lambda x: F.leaky_relu(x, 0.1), 0.1 * X + 0.9 * soft(X)),
        (F.leaky_relu, 0.01 * X + 0.99 * soft(X)),
        (lambda x: F.leaky_relu_(x, 0.1), 0.1 * X + 0.9 * soft(X)),
        (lambda x: F.leaky_relu(x, 0.1, inplace=True), 0.1 * X + 0.9 * soft(X)),
        (lambda x: F.prelu(x, SLOPE), 0.25 * X + 0.75 * soft(X)),
        (lambda x: x.prelu(weight=SLOPE), 0.25 * X + 0.75 * soft(X)),
        (F.hardtanh, soft(X, -1) - soft(X, 1) - 1),
        (lambda x: F.hardtanh_(x, -2, 3), soft(X, -2) - soft(X, 3) - 2),
        (lambda x: F.threshold(x, 1.0, 1.0), soft(X, 1) + 1),
        (lambda x: F.threshold_(x, 1.0, 1.0), soft(X, 1) + 1),
        (F.hardsigmoid, (soft(X, -3) - soft(X, 3)) / 6),
        (F.hardswish, X * (soft(X, -3) - soft(X, 3)) / 6),
        (F.softshrink, soft(X, 0.5) - soft(-X, 0.5)),
        (lambda x: F.softshrink(x, 2.0), soft(X, 2) - soft(-X, 2)),
    ],
)
def test_it_is_found_however_it_is_called(function, expected):
    model = Calls(function)
    torch.testing.assert_close(smooth(model, RHO)(X), expected, rtol=0, atol=1e-12)
    assert not torch.allclose(model(X), expected, atol=1e-3)
    x = X[:, ::6].clone().requires_grad_()
    assert torch.autograd.gradgradcheck(smooth(model, RHO), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clamp(min=1e-3).sqrt(),  # a guard
        lambda x: x.clamp(max=2),
        lambda x: x.clamp(-1, 1),
        lambda x: x.clamp(min=torch.zeros(49)),
        lambda x: x.clamp(min=nn.Parameter(torch.tensor(0.0))),
        lambda x: x * torch.arange(-3, 46).clamp(min=0),  # an index
        lambda x: x * nn.Parameter(torch.linspace(-1, 1, 49).double()).clamp(min=0),  # a weight
        F.gelu,
        F.elu,
        torch.abs,
        lambda x: F.max_pool1d(x, 2),
    ],
)
def test_what_is_no_relu_is_left_alone(function):
    model = Calls(function)
    assert torch.equal(smooth(model, RHO)(X), model(X))


def test_an_in_place_call_still_changes_what_others_hold():
    def twice(x):
        return F.relu(x, inplace=True) + x

    torch.testing.assert_close(smooth(Calls(twice), RHO)(X), 2 * soft(X))


def test_an_ordinary_network_is_replaced_as_it_runs():
    torch.manual_seed(0)
    model, x = Tutorial(), torch.randn(5, 1, 8, 8)
    copied = smooth(model, RHO)
    expected = soft(copied.fc(F.max_pool2d(soft(copied.conv(x)), 2).flatten(1)))
    torch.testing.assert_close(copied(x), expected)
    assert isinstance(copied, Tutorial)
    assert list(copied.state_dict()) == list(model.state_dict())


def test_the_model_itself_keeps_its_kinks():
    model = Calls(F.relu)
    before = model(X)
    copied = smooth(model, RHO)
    copied(X)
    assert "forward" not in vars(model)
    assert torch.equal(model(X), before)
    with pytest.raises(RuntimeError):  # nor does a failed run leave anything behind
        smooth(Calls(lambda x: F.relu(x) @ x), RHO)(X)
    assert torch.equal(F.relu(X), before)


def test_copies_of_the_copy_stay_smooth():
    torch.manual_seed(0)
    copied, x = smooth(Tutorial(), RHO), torch.randn(2, 1, 8, 8)
    again = copy.deepcopy(copied)
    assert torch.equal(again(x), copied(x))
    with torch.no_grad():
        again.fc.bias += 1  # it must run on its own weights, not on those it was copied from
    assert not torch.equal(again(x), copied(x))
    read = pickle.loads(pickle.dumps(copied))
    assert torch.equal(read(x), copied(x))
    second = smooth(copied, 100.0)
    assert torch.equal(second(x), copied(x))


# torch warns about itself when torch.func is first used.
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_functional_transforms_see_the_smooth_function():
    second = torch.func.hessian(smooth(Calls(torch.relu), RHO))(torch.zeros(1, dtype=torch.float64))
    assert float(second.flatten()) == pytest.approx(RHO / 4)
    rows = torch.func.vmap(smooth(Calls(torch.relu), RHO))(X.T)
    torch.testing.assert_close(rows, soft(X.T))


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: F.rrelu(x), "rrelu, which draws its slopes at random (use leaky_relu)"),
        (lambda x: torch.hardshrink(x), "hardshrink, which jumps (use softshrink)"),
        (
            lambda x: torch.clamp(x, 0, out=torch.empty_like(x)),
            "clamp, with out=, which autograd cannot follow",
        ),
    ],
)
def test_what_cannot_be_smooth_is_refused_by_name(function, found):
    with pytest.raises(InputError) as caught:
        smooth(Calls(function), RHO)(X)
    start = "smooth: model must be one that can be made smooth, got "
    assert str(caught.value) == f"{start}{found}, in Calls.forward."


def test_a_threshold_that_jumps_is_refused():
    message = r"^smooth: model must be one whose Threshold has value = threshold"
    with pytest.raises(InputError, match=message):
        smooth(Calls(lambda x: F.threshold(x, 0.0, 1.0)), RHO)(X)
