"""What is bounded is what runs: backward passes of their own, hooks, odd calls, closed forms."""

import random
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nets import make, quadratic, randn
from r2et.certify import HessianCertifier, IntervalCertifier, margins
from r2et.certify.graph.tracing import trace
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.rank import top_k
from r2et.region import L2


class HalfBack(torch.autograd.Function):
    """tanh, with half of its gradient."""

    @staticmethod
    def forward(ctx, z):
        out = torch.tanh(z)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, gradient):
        (out,) = ctx.saved_tensors
        return 0.5 * gradient * (1 - out * out)


class Between(nn.Module):
    """Two linear layers with somebody's function of what is between them."""

    def __init__(self, function, features=4, hidden=6):
        super().__init__()
        self.one, self.two = nn.Linear(features, hidden), nn.Linear(hidden, 2)
        self.function = function
        self.register_buffer("gain", torch.full((hidden,), 1.5))
        self.slope = nn.Parameter(torch.tensor(0.2))

    def forward(self, x):
        return self.two(self.function(self, self.one(x)))


def hooked(_, h):
    out = torch.tanh(h)
    if out.requires_grad:
        out.register_hook(lambda gradient: gradient * gradient.new_tensor([1.0, 4.0] * 3))
    return out


def hooked_node(_, h):
    out = torch.tanh(h)
    if out.requires_grad:
        out.grad_fn.register_prehook(lambda gradients: (3.0 * gradients[0] + 0.1,))
    return out


def asleep(_, h):
    with torch.no_grad():
        aside = torch.relu(h - 0.2)
    return torch.tanh(h) + aside


def looks_at_mode(_, h):
    return torch.tanh(h) if h.requires_grad else torch.relu(h)


def positional_norm(_, h):
    ones, zeros = torch.ones(6), torch.zeros(6)
    return torch.batch_norm(torch.tanh(h), ones, zeros, zeros, 2 * ones, False, 0.1, 1e-5, False)


def norm_of_older_torch(_, h):
    """What torch 2.4 calls for batch_norm in evaluation: its schema has no word of training."""
    ones, zeros = torch.ones(6), torch.zeros(6)
    norm = torch.ops.aten._native_batch_norm_legit_no_training
    return norm(torch.tanh(h), ones, zeros, zeros, 2 * ones, 0.1, 1e-5)[0]


FUNCTIONS = {
    "a backward pass of its own": lambda _, h: HalfBack.apply(h),
    "a hook on a tensor": hooked,
    "a hook on a node": hooked_node,
    "a branch without a gradient": asleep,
    "requires_grad": looks_at_mode,
    "sub by keyword": lambda _, h: torch.sub(input=torch.tanh(h), other=0.3 * h),
    "sub of another": lambda _, h: torch.sub(other=torch.tanh(h), input=h),
    "add with alpha": lambda _, h: torch.add(torch.relu(h), h, alpha=2),
    "rsub with alpha": lambda _, h: torch.rsub(torch.tanh(h), 1.0, alpha=2),
    "batch_norm by position": positional_norm,
    "batch_norm of older torch": norm_of_older_torch,
    "scales of an ELU": lambda _, h: F.elu_(h, 0.7, 1.5, 3.0),
    "a gate": lambda _, h: torch.sigmoid(h) * torch.tanh(h),
    "a buffer": lambda m, h: torch.tanh(h * m.gain),
    "in place": lambda _, h: torch.tanh(h.mul(2.0).add_(0.5)),
    "numbers repeated": lambda _, h: torch.tanh(
        h[:, :3].unsqueeze(2).expand(-1, -1, 2).flatten(1) * h
    ),
    "a transpose": lambda _, h: torch.tanh(h).view(-1, 2, 3).transpose(1, 2).reshape(-1, 6),
    "a mask": lambda _, h: torch.tanh(h) * (torch.arange(6) % 2 == 0),
    "a learned slope": lambda m, h: m.slope * h + (1 - m.slope) * F.softplus(h),
    "two hinges of one value": lambda _, h: torch.relu(h) - 0.5 * F.leaky_relu(h, 0.2),
}


