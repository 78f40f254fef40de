"""The adapter gives captum's values, and refuses what captum gets wrong."""

import re
import warnings

import captum.attr
import pytest
import torch

from nets import cnn, make, mlp, randn
from r2et.errors import InputError
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


NOISE = {"nt_samples": 3, "stdevs": 0.1}


@pytest.mark.parametrize("around", ["Saliency", captum.attr.IntegratedGradients, "DeepLift"])
def test_a_noise_tunnel_is_given_what_it_smooths(around):
    model, x = make(mlp), randn(3, 6)
    explainer = Captum("NoiseTunnel", around=around, settings=NOISE, reduce="signed", of="logit")
    scores = explainer(model, x)
    inner = getattr(captum.attr, around) if isinstance(around, str) else around
    tunnel = captum.attr.NoiseTunnel(inner(model))
    for row, target, expected in zip(x, predict(model, x), scores, strict=True):
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = tunnel.attribute(row[None], target=target, **NOISE)
        torch.testing.assert_close(expected[None], alone.detach())


def test_the_noise_of_a_tunnel_has_no_part_in_which_rows_come_together():
    """Else the same row would seem changed wherever an attack stacks its points."""
    model, x = make(lambda: mlp(act="tanh")), randn(4, 6)
    explainer = Captum("NoiseTunnel", around="Saliency", settings=NOISE)
    scores = explainer(model, x)
    torch.testing.assert_close(explainer(model, x[[2, 2, 0]]), scores[[2, 2, 0]])
    by_function = Captum(lambda f: captum.attr.NoiseTunnel(captum.attr.Saliency(f)), settings=NOISE)
    assert torch.equal(by_function(model, x), scores)
    samples = {**NOISE, "nt_type": "vargrad"}
    spread = Captum("NoiseTunnel", around="Saliency", settings=samples)(model, x)
    assert (spread > 0).all()  # the samples have noise of their own


@pytest.mark.parametrize(
    ("explainer", "sentence"),
    [
        (
            Captum("NoiseTunnel"),
            'Captum: around must be what it smooths, as in Captum("NoiseTunnel", '
            'around="Saliency"), got None.',
        ),
        (
            Captum(captum.attr.NoiseTunnel, around="Saliensy"),
            "Captum: around must be the name of an attribution in captum.attr, got Saliensy.",
        ),
        (
            Captum("Saliency", around="Saliency"),
            "Captum: around must be None but for NoiseTunnel, got Saliency.",
        ),
        (Captum("NoiseTunnel", around="Saliency", settings={"stdevs": 1}), "stdevs must be type"),
        (
            Captum(lambda f: captum.attr.NoiseTunnel(f)),
            "Captum: method must be one that explains a forward function",
        ),
        (Captum("DataLoaderAttribution"), "Captum: method must be given settings"),
    ],
)
def test_a_tunnel_that_is_given_wrongly_gets_a_sentence(explainer, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        explainer(make(mlp), randn(2, 6))
    with pytest.raises(InputError, match="Captum: around must be a name in"):
        Captum("NoiseTunnel", around=3)


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
