"""An explanation of captum's that is one of ours says so, and is: number for number."""

import captum.attr
import pytest
import torch

from nets import cnn, make, mlp, randn
from r2et.explain import (
    Captum,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    SmoothGrad,
)

START = torch.linspace(-1, 1, 6)[None]
ROW = tuple(START.double().flatten().tolist())
STEPS = {"n_steps": 12}
EQUAL = [
    (Captum("Saliency"), Gradient()),
    (Captum(captum.attr.Saliency, of="probability"), Gradient(of="probability")),
    (Captum(lambda f: captum.attr.Saliency(f), of="logit"), Gradient(of="logit")),
    (Captum("Saliency", reduce="signed"), Gradient()),
    (Captum("Saliency", reduce="signed", settings={"abs": False}), Gradient(reduce="signed")),
    (Captum("Saliency", normalize=True, chunk=2), Gradient(normalize=True, chunk=2)),
    (Captum("InputXGradient", of="loss"), GradientTimesInput(of="loss")),
    (Captum("IntegratedGradients"), IntegratedGradients(points=50, rule="gauss_legendre")),
    (
        Captum("IntegratedGradients", settings={**STEPS, "internal_batch_size": 8}),
        IntegratedGradients(points=12, rule="gauss_legendre"),
    ),
    *(
        (
            Captum("IntegratedGradients", settings={**STEPS, "method": f"riemann_{theirs}"}),
            IntegratedGradients(points=12, rule=ours),
        )
        for theirs, ours in (("middle", "midpoint"), ("left", "left"), ("right", "right"))
    ),
    *(
        (
            Captum("IntegratedGradients", settings={**STEPS, "baselines": given}),
            IntegratedGradients(points=12, rule="gauss_legendre", baseline=start),
        )
        for given, start in ((0.3, 0.3), (START, ROW), (torch.tensor([0.5]), 0.5), ((1,), 1.0))
    ),
]
TUNNEL = {"nt_samples": 7, "stdevs": 0.2, "abs": False}


@pytest.mark.parametrize("act", ["relu", "tanh"])
@pytest.mark.parametrize(("theirs", "ours"), EQUAL)
def test_the_equivalent_has_the_same_scores(theirs, ours, act):
    model, x = make(lambda: mlp(act=act)), randn(5, 6)
    assert theirs.equivalent() == ours
    torch.testing.assert_close(ours(model, x), theirs(model, x), atol=1e-5, rtol=1e-5)


def test_so_it_does_for_pictures():
    model, x = make(cnn), randn(2, 2, 8, 8)
    theirs = Captum("Saliency", reduce="abs_sum")
    assert theirs.equivalent() == Gradient(reduce="abs_sum")
    torch.testing.assert_close(
        theirs(model, x), Gradient(reduce="abs_sum")(model, x), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize(
    "settings", [TUNNEL, {**TUNNEL, "stdevs": (0.2,), "nt_type": "smoothgrad"}]
)
def test_a_tunnel_of_signed_gradients_is_smoothgrad_but_for_the_noise(settings, monkeypatch):
    model, x = make(lambda: mlp(act="tanh")), randn(4, 6)
    theirs = Captum("NoiseTunnel", around="Saliency", settings=settings, seed=3)
    ours = theirs.equivalent()
    assert ours == SmoothGrad(samples=7, sigma=0.2, seed=3)
    assert not torch.allclose(ours(model, x), theirs(model, x), atol=1e-5)  # captum's own noise
    noise = ours.path(torch.zeros(1, 6), 0, 7)[:, 0]
    monkeypatch.setattr(torch, "normal", lambda *_, **__: noise)
    torch.testing.assert_close(ours(model, x), theirs(model, x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "explainer",
    [
        Captum("DeepLift"),
        Captum("LayerActivation", layer="0"),
        Captum("Saliency", reduce="upper"),  # of absolute values, not of derivatives
        Captum("Saliency", settings={"unknown": 1}),
        Captum("IntegratedGradients", settings={"method": "riemann_trapezoid"}),
        Captum("IntegratedGradients", settings={"baselines": torch.zeros(3, 6)}),  # one a row
        Captum("IntegratedGradients", settings={"n_steps": 0}),
        Captum(lambda f: captum.attr.IntegratedGradients(f, multiply_by_inputs=False)),
        Captum(lambda f: captum.attr.Saliency(lambda *args: f(*args) ** 2)),  # of another quantity
        Captum(lambda f: captum.attr.LayerActivation(f, f.model.layers)),  # needs the real model
        Captum("NoiseTunnel", around="Saliency"),  # a mean of absolute gradients
        Captum("NoiseTunnel", around="Saliency", settings={**TUNNEL, "nt_type": "vargrad"}),
        Captum("NoiseTunnel", around="InputXGradient", settings={"stdevs": 0.2}),
        Captum("NoiseTunnel"),
        Captum("Saliensy"),
    ],
)
def test_all_else_has_none(explainer):
    assert explainer.equivalent() is None


def test_the_trapezoids_weights_are_why_it_has_none():
    """If captum's sum to 1 one day, it may get its equivalent."""
    model, x = make(mlp), randn(3, 6)
    settings = {**STEPS, "method": "riemann_trapezoid"}
    theirs = Captum("IntegratedGradients", settings=settings)(model, x)
    ours = IntegratedGradients(points=12, rule="trapezoid")(model, x)
    torch.testing.assert_close(ours * 11 / 12, theirs, atol=1e-5, rtol=1e-4)


def test_ours_are_their_own():
    assert SmoothGrad(samples=3).equivalent() == SmoothGrad(samples=3)
