"""Models as people have them: in place, attention, half precision, registered out of order."""

import captum.attr
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nets import make, mlp, randn
from r2et.errors import InputError
from r2et.explain import (
    Captum,
    Concept,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    SmoothGrad,
)
from r2et.models import predict

X = randn(4, 6)


def test_a_model_that_starts_in_place_leaves_x_alone():
    model = make(lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 3)))
    plain = nn.Sequential(nn.ReLU(), model[1])
    for explainer in (Gradient(), SmoothGrad(), IntegratedGradients(), Concept()):
        x = X.clone()
        torch.testing.assert_close(explainer(model, x), explainer(plain, x))
        assert torch.equal(x, X)
    x = X.clone()
    predict(model, x)
    Gradient().at(model, x)
    Captum("FeatureAblation")(model, x)
    assert torch.equal(x, X)


def test_concepts_are_taken_before_an_activation_in_place():
    model = make(lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 2)))
    expected = model[0](X).detach()
    assert (expected < 0).any()
    torch.testing.assert_close(Concept(layer="0")(model, X), expected)


class HeadFirst(nn.Module):
    """Its head is registered before its body."""

    def __init__(self):
        super().__init__()
        self.head, self.body = nn.Linear(8, 2), nn.Linear(6, 8)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


class Tokens(nn.Module):
    """(B, T, 6) -> logits; its head sees (B, T, 8) and averages over T."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x))).mean(1)


def test_concepts_are_those_of_the_layer_that_runs_last():
    model = make(HeadFirst)
    torch.testing.assert_close(Concept()(model, X), torch.tanh(model.body(X)).detach())
    model, x = make(Tokens), randn(3, 5, 6)
    expected = torch.tanh(model.body(x)).mean(1).detach()
    torch.testing.assert_close(Concept()(model, x), expected)
    torch.testing.assert_close(Concept(layer="body")(model, x), model.body(x).mean(1).detach())


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.inner(x).mean(1))


def test_attention_has_second_derivatives():
    model, x = make(Attention, dtype=torch.float64), randn(2, 3, 6, dtype=torch.float64)
    scores = Gradient(reduce="signed").at(model, x)
    step, direction = 1e-6, randn(2, 3, 6, seed=2, dtype=torch.float64)
    point = x.clone().requires_grad_()
    weights = randn(2, 18, seed=3, dtype=torch.float64)
    (slope,) = torch.autograd.grad((weights * scores(point)).sum(), point)
    moved = scores(x + step * direction) - scores(x - step * direction)
    expected = (weights * moved).sum() / (2 * step)
    torch.testing.assert_close((slope * direction).sum(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_the_scale_of_the_probability(dtype):
    """p (1 - p) at a log-odds of 8 is 0.000335; no floor of half precision may stand in for it."""
    model = nn.Linear(2, 1).to(dtype)
    model.weight.data, model.bias.data = (
        torch.tensor([[1.0, 2.0]]).to(dtype),
        torch.zeros(1).to(dtype),
    )
    x = torch.tensor([[4.0, 2.0]], dtype=dtype)
    scores = Gradient(of="probability")(model, x)
    p = torch.tensor(8.0).sigmoid()
    expected = p * (1 - p) * torch.tensor([[1.0, 2.0]])
    torch.testing.assert_close(scores.float(), expected, rtol=1e-2, atol=0)


class Root(nn.Module):
    def forward(self, x):
        return torch.stack([x.abs().sqrt().sum(1), x.sum(1)], 1)


class Steps(nn.Module):
    def forward(self, x):
        return torch.stack([torch.round(3 * x).sum(1), 0 * x.sum(1)], 1)


class Igamma(nn.Module):
    def forward(self, x):
        return torch.stack([torch.igamma(x.exp(), x.exp()).sum(1), x.sum(1)], 1)


class Raises(nn.Module):
    def forward(self, _):
        raise KeyError("no such head")


@pytest.mark.parametrize(
    ("model", "x", "message"),
    [
        (
            Root(),
            torch.zeros(2, 6),
            "Gradient: model must be one whose explanation is finite at x, "
            "got NaN or infinity in row 0.",
        ),
        (
            Steps(),
            X,
            "Gradient: model must be differentiable in x (no detach, argmax, numpy or no_grad "
            "inside), got a gradient of exactly 0 in every row, while outputs differ.",
        ),
        (Igamma(), X, "Gradient: model must be differentiable in x (no detach, argmax, numpy or"),
        (
            Raises(),
            X,
            "Gradient: model must be a callable that takes x, float32 (4, 6), "
            "got KeyError: 'no such head'.",
        ),
        (
            torch.sin,
            X,
            "Gradient: model must be a torch.nn.Module, got builtin_function_or_method.",
        ),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_models_that_cannot_be_explained(model, x, message, create_graph):
    with pytest.raises(InputError) as caught:
        Gradient()(model, x, create_graph=create_graph)
    assert str(caught.value).startswith(message)


def test_stacked_copies_must_be_whole():
    scores = Gradient().at(make(mlp), X)
    with pytest.raises(InputError, match=r"Gradient: points must be stacked copies of 4 rows, got"):
        scores(X[:3])


def test_captum_methods_leave_no_attribute_behind():
    model = make(mlp)
    before = [set(vars(m)) for m in model.modules()]
    Captum("LRP", of="logit")(make(lambda: mlp(act="relu")), X)
    with pytest.raises(InputError):
        Captum("DeepLift", settings={"baselines": torch.zeros(4, 5)})(model, X)
    assert [set(vars(m)) for m in model.modules()] == before
    plain = make(lambda: mlp(act="relu"))
    names = [set(vars(m)) for m in plain.modules()]
    Captum(captum.attr.LRP, of="logit")(plain, X)
    assert [set(vars(m)) for m in plain.modules()] == names


def test_parts_and_baselines_by_value():
    class Two(nn.Module):
        def forward(self, x):
            a, b = x[:, 0], x[:, 1]
            return torch.stack([(a**2).sum(1), 3 * b.sum(1)], 1)

    pair = randn(3, 2, 4)
    zero = torch.zeros(3).long()
    for part, expected in ((0, 2 * pair[:, 0] ** 2), (1, 0 * pair[:, 1])):
        scores = GradientTimesInput(of="logit", reduce="signed", part=part)(Two(), pair, zero)
        torch.testing.assert_close(scores, expected)
    start = randn(8, seed=5)
    scores = IntegratedGradients(of="logit", reduce="signed", baseline=start.tolist())(
        Two(), pair, zero
    )
    a, a0 = pair[:, 0], start.view(2, 4)[0]
    expected = torch.cat([(a - a0) * (a + a0), torch.zeros(3, 4)], 1)
    torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)


def test_signed_scores_are_normalised_by_their_absolute_sum():
    scores = Gradient(reduce="signed", normalize=True)(make(mlp), X)
    assert (scores < 0).any()
    torch.testing.assert_close(scores.abs().sum(1), torch.ones(4))


def test_smoothgrads_defaults_are_the_papers_for_tables():
    model = make(lambda: mlp(act="tanh"))
    scores = SmoothGrad()(model, X)
    torch.testing.assert_close(scores, SmoothGrad(samples=50, sigma=0.5**0.5, seed=0)(model, X))
    noise = SmoothGrad(samples=4000).path(torch.zeros(1, 6), 0, 4000)
    assert noise.var().item() == pytest.approx(0.5, rel=0.03)


def test_ties_of_logits_go_to_the_lower_class():
    class Tied(nn.Module):
        def forward(self, x):
            same = x.sum(1)
            return torch.stack([same - 1, same, same], 1)

    assert predict(Tied(), X).tolist() == [1, 1, 1, 1]
    assert predict(nn.Linear(6, 1).requires_grad_(False), 0 * X).shape == (4,)
    zero = nn.Linear(6, 1)
    zero.weight.data.zero_()
    zero.bias.data.zero_()
    assert predict(zero, X).tolist() == [0, 0, 0, 0]


def test_a_target_elsewhere_is_refused():
    with pytest.raises(InputError, match=r"Gradient: target must be on cpu, got int64 tensor"):
        Gradient()(make(mlp), X, torch.zeros(4, dtype=torch.long, device="meta"))


def test_functional_relu_is_explained_as_a_module_is():
    class Functional(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner[2](F.relu(self.inner[0](x)))

    inner = make(lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)))
    torch.testing.assert_close(Gradient()(Functional(inner), X), Gradient()(inner, X))
