"""Bad input gets one clear sentence."""

import pytest
import torch
from torch import nn

from nets import make, mlp, randn
from r2et.errors import InputError, R2ETError
from r2et.explain import Captum, Concept, Gradient, IntegratedGradients, SmoothGrad


class Rounded(nn.Module):
    def forward(self, x):
        return nn.functional.one_hot(x.sum(1).round().long() % 2, 2).float()


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 2))

    def forward(self, x):
        return self.bias.expand(len(x), 2)


class Broken(nn.Module):
    def forward(self, x):
        return torch.stack([x.sum(1).log(), x.sum(1)], 1)


class Dictionary(nn.Module):
    def forward(self, x):
        return {"logits": x}


class Sequence(nn.Module):
    def forward(self, x):
        return x[None].expand(3, -1, -1)


MODEL = make(mlp)  # six features, three classes
GOOD = randn(4, 6)
HOLED = GOOD.clone()
HOLED[2, 3], HOLED[3, 0] = float("nan"), float("inf")
BAD = {
    "numpy": (GOOD.numpy(), "x must be a torch.Tensor, got ndarray."),
    "integer": (
        torch.ones(4, 6).long(),
        "x must be a floating-point tensor (use x.float()), "
        "got int64 tensor of shape (4, 6) on cpu.",
    ),
    "vector": (
        GOOD[0],
        "x must be a batch of shape (B, features, ...), got float32 tensor of shape (6,) on cpu.",
    ),
    "empty": (
        GOOD[:0],
        "x must be a batch of at least one row and one feature, "
        "got float32 tensor of shape (0, 6) on cpu.",
    ),
    "nan": (HOLED, "x must be finite, got NaN or infinity in 2 of 4 rows, first in row 2."),
    "device": (
        GOOD.to("meta"),
        "x must be on the model's device cpu, got float32 tensor of shape (4, 6) on meta.",
    ),
    "shape": (
        randn(4, 5),
        "model must be a callable that takes x, float32 (4, 5), got RuntimeError: "
        "mat1 and mat2 shapes cannot be multiplied (4x5 and 6x16).",
    ),
    "dtype": (
        GOOD.double(),
        "model must be a callable that takes x, float64 (4, 6), got RuntimeError: "
        "mat1 and mat2 must have the same dtype, but got Double and Float.",
    ),
}
EXPLAINERS = [Gradient(), SmoothGrad(), IntegratedGradients(), Concept(), Captum("Saliency")]


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: type(e).__name__)
def test_bad_x(explainer, case):
    x, message = BAD[case]
    with pytest.raises(InputError) as caught:
        explainer(MODEL.layers, x)  # plain torch, which does not name a wrong shape itself
    assert str(caught.value) == f"{type(explainer).__name__}: {message}"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (torch.tensor([0, 1, 3, 0]), "target must be in 0..2, got 3."),
        (torch.tensor([0, -1, 2, 0]), "target must be in 0..2, got -1."),
        (7, "target must be in 0..2, got 7."),
        (torch.zeros(3).long(), "target must be of shape (4,), got int64 tensor of shape (3,)"),
        (torch.zeros(4), "target must be a tensor of whole numbers, got float32 tensor"),
        ([0, 1, 2, 0], "target must be a tensor of class indices, got [0, 1, 2, 0]."),
        (True, "target must be a tensor of whole numbers, got bool tensor"),
    ],
)
def test_bad_target(target, message):
    for explainer in (Gradient(), SmoothGrad(), IntegratedGradients()):
        with pytest.raises(InputError) as caught:
            explainer(MODEL, GOOD, target)
        assert str(caught.value).startswith(f"{type(explainer).__name__}: {message}")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Rounded(),
            "model must be differentiable in x (no detach, argmax, numpy or no_grad inside), "
            "got an output without a gradient.",
        ),
        (
            Constant(),
            "model must be differentiable in x (no detach, argmax, numpy or no_grad inside), "
            "got an output that does not depend on x.",
        ),
        (Broken(), "model must be one with finite logits, got NaN or inf in row 0."),
        (Dictionary(), "model must be one that returns a tensor of logits (wrap it in a module"),
        (Sequence(), "model must be one that returns logits of shape (4, C), got float32"),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else "",
)
def test_bad_model(model, message):
    x = -GOOD.abs()
    for explainer in (Gradient(), SmoothGrad(sigma=1e-3), IntegratedGradients()):
        with pytest.raises(InputError) as caught:
            explainer(model, x)
        assert str(caught.value).startswith(f"{type(explainer).__name__}: {message}")


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (
            lambda: Gradient(of="prob"),
            "Gradient: of must be one of log_odds, logit, probability, loss, got prob.",
        ),
        (
            lambda: Gradient(reduce="sum"),
            "Gradient: reduce must be one of abs, signed, abs_sum, upper, abs_upper, got sum.",
        ),
        (lambda: Gradient(chunk=0), "Gradient: chunk must be None or a positive whole number"),
        (lambda: Gradient(part=2), "Gradient: part must be None, 0 or 1, got 2."),
        (
            lambda: SmoothGrad(samples=0),
            "SmoothGrad: samples must be a whole number, at least 1, got 0.",
        ),
        (lambda: SmoothGrad(sigma=-1), "SmoothGrad: sigma must be 0 or more and finite, got -1."),
        (lambda: IntegratedGradients(points=0), "IntegratedGradients: points must be at least 1"),
        (
            lambda: IntegratedGradients(points=1, rule="trapezoid"),
            "IntegratedGradients: points must be at least 2, got 1.",
        ),
        (
            lambda: IntegratedGradients(baseline=[1.0, 2.0])(MODEL, GOOD),
            "IntegratedGradients: baseline must be a number or 6 of them, got 2.",
        ),
        (
            lambda: Gradient(part=0)(MODEL, GOOD),
            "Gradient: x must be pairs (B, 2, ...) when part is given, got float32 tensor",
        ),
        (
            lambda: Gradient(reduce="abs_sum")(MODEL, GOOD),
            "abs_sum: x must be images (B, C, H, W) or pairs (B, 2, C, H, W), got float32",
        ),
        (
            lambda: Gradient(reduce="upper")(MODEL, GOOD),
            "upper: x must be adjacency matrices (B, N, N) or pairs (B, 2, N, N), got float32",
        ),
        (
            lambda: Concept(layer="nope")(MODEL, GOOD),
            "Concept: layer must be one of layers, layers.0, layers.1, layers.2, layers.3, "
            "layers.4, got nope.",
        ),
        (
            lambda: Concept()(nn.Flatten(), GOOD),
            "Concept: layer must be given for a model without a Linear layer, got None.",
        ),
        (
            lambda: Captum("Saliensy")(MODEL, GOOD),
            "Captum: method must be the name of an attribution in captum.attr, got Saliensy.",
        ),
        (lambda: Captum(3), "Captum: method must be a name in captum.attr"),
        (
            lambda: Captum("Saliency")(MODEL, GOOD, create_graph=True),
            "Captum: create_graph must be False (captum's attributions cannot be differentiated "
            "correctly; use the explainers of r2et.explain, which can), got True.",
        ),
    ],
)
def test_bad_settings(make_it, message):
    with pytest.raises(InputError) as caught:
        make_it()
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, R2ETError)