def holds(model, x, k=1, **settings):
    """The share of rows with a radius above 0, in none of which a point changes the top k."""
    radius = IntervalCertifier(**settings)(model, Gradient(), x, k=k).radius
    clean = top_k(Gradient()(model, x), k).sort(1).values
    for far in (0.3, 0.99):
        points = L2(1.0).sample(torch.zeros_like(x), 200)
        unit = F.normalize(points.flatten(2), dim=2).view_as(points)
        moved = x + (far * radius).view(-1, *[1] * (x.ndim - 1)).to(x) * unit
        there = top_k(Gradient().at(model, x)(moved.flatten(0, 1)), k).sort(1).values
        same = (there.view(200, *clean.shape) == clean).all(2)
        assert bool((same | (radius == 0)).all())
    return float((radius > 0).double().mean())


@pytest.mark.parametrize("relaxation", ["linear", "interval"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_backward_pass_that_runs_is_the_one_that_is_bounded(name, relaxation):
    model = make(lambda: Between(FUNCTIONS[name])).eval()
    assert holds(model, randn(12, 4), relaxation=relaxation) > 0.5


@pytest.mark.parametrize(("activation", "backward"), [(F.silu, "silu"), (F.mish, "mish")])
def test_a_backward_operation_is_not_taken_apart(activation, backward):
    """By the tracers of older torch neither, where autograd runs it as one."""
    model = make(lambda: Between(lambda _, h: activation(h))).eval()
    targets = [call.target for call in trace("test", model, randn(2, 4)).calls]
    assert getattr(torch.ops.aten, f"{backward}_backward").default in targets
    assert torch.ops.aten.sigmoid.default not in targets
    assert all(target.namespace == "aten" for target in targets)


def test_a_module_hook_counts():
    model = make(lambda: Between(lambda _, h: torch.tanh(h))).eval()
    plain = IntervalCertifier()(model, Gradient(), randn(12, 4), k=1).radius
    factor = torch.tensor([1.0, 1.0, 4.0, 1.0, 1.0, 1.0])
    model.one.register_full_backward_hook(lambda _, inputs, __: (inputs[0] * factor[:4],))
    assert holds(model, randn(12, 4)) > 0.5
    hooked = IntervalCertifier()(model, Gradient(), randn(12, 4), k=1).radius
    assert not torch.equal(plain, hooked)


class Larger(nn.Module):
    """A mean over one place, spread over many: its backward pass adds all of them up."""

    def __init__(self, size=40):
        super().__init__()
        self.pool, self.out = nn.AdaptiveAvgPool2d(size), nn.Linear(2 * size * size, 2)
        weight = torch.full((2, size * size), 0.98 * 2.0**-24)
        weight[:, 0] = 1.0
        weight[1, 1:] *= 1.03
        self.out.weight.data = torch.stack([weight.flatten(), -weight.flatten()])

    def forward(self, x):
        return self.out(self.pool(x).flatten(1))


def test_sums_of_a_backward_pass_are_rounded_as_long_as_they_are():
    model, x = Larger().eval(), torch.ones(1, 2, 1, 1)
    # The features differ by less than a sum of 1600 terms may lose.
    assert float(IntervalCertifier()(model, Gradient(), x, k=1).radius) == 0


@pytest.mark.parametrize("kind", [IntervalCertifier, HessianCertifier])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_radius_of_a_quadratic_is_exact(kind, norm):
    """The gradient A x + b moves by A d: a gap closes at its size over the norm of A_i -+ A_j."""
    model, x = quadratic(5).eval(), randn(10, 5, dtype=torch.float64)
    certifier = kind(norm=norm, limit=100.0, tolerance=1e-6)
    radius = certifier(model, Gradient(), x, k=2, target=1).radius
    g = x @ model.a + model.b
    top = torch.zeros_like(g, dtype=torch.bool).scatter(1, g.abs().topk(2).indices, True)
    exact = []
    for row, inside in zip(g.detach(), top, strict=True):
        gaps = []
        for i in inside.nonzero().flatten():
            for j in (~inside).nonzero().flatten():
                for sign in (1.0, -1.0):
                    move = row[i].sign() * model.a[i] - sign * model.a[j]
                    size = move.norm() if norm == "l2" else move.abs().sum()
                    gaps.append((row[i].abs() - sign * row[j]) / size)
        exact.append(torch.stack(gaps).min())
    torch.testing.assert_close(radius, torch.stack(exact).detach(), rtol=1e-5, atol=0)


def overwritten(model, h):
    out = torch.tanh(h) + model.gain.sum()
    model.gain.mul_(1.0)
    return out


REFUSED = {
    "overwritten": (overwritten, "mul in place, on a weight"),
    "python's random": (lambda _, h: h * random.random(), "change with the data, the batch or by"),
    "item": (lambda _, h: h * float(h.detach().sum()), "a step that looks at values"),
    "numpy": (lambda _, h: h * torch.tensor(h.detach().numpy().max()), "made of data or of chance"),
    "rows that mix": (lambda _, h: h - h.mean(0), "mean, whose result is not one value per row"),
    "rows that are sorted": (lambda _, h: h.sort(0).values, "got sort"),
    "the number of rows": (lambda _, h: h / len(h), "a number that grows with the batch"),
    "rows by number": (lambda _, h: h * torch.arange(len(h))[:, None], "a number for each row"),
    "an integer buffer": (
        lambda _, h: h * torch.zeros_like(h, dtype=torch.int32).copy_(h.detach()),
        "a result of torch.int32",
    ),
    "a half buffer": (
        lambda _, h: h * torch.zeros(6, dtype=torch.half).expand(len(h), 6).clone().add_(h).float(),
        "a result of torch.float16",
    ),
    "a copy that broadcasts": (
        lambda _, h: h + torch.zeros(len(h), 6).copy_(h[:, :1]),
        "copy that changes the shape",
    ),
    "steps": (lambda _, h: h + torch.round(h), "got round"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused(name):
    function, message = REFUSED[name]
    model = make(lambda: Between(function)).eval()
    with pytest.raises(InputError, match=message):
        IntervalCertifier()(model, Gradient(), randn(3, 4), k=1)


def test_training_sees_a_replaced_buffer_and_a_setting_in_a_dict():
    model = make(lambda: Between(lambda m, h: torch.tanh(h * m.gain) * m.settings["gain"]))
    model.settings = {"gain": 1.0}
    x = randn(4, 4)
    margins(model, x, 0.1, k=2)
    model.gain = torch.linspace(0.1, 3.0, 6)
    torch.testing.assert_close(margins(model, x, 0.1, k=2).scores, Gradient()(model, x))
    model.settings["gain"] = -2.0
    torch.testing.assert_close(margins(model, x, 0.1, k=2).scores, Gradient()(model, x))


def kept(**values):
    """A module with these settings and buffers, which a function of it may look at."""

    def give(function):
        model = make(lambda: Between(function))
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                model.register_buffer(name, value)
            else:
                setattr(model, name, value)
        return model

    return give


# What a forward pass goes by, and how it changes.
STATES = {
    "a number of a weight": (
        kept(number=torch.tensor(1.0)),
        lambda m, h: torch.tanh(h * float(m.number)),
        lambda m: m.number.fill_(0.3),
    ),
    "a list of a weight": (
        kept(),
        lambda m, h: torch.tanh(h * m.gain.tolist()[0]),
        lambda m: m.gain.fill_(0.3),
    ),
    "an object": (
        kept(cfg=SimpleNamespace(alpha=1.0)),
        lambda m, h: torch.tanh(h * m.cfg.alpha),
        lambda m: setattr(m.cfg, "alpha", 3.0),
    ),
    "an array": (
        kept(array=np.ones(1)),
        lambda m, h: torch.tanh(h * float(m.array[0])),
        lambda m: m.array.fill(3.0),
    ),
    "a buffer as beta": (
        kept(beta=torch.tensor(1.0)),
        lambda m, h: F.softplus(h, m.beta),
        lambda m: m.beta.fill_(3.0),
    ),
    "a buffer as alpha": (
        kept(alpha=torch.tensor(1.0)),
        lambda m, h: torch.add(torch.tanh(h), h, alpha=m.alpha),
        lambda m: m.alpha.fill_(3.0),
    ),
    "a buffer as index": (
        kept(place=torch.tensor(0)),
        lambda m, h: torch.tanh(h) * h[:, m.place].unsqueeze(1).expand(-1, 6),
        lambda m: m.place.fill_(2),
    ),
    "a buffer that decides on a shape": (
        kept(),
        lambda m, h: torch.tanh(h) * len(m.gain[m.gain > 1]),
        lambda m: m.gain[:3].fill_(0.5),
    ),
    "a buffer that fills": (
        kept(fill=torch.tensor(1.0)),
        lambda m, h: torch.tanh(h * torch.full((6,), m.fill)),
        lambda m: m.fill.fill_(3.0),
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_training_sees_whatever_a_forward_pass_goes_by(name):
    give, function, change = STATES[name]
    model, x = give(function), randn(4, 4)
    before = margins(model, x, 0.1, k=2).scores
    change(model)
    after = margins(model, x, 0.1, k=2).scores
    torch.testing.assert_close(after, Gradient()(model, x))
    assert not torch.allclose(before, after)


def test_other_precisions_and_winograd_are_refused():
    model, x = make(lambda: Between(lambda _, h: torch.tanh(h))).eval(), randn(3, 4)
    matmul = getattr(torch.backends.mkldnn, "matmul", None)
    if matmul is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, about other devices
            matmul.fp32_precision = "bf16"
        try:
            with pytest.raises(InputError, match=r"mkldnn\.matmul\.fp32_precision must be ieee"):
                IntervalCertifier()(model, Gradient(), x, k=1)
        finally:
            matmul.fp32_precision = "none"
    picture = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(32, 2)).eval()
    torch._C._set_mkldnn_enabled(False)
    try:
        with pytest.raises(InputError, match=r"mkldnn\.enabled must be True"):
            IntervalCertifier()(picture, Gradient(), randn(2, 1, 6, 6), k=1)
    finally:
        torch._C._set_mkldnn_enabled(True)


class Repeated(nn.Module):
    """One feature three times in a sum: it moves by three times the change, not by its root."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 1), nn.Linear(2, 1, bias=False)
        self.one.weight.data.copy_(torch.tensor([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]))
        self.one.bias.data.fill_(-3.0)
        self.two.weight.data.copy_(torch.tensor([[0.0, 1.0]]))

    def forward(self, x):
        copies = x.unsqueeze(2).expand(-1, -1, 3).flatten(1)
        return torch.relu(self.one(copies)) + self.two(x)


@pytest.mark.parametrize("relaxation", ["linear", "interval"])
def test_numbers_that_are_repeated_move_together(relaxation):
    # The unit switches on where x_1 reaches 1, and then feature 1 is the first.
    model, x = Repeated().eval(), torch.tensor([[0.4, 0.0]])
    radius = IntervalCertifier(relaxation=relaxation)(model, Gradient(), x, k=1).radius
    assert 0.5 < float(radius) <= 0.6


def test_a_learned_slope_is_trained():
    model = make(lambda: Between(FUNCTIONS["a learned slope"]))
    margins(model, randn(8, 4), 0.1, k=2).low.sum().backward()
    assert float(model.slope.grad.abs()) > 0
