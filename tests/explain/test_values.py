"""Explanations against closed forms, against captum, and against each other."""

import captum.attr
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nets import GraphNet, ResidualNet, Siamese, cnn, make, mlp, quadratic, randn
from r2et.explain import (
    Concept,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    SmoothGrad,
)
from r2et.models import MLP, predict

F64 = torch.float64


def test_gradients_of_a_quadratic_are_its_closed_form():
    model, x = quadratic(), randn(4, 6, dtype=F64)
    slope = (x @ model.a + model.b).detach()
    ones, zeros = torch.ones(4).long(), torch.zeros(4).long()
    p = model(x).detach().sigmoid()
    same = torch.testing.assert_close
    for of in ("log_odds", "logit"):
        same(Gradient(of=of, reduce="signed")(model, x, ones), slope)
        same(Gradient(of=of, reduce="signed")(model, x, zeros), -slope)
    same(Gradient(of="probability", reduce="signed")(model, x, ones), p * (1 - p) * slope)
    same(Gradient(of="loss", reduce="signed")(model, x, ones), -(1 - p) * slope)
    same(Gradient(of="loss", reduce="signed")(model, x, zeros), p * slope)
    same(Gradient()(model, x), slope.abs())
    same(GradientTimesInput(reduce="signed")(model, x, ones), slope * x)


def test_smoothgrad_and_integrated_gradients_of_a_quadratic():
    model, x = quadratic(), randn(4, 6, dtype=F64)
    slope = (x @ model.a + model.b).detach()
    ones = torch.ones(4).long()
    smooth = SmoothGrad(reduce="signed", samples=20000, sigma=0.5)(model, x, ones)
    # The mean of A(x + b) + b is the gradient up to the noise's own mean, of size s / sqrt(M).
    spread = 0.5 * model.a.norm(dim=0).detach() / 20000**0.5
    assert ((smooth - slope).abs() < 4.5 * spread).all()
    start = randn(6, seed=9, dtype=F64)
    middle = ((x + start) / 2 @ model.a + model.b).detach()
    for rule in ("midpoint", "gauss_legendre", "trapezoid"):
        explainer = IntegratedGradients(
            reduce="signed", points=3, baseline=start.tolist(), rule=rule
        )
        torch.testing.assert_close(explainer(model, x, ones), (x - start) * middle)


def test_log_odds_of_many_classes_weigh_the_other_classes_by_their_probability():
    weight, x = randn(4, 6, dtype=F64), randn(5, 6, seed=1, dtype=F64)
    model = nn.Linear(6, 4).double()
    model.weight.data, model.bias.data = weight, randn(4, seed=2, dtype=F64)
    target = torch.tensor([0, 1, 2, 3, 1])
    probability = model(x).softmax(1).detach()
    for row in range(5):
        c = int(target[row])
        others = [j for j in range(4) if j != c]
        share = probability[row, others] / probability[row, others].sum()
        expected = weight[c] - share @ weight[others]
        scores = Gradient(reduce="signed")(model, x[row : row + 1], target[row : row + 1])
        torch.testing.assert_close(scores[0], expected)


NETS = {
    "mlp": (mlp, (5, 6)),
    "cnn": (cnn, (5, 2, 8, 8)),
    "resnet": (lambda: ResidualNet(2, nn.ReLU), (5, 2, 6, 6)),
}
FORWARD = {
    "logit": lambda model: model,
    "probability": lambda model: lambda x: model(x).softmax(1),
    "loss": lambda model: lambda x: -model(x).log_softmax(1),
    "log_odds": lambda model: lambda x: torch.logit(model(x).softmax(1)),
}


