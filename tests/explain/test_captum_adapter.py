"""The adapter gives captum's values, and refuses what captum gets wrong."""

import captum.attr
import pytest
import torch

from nets import cnn, make, mlp, randn
from r2et.explain import Captum, Gradient, IntegratedGradients
from r2et.models import predict


def test_values_are_captums():
    model, x = make(mlp), randn(4, 6)
    target = predict(model, x)
    deep = captum.attr.DeepLift(model).attribute
    with pytest.warns(UserWarning, match="Setting forward"):
        expected = deep(x.clone().requires_grad_(), target=target)
    scores = Captum("DeepLift", of="logit", reduce="signed")(model, x)
    torch.testing.assert_close(scores, expected.detach())
    ablation = captum.attr.FeatureAblation(model).attribute(x, target=target)
    scores = Captum(captum.attr.FeatureAblation, of="logit", reduce="signed")(model, x)
    torch.testing.assert_close(scores, ablation)


def test_it_agrees_with_our_own():
    model, x = make(mlp), randn(4, 6)
    settings = {"n_steps": 30, "method": "gausslegendre"}
    theirs = Captum("IntegratedGradients", settings=settings, of="probability")
    ours = IntegratedGradients(points=30, rule="gauss_legendre", of="probability")
    torch.testing.assert_close(theirs(model, x), ours(model, x), atol=1e-6, rtol=1e-4)
    for of in ("log_odds", "logit", "probability", "loss"):
        scores = Captum("Saliency", of=of)(model, x)
        torch.testing.assert_close(scores, Gradient(of=of)(model, x), atol=1e-6, rtol=1e-4)


def test_layer_methods_take_a_layer_by_name():
    model, x = make(cnn), randn(2, 2, 8, 8)
    target = predict(model, x)
    expected = captum.attr.LayerActivation(model, model[0]).attribute(x).flatten(1)
    scores = Captum("LayerActivation", layer="0", reduce="signed")(model, x, target)
    torch.testing.assert_close(scores, expected.detach())


def test_a_function_can_build_the_attribution():
    model, x = make(mlp), randn(3, 6)

    def tunnel(forward):
        return captum.attr.NoiseTunnel(captum.attr.Saliency(forward))

    explainer = Captum(tunnel, settings={"nt_samples": 3, "stdevs": 0.1})
    assert torch.equal(explainer(model, x), explainer(model, x))
    other = Captum(tunnel, settings={"nt_samples": 3, "stdevs": 0.1}, seed=5)
    assert not torch.equal(explainer(model, x), other(model, x))


def test_captum_really_loses_the_second_order_term():
    """Why the adapter refuses a graph: if captum mends this, the refusal can go."""
    model = make(lambda: mlp(act="tanh"), dtype=torch.float64)
    x = randn(1, 6, dtype=torch.float64).requires_grad_()

    def slope(scores):
        return torch.autograd.grad(scores.sum(), x)[0]

    ours = IntegratedGradients(points=20, of="logit", reduce="signed", rule="gauss_legendre")
    right = slope(ours(model, x, 0, create_graph=True))
    theirs = captum.attr.IntegratedGradients(model).attribute(x, target=0, n_steps=20)
    assert not torch.allclose(slope(theirs), right)
