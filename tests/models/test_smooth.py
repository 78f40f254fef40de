import copy
import io
import math
import warnings
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from r2et.errors import InputError
from r2et.models import MLP, ResNet18, SiameseCNN, SiameseGCN, smooth
from r2et.models.functional_smoothing import FUNCTIONS, Softened


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def network(name):
    torch.manual_seed(0)
    made = {
        "mlp": lambda: MLP(10),
        "deep": lambda: MLP(10, (32, 32, 32), activation="relu"),
        "cnn": lambda: SiameseCNN(),
        "resnet": lambda: ResNet18(width=8),
        "gcn": lambda: SiameseGCN(12, (32, 16)),
    }[name]()
    shape = {"cnn": (32, 2, 28, 28), "resnet": (8, 3, 32, 32), "gcn": (64, 2, 12, 12)}
    x = torch.randn(shape.get(name, (256, 10)), dtype=torch.float64, generator=seeded(1))
    return made.double().eval(), x


NETWORKS = ["mlp", "deep", "cnn", "resnet", "gcn"]


# --- convergence


@pytest.mark.parametrize("name", NETWORKS)
def test_the_copy_goes_to_the_model_as_rho_grows(name):
    """Measured order. At a kink it is 1; on a batch, where few units are near one, up to 2."""
    model, x = network(name)
    rhos = [2.0**p for p in range(8, 13)]
    with torch.no_grad():
        clean = model(x)
        gaps = [(smooth(model, rho)(x) - clean).abs() for rho in rhos]

    def order(errors):
        steps = [math.log(b / a) / math.log(2) for a, b in pairwise(errors)]
        return -sum(steps) / len(steps)

    assert 1.2 < order([float(gap.mean()) for gap in gaps]) < 2.4
    assert order([float(gap.max()) for gap in gaps]) > 0.9
    assert float(gaps[-1].max()) < 1e-3


def test_at_a_kink_the_order_is_exactly_1():
    model = MLP(4, (6,), activation="relu").double()
    nn.init.zeros_(model.layers[0].bias)
    x = torch.zeros(1, 4, dtype=torch.float64)
    for rho in (1.0, 10.0, 1000.0):
        expected = model.layers[2].weight.sum(1) * math.log(2) / rho
        torch.testing.assert_close((smooth(model, rho)(x) - model(x))[0], expected)


def test_with_one_hidden_layer_the_gap_keeps_to_its_bound():
    model, x = network("mlp")
    bound = 0.99 * model.layers[2].weight.abs().sum(1) * math.log(2)
    for rho in (1.0, 10.0, 100.0):
        gap = (smooth(model, rho)(x) - model(x)).abs().amax(0)
        assert bool((gap <= bound / rho).all())


# --- twice differentiable


@pytest.mark.parametrize("name", NETWORKS)
def test_the_copy_is_twice_differentiable(name):
    model, x = network(name)
    x = x[:1].clone()
    if name == "resnet":
        model, x = ResNet18(width=2).double().eval(), x[:, :, :8, :8].clone()
    x.requires_grad_()
    assert torch.autograd.gradgradcheck(smooth(model, 3.0), x, fast_mode=True)


def test_the_copy_has_the_curvature_that_the_model_lacks():
    model, x = network("mlp")

    def curvature(f):
        return torch.autograd.functional.hessian(lambda v: f(v[None])[0, 1], x[0])

    assert torch.equal(curvature(model), torch.zeros(10, 10, dtype=torch.float64))
    first, last = model.layers[0], model.layers[2].weight[1]
    u = torch.sigmoid(5.0 * first(x[0]))
    second = 0.99 * 5.0 * u * (1 - u) * last  # of each hidden unit, times its outgoing weight
    expected = first.weight.T @ (second[:, None] * first.weight)
    torch.testing.assert_close(curvature(smooth(model, 5.0)), expected.detach())


# --- what is replaced