@pytest.mark.parametrize("of", FORWARD)
@pytest.mark.parametrize("net", NETS)
def test_values_equal_captums(net, of, monkeypatch):
    build, shape = NETS[net]
    model, x = make(build), randn(*shape)
    target = predict(model, x)
    forward = FORWARD[of](model)

    def close(ours, theirs):
        torch.testing.assert_close(ours, theirs.detach().flatten(1), atol=1e-5, rtol=1e-5)

    settings = {"of": of, "reduce": "signed"}
    start = x.clone().requires_grad_()
    saliency = captum.attr.Saliency(forward)
    close(Gradient(**settings)(model, x), saliency.attribute(start, target, abs=False))
    close(Gradient(of=of)(model, x), saliency.attribute(start, target))
    times = captum.attr.InputXGradient(forward).attribute(start, target)
    close(GradientTimesInput(**settings)(model, x), times)

    path = captum.attr.IntegratedGradients(forward)
    for rule, name in (("midpoint", "riemann_middle"), ("gauss_legendre", "gausslegendre")):
        theirs = path.attribute(start, 0.1, target, n_steps=20, method=name)
        ours = IntegratedGradients(points=20, baseline=0.1, rule=rule, **settings)
        close(ours(model, x), theirs)

    # captum draws its own noise: hand it ours, row by row, as it expects it.
    explainer = SmoothGrad(samples=7, sigma=0.2, **settings)
    noise = explainer.path(torch.zeros_like(x), 0, 7)
    monkeypatch.setattr(torch, "normal", lambda *_, **__: noise.transpose(0, 1).flatten(0, 1))
    tunnel = captum.attr.NoiseTunnel(saliency)
    theirs = tunnel.attribute(start, "smoothgrad", 7, stdevs=0.2, target=target, abs=False)
    close(explainer(model, x), theirs)


@pytest.mark.parametrize(
    ("rule", "order"), [("left", 1), ("right", 1), ("midpoint", 2), ("trapezoid", 2)]
)
def test_integrated_gradients_add_up_with_the_order_of_their_rule(rule, order):
    model, x = make(lambda: mlp(act="tanh"), dtype=F64), 3 * randn(5, 6, dtype=F64)
    target = torch.zeros(5).long()
    rise = (model(x) - model(torch.zeros_like(x)))[:, 0].detach()

    def error(points):
        settings = {"of": "logit", "reduce": "signed", "rule": rule}
        total = IntegratedGradients(points=points, **settings)(model, x, target).sum(1)
        return (total - rise).abs().mean().log2()

    # Twice the intervals; a trapezoid has one point more than intervals.
    fine, coarse = (65, 33) if rule == "trapezoid" else (64, 32)
    assert error(coarse) - error(fine) == pytest.approx(order, abs=0.25)


def test_gauss_legendre_is_exact_where_the_others_are_not():
    model, x = make(lambda: mlp(act="tanh"), dtype=F64), randn(5, 6, dtype=F64)
    rise = (model(x) - model(torch.zeros_like(x)))[:, 1].detach()
    explainer = IntegratedGradients(of="logit", reduce="signed", points=20, rule="gauss_legendre")
    torch.testing.assert_close(explainer(model, x, 1).sum(1), rise, atol=1e-9, rtol=0)


EXPLAINERS = [
    Gradient(of="probability"),
    Gradient(of="loss"),
    GradientTimesInput(of="probability"),
    SmoothGrad(of="probability", sigma=0.05),
    IntegratedGradients(of="probability", rule="right"),
]


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: f"{type(e).__name__}-{e.of}")
@pytest.mark.parametrize("confidence", [40.0, 400.0, 4000.0])
def test_a_confident_model_keeps_its_ranking(explainer, confidence):
    """Logits of 40 and far more; a plain softmax gradient is exactly 0 there in float32."""
    model = make(lambda: mlp(12, "tanh", 2))
    x = randn(20, 12)
    calm = model(x).detach()
    scale = confidence / (calm[:, 0] - calm[:, 1]).abs().min()
    head = model.layers[-1]
    head.weight.data *= scale
    head.bias.data *= scale
    assert (model(x)[:, 0] - model(x)[:, 1]).abs().min() >= 0.99 * confidence
    naive = torch.func.vmap(torch.func.grad(lambda r: model(r[None]).softmax(1).amax()))(x)
    assert (naive == 0).all(1).any()
    exact = explainer(model.double(), x.double())
    scores = explainer(model.float(), x)
    assert (scores > 0).all()
    if confidence == 40.0:  # float64 itself is exact only so far
        assert torch.equal(scores.argsort(dim=1), exact.argsort(dim=1))
    if isinstance(explainer, Gradient):
        plain = Gradient()(model, x)
        assert torch.equal(scores.argsort(dim=1), plain.argsort(dim=1))


