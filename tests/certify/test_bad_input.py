"""What cannot be certified is refused in one sentence that names it."""

import pytest
import torch
from torch import nn

from nets import make, randn
from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Concept, Gradient
from r2et.models import MLP


class Half(nn.Module):
    """bfloat16, exact at the whole numbers alone."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.inner(x)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x):
        return self.inner(x) + torch.empty(2).uniform_()


class Square(nn.Module):
    def forward(self, x):
        return x.reshape(-1, 1, 2, 2)


class Where(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x):
        return self.inner(x) if x.sum() > 0 else -self.inner(x)


class Batchwise(nn.Module):
    def forward(self, x):
        return (x - x.mean(0))[:, :2]


MODELS = {
    "native_group_norm (use LayerNorm or BatchNorm instead)": lambda: nn.Sequential(
        nn.Linear(4, 4), nn.GroupNorm(2, 4)
    ),
    "softshrink": lambda: nn.Sequential(nn.Linear(4, 3), nn.Softshrink()),
    "log_sigmoid_forward (use -softplus(-z) instead)": lambda: nn.Sequential(
        nn.Linear(4, 3), nn.LogSigmoid()
    ),
    "to_copy with a result of torch.bfloat16": Half,
    "uniform, a random number": Noisy,
    "negative divisor": lambda: nn.Sequential(
        Square(), nn.AvgPool2d(2, divisor_override=-2), nn.Flatten()
    ),
    "a step that looks at values (a branch on the data": Where,
    "mean, whose result is not one value per row": Batchwise,
    "softplus": lambda: nn.Sequential(nn.Linear(4, 3), nn.Softplus(threshold=2.0)),
}


def refused(model=None, explainer=None, x=None, k=2, **settings):
    model = model if model is not None else make(lambda: MLP(4))
    x = randn(3, 4) if x is None else x
    with pytest.raises(InputError) as caught:
        IntervalCertifier(**settings)(model, explainer or Gradient(), x, k=k)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("IntervalCertifier: ")
    return message


@pytest.mark.parametrize("name", MODELS)
def test_models_are_refused_by_the_name_of_the_step(name):
    assert name in refused(make(MODELS[name]))


def test_train_mode_is_refused():
    assert "model.eval()" in refused(make(lambda: MLP(4)).train())
    part = make(lambda: nn.Sequential(nn.Linear(4, 3), nn.Dropout(), nn.Linear(3, 2)))
    part[1].train()
    assert "got 1 in train mode" in refused(part)


@pytest.mark.parametrize("k", [0, 4, 7, True])
def test_k_is_refused(k):
    assert ": k must be" in refused(k=k)


def test_explainers_are_refused():
    assert "SmoothGrad with reduce abs or signed, and no part" in refused(explainer=Concept())
    assert "SmoothGrad with reduce abs or signed" in refused(explainer=Gradient(reduce="abs_sum"))


def test_precisions_are_refused():
    model = make(lambda: MLP(4)).half()
    assert "float32 or float64" in refused(model, x=randn(3, 4).half())
    assert "float32 or float64" in refused(make(lambda: MLP(4)).double())


@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "l1"},
        {"limit": float("inf")},
        {"limit": 0.0},
        {"tolerance": -1},
        {"relaxation": "tight"},
        {"chunk": 0},
    ],
)
def test_settings_are_refused(settings):
    (name,) = settings
    assert f": {name} must be" in refused(**settings)


def test_a_radius_that_is_no_distance_is_refused():
    certificate = IntervalCertifier()(make(lambda: MLP(4)), Gradient(), randn(3, 4), k=2)
    for radius in (float("inf"), -1.0, float("nan")):
        with pytest.raises(InputError, match="precision_at: radius must be 0 or more and finite"):
            certificate.precision_at(radius)


def test_bounds_that_overflow_prove_nothing():
    certificate = IntervalCertifier()(make(lambda: MLP(4)), Gradient(), randn(3, 4), k=2)
    assert torch.equal(certificate.precision_at(1.7e308), torch.zeros(3))