@pytest.mark.parametrize("name", NETWORKS)
def test_our_networks_call_no_activation_as_a_function(name, monkeypatch):
    """Which is why their copies need no replacement at run time."""
    model, x = network(name)
    copied = smooth(model, 2.0)
    assert "forward" not in vars(copied)
    called = []
    for key, (order, make) in FUNCTIONS.items():
        spy = (order, lambda given, key=key, make=make: called.append(key) or make(given))
        monkeypatch.setitem(FUNCTIONS, key, spy)
    with torch.no_grad(), Softened(2.0):
        copied(x[:2])
        assert called == []
        model(x[:2])
    assert set(called) == {"leaky_relu" if name == "mlp" else "relu"}


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.BatchNorm1d(3), nn.Dropout())
    model[2].eval()
    text, modes = repr(model), [m.training for m in model.modules()]
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    copied = smooth(model, 2.0)
    assert [m.training for m in copied.modules()] == modes
    copied(torch.randn(4, 3)).sum().backward()
    assert repr(model) == text
    assert [m.training for m in model.modules()] == modes
    assert all(torch.equal(v, weights[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_a_copy_has_the_models_class_names_and_state():
    model, _ = network("cnn")
    copied = smooth(model, 2.0)
    assert type(copied) is SiameseCNN
    assert list(copied.state_dict()) == list(model.state_dict())
    assert [n for n, _ in copied.named_modules()] == [n for n, _ in model.named_modules()]
    pair = torch.rand(2, 2, 28, 28, dtype=torch.float64)
    torch.testing.assert_close(copied.predictions(pair)[1], copied.single(pair[:, 0]))


def test_a_replaced_activation_is_in_the_mode_of_the_old_one():
    model = nn.Sequential(nn.ReLU(), nn.LeakyReLU(), nn.PReLU(), nn.Linear(2, 2), nn.ReLU6())
    for mode in ([True] * 6, [False] * 6, [True, False, True, False, True, False]):
        for module, training in zip(model.modules(), mode, strict=True):
            module.training = training
        assert [m.training for m in smooth(model, 2.0).modules()] == mode
    graph = SiameseGCN(5, (4, 3)).eval()
    assert not any(m.training for m in smooth(graph, 2.0).modules())


def test_an_activation_in_two_places_stays_one():
    act = nn.ReLU()
    model = nn.Sequential(nn.Linear(2, 2), act, nn.Sequential(nn.Linear(2, 2), act), act)
    copied = smooth(model, 2.0)
    assert copied[1] is copied[3] is copied[2][1]
    assert type(copied[1]) is nn.Softplus
    x = torch.randn(3, 2)
    h = F.softplus(copied[0](x), 2.0)
    h = F.softplus(F.softplus(copied[2][0](h), 2.0), 2.0)
    torch.testing.assert_close(copied(x), h)


def test_a_bare_activation_and_its_hooks_are_replaced():
    seen = []
    act = nn.LeakyReLU(0.5)
    act.register_forward_hook(lambda *_: seen.append(1))
    x = torch.tensor([[0.0]])
    assert float(smooth(act, 1.0)(x)) == pytest.approx(0.5 * math.log(2))
    assert seen == [1]


def test_a_subclass_is_replaced_unless_it_computes_something_else():
    class Named(nn.ReLU):
        pass

    class Doubled(nn.ReLU):
        def forward(self, x):
            return 2 * super().forward(x)

    x = torch.tensor([[0.0]])
    assert float(smooth(nn.Sequential(Named()), 1.0)(x)) == pytest.approx(math.log(2))
    assert float(smooth(nn.Sequential(Doubled()), 1.0)(x)) == pytest.approx(2 * math.log(2))


def test_an_in_place_relu_still_changes_what_others_hold():
    class Net(nn.Module):
        def __init__(self, inplace):
            super().__init__()
            self.act = nn.ReLU(inplace=inplace)

        def forward(self, x):
            h = x * 1
            return self.act(h) + h

    x = torch.tensor([[-1.0, 0.0, 2.0]], dtype=torch.float64, requires_grad=True)
    soft = F.softplus(x * 3.0) / 3.0
    torch.testing.assert_close(smooth(Net(True), 3.0)(x), 2 * soft)
    torch.testing.assert_close(smooth(Net(False), 3.0)(x), soft + x)
    assert torch.autograd.gradgradcheck(smooth(Net(True), 3.0), x)


def test_max_pooling_and_smooth_activations_stay():
    model = nn.Sequential(nn.MaxPool1d(2), nn.GELU(), nn.ELU(), nn.Tanh())
    assert repr(smooth(model, 2.0)) == repr(model)


def test_a_second_smoothing_keeps_the_first_rho():
    once = smooth(MLP(3), 2.0)
    assert repr(smooth(once, 50.0)) == repr(once)


def test_activations_kept_from_the_last_forward_do_not_stop_the_copy():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.act = nn.Linear(2, 2), nn.ReLU()

        def forward(self, x):
            self.kept = self.act(self.linear(x))
            return self.kept

    model = Net()
    model(torch.randn(1, 2))
    assert smooth(model, 2.0)(torch.randn(1, 2)).shape == (1, 2)
    assert model.kept.grad_fn is not None


# --- transformers, whose ReLU is called inside torch


@pytest.mark.parametrize("activation", [F.relu, nn.ReLU(), "relu"])
@pytest.mark.parametrize("graph", [True, False])
def test_an_encoder_is_smooth_on_its_fast_path_too(activation, graph):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double().eval()
    by_hand = copy.deepcopy(model)
    for each in by_hand.layers:
        del each.activation
        each.activation = lambda x: torch.logaddexp(x * 2.0, torch.zeros_like(x)) / 2.0
        each.activation_relu_or_gelu = 0
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    with torch.set_grad_enabled(graph):
        torch.testing.assert_close(smooth(model, 2.0)(x), by_hand(x))
        assert not torch.allclose(model(x), by_hand(x), atol=1e-3)


# --- refusals


class Scripted(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def script():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(Scripted())


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.RReLU, "RReLU (1), which draws its slopes at random (use LeakyReLU)"),
        (nn.Hardshrink, "Hardshrink (1), which jumps (use Softshrink)"),
        (
            lambda: nn.RNN(2, 2, nonlinearity="relu"),
            "RNN (1), whose ReLU is built in (use nonlinearity='tanh')",
        ),
        (
            lambda: nn.RNNCell(2, 2, nonlinearity="relu"),
            "RNNCell (1), whose ReLU is built in (use nonlinearity='tanh')",
        ),
        (
            script,
            "RecursiveScriptModule (1), which is compiled, so that its ReLUs cannot be seen "
            "(give the Python module)",
        ),
    ],
)
def test_what_cannot_be_smooth_is_refused_by_name(layer, message):
    with pytest.raises(InputError) as caught:
        smooth(nn.Sequential(nn.Identity(), layer()), 2.0)
    start = "smooth: model must be one that can be made smooth, got "
    assert str(caught.value) == f"{start}{message}."
    assert smooth(nn.RNN(2, 2), 2.0) is not None


def test_a_threshold_that_jumps_is_refused():
    with pytest.raises(InputError) as caught:
        smooth(nn.Threshold(0.0, 1.0), 2.0)
    assert str(caught.value) == (
        "smooth: model must be one whose Threshold has value = threshold (any other jumps), "
        "got threshold 0.0, value 1.0."
    )


@pytest.mark.parametrize("rho", [0, -1.0, math.inf, math.nan, "10", True, None, 1e39, 1e-39])
def test_rho_must_be_a_positive_number(rho):
    message = r"^smooth: rho must be a positive number, 1e-30 to 1e30, got "
    with pytest.raises(InputError, match=message):
        smooth(MLP(2), rho)


@pytest.mark.parametrize("rho", [1e-30, 1e30])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_extreme_rho_gives_numbers(rho, activation):
    assert smooth(MLP(2, activation=activation), rho)(torch.randn(3, 2)).isfinite().all()


def test_only_modules_have_a_smooth_copy():
    with pytest.raises(InputError, match=r"^smooth: model must be an nn.Module, got function\.$"):
        smooth(lambda x: x, 1.0)


def test_a_model_that_cannot_be_copied_is_refused():
    model = nn.Sequential(nn.ReLU())
    model.handle = io.BytesIO().getbuffer()
    message = r"^smooth: model must be one that copy.deepcopy can copy, got the error: .*[^.]\.$"
    with pytest.raises(InputError, match=message):
        smooth(model, 1.0)