def test_one_logit_reads_as_two():
    one = make(lambda: MLP(6, classes=1), dtype=F64)
    x = randn(9, 6, dtype=F64)

    class Two(nn.Module):
        def forward(self, x):
            z = one(x)
            return torch.cat([torch.zeros_like(z), z], 1)

    class Flat(nn.Module):
        def forward(self, x):
            return one(x)[:, 0]

    for of in ("log_odds", "probability", "loss"):
        expected = Gradient(of=of, reduce="signed")(Two(), x)
        for model in (one, Flat()):
            torch.testing.assert_close(Gradient(of=of, reduce="signed")(model, x), expected)


def test_images_sum_over_channels_and_pairs_keep_both_inputs():
    model, x = make(cnn), randn(3, 2, 8, 8)
    raw = Gradient(reduce="signed")(model, x).view(3, 2, 64)
    torch.testing.assert_close(Gradient(reduce="abs_sum")(model, x), raw.abs().sum(1))
    twin, pair = make(lambda: Siamese(2 * 16)), randn(3, 2, 2, 4, 4)
    raw = Gradient(reduce="signed")(twin, pair).view(3, 2, 2, 16)
    expected = raw.abs().sum(2)
    torch.testing.assert_close(Gradient(reduce="abs_sum")(twin, pair), expected.flatten(1))
    for part in (0, 1):
        scores = Gradient(reduce="abs_sum", part=part)(twin, pair)
        torch.testing.assert_close(scores, expected[:, part])


def test_an_undirected_edge_is_scored_by_both_of_its_entries():
    model = make(lambda: GraphNet(5), dtype=F64)
    x = randn(2, 5, 5, dtype=F64)
    x = (x + x.mT) / 2
    target = predict(model, x)
    scores = Gradient(of="logit", reduce="upper")(model, x, target)
    step = 1e-6
    edges = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    for place, (i, j) in enumerate(edges):
        moved = x.clone()
        moved[:, i, j] += step
        moved[:, j, i] += step
        rise = (model(moved) - model(x)).gather(1, target[:, None])[:, 0] / step
        torch.testing.assert_close(scores[:, place], rise.detach(), atol=1e-5, rtol=1e-4)
    assert scores.shape == (2, len(edges))
    pairs = torch.stack([x, x.flip(0)], 1)

    class Both(nn.Module):
        def forward(self, pair):
            return model(pair[:, 0]) + model(pair[:, 1])

    both = GradientTimesInput(reduce="abs_upper")(Both(), pairs)
    assert both.shape == (2, 20)
    assert (both >= 0).all()


def test_normalized_scores_sum_to_one_and_zeros_stay():
    model, x = make(mlp), randn(4, 6)
    plain, shares = Gradient()(model, x), Gradient(normalize=True)(model, x)
    torch.testing.assert_close(shares.sum(1), torch.ones(4))
    torch.testing.assert_close(shares, plain / plain.sum(1, keepdim=True))
    still = GradientTimesInput(normalize=True)(model, torch.zeros(2, 6))
    assert torch.equal(still, torch.zeros(2, 6))


def test_concepts_are_the_activations_before_the_head():
    model, x = make(lambda: ResidualNet(2, nn.ReLU)), randn(3, 2, 6, 6)
    inner = F.relu(model.norm(model.stem(x)))
    inner = F.relu(inner + model.block(inner)).mean((2, 3))
    torch.testing.assert_close(Concept()(model, x), inner.detach())
    maps = model.norm(model.stem(x)).mean((2, 3)).detach()
    torch.testing.assert_close(Concept(layer="norm")(model, x), maps)
    torch.testing.assert_close(Concept(layer="norm", reduce="abs")(model, x), maps.abs())
