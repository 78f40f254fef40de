"""What holds for every penalty on every kind of model."""

import warnings

import pytest
import torch
from torch import nn

from contracts import keeps_penalty_promises
from nets import GraphNet, ResidualNet, Siamese, cnn, mlp
from r2et.data import Data, Origin, Split
from r2et.errors import InputError
from r2et.explain import Captum, Concept, Gradient
from r2et.models import MLP
from r2et.penalty import (
    R2ET,
    SSR,
    AdversarialTraining,
    BallR2ET,
    CertifiedRanking,
    CertifiedRatio,
    EstimatedHessian,
    ExactHessian,
    Penalty,
    ReasonGaps,
)
from r2et.train import fit, recipe

PENALTIES = [
    R2ET(k=3),
    R2ET(k=3, pairs="closest", form="exponential", by="product"),
    R2ET(k=3, pairs="anchor", l2=0.0),
    BallR2ET(k=3),
    BallR2ET(k=3, ends="worst"),
    EstimatedHessian(),
    ExactHessian(),
    SSR(steps=2),
    AdversarialTraining(k=3),
    CertifiedRatio(k=3, cap=1e9),
    CertifiedRanking(k=3, radius=0.1),
    ReasonGaps(k=3),
]
MODELS = {
    "mlp": (lambda: mlp(), (6,)),
    "one logit": (lambda: MLP(6, classes=1), (6,)),
    "cnn": (lambda: cnn(), (2, 8, 8)),
    "norm and dropout": (lambda: ResidualNet(1, nn.ReLU), (1, 4, 4)),
    "siamese": (lambda: Siamese(6), (2, 6)),
    "graph": (lambda: GraphNet(5), (5, 5)),
}
UNPROVED = ("siamese",)  # what CertifiedRanking has no bounds for


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "penalty", PENALTIES, ids=lambda p: f"{type(p).__name__}-{getattr(p, 'pairs', '')}"
)
def test_contract(penalty: Penalty, kind):
    torch.manual_seed(0)
    make, shape = MODELS[kind]
    model, x = make().train(), torch.randn(4, *shape)
    if isinstance(penalty, CertifiedRanking) and kind in UNPROVED:
        with pytest.raises(InputError, match=r"^margins: model must be made of [^\n]*, got .*\.$"):
            penalty(model, x)
        return
    keeps_penalty_promises(penalty, model, x)


@pytest.mark.parametrize(
    "penalty", PENALTIES, ids=lambda p: f"{type(p).__name__}-{getattr(p, 'pairs', '')}"
)
def test_rows_are_apart_and_a_shared_forward_pass_changes_nothing(penalty):
    torch.manual_seed(0)
    model, x = mlp(act="tanh").double(), torch.randn(4, 6).double()
    noise = torch.randn_like(x)
    rows = penalty(model, x, noise=noise)
    for i in range(4):
        alone = penalty(model, x[i : i + 1], noise=noise[i : i + 1])
        torch.testing.assert_close(alone[0], rows[i])
    x.requires_grad_()
    shared = penalty(model, x, out=model(x), noise=noise)
    torch.testing.assert_close(shared, rows)
    assert x.grad is None


CONCEPTS = Concept()


@pytest.mark.parametrize(
    "penalty",
    [
        *PENALTIES,
        R2ET(k=3, explainer=CONCEPTS),
        R2ET(k=3, explainer=CONCEPTS, l2=0.0),
        EstimatedHessian(explainer=CONCEPTS),
        BallR2ET(k=3, l2=0.0),
        CertifiedRatio(k=3, samples=0),
    ],
    ids=lambda p: f"{type(p).__name__}-{type(p.explainer).__name__}-{getattr(p, 'l2', '')}",
)
def test_a_penalty_says_whether_it_draws(penalty):
    torch.manual_seed(0)
    model, x = mlp(act="tanh"), torch.randn(4, 6)
    before = torch.get_rng_state()
    penalty(model, x)
    assert penalty.random == (not torch.equal(before, torch.get_rng_state()))
    before = torch.get_rng_state()
    penalty(model, x, noise=torch.ones_like(x))
    assert torch.equal(before, torch.get_rng_state())


def test_training_on_concepts_depends_on_its_seed_alone(monkeypatch):
    seen = []

    def rows(self, batch):  # noqa: ARG001
        seen.append(batch._noise)
        return batch.raw.sum(1) * 0

    monkeypatch.setattr(EstimatedHessian, "rows", rows)
    penalty = EstimatedHessian(explainer=CONCEPTS)
    torch.manual_seed(0)
    x, y = torch.rand(40, 6), torch.arange(40) % 2
    part = Split(x, y)
    data = Data(
        name="rows",
        train=part,
        val=part,
        test=part,
        names=tuple("abcdef"),
        groups=(),
        k=3,
        source=Origin("a test"),
        classes=("0", "1"),
    )
    fit(MLP(6), data, recipe("est-h", penalty=penalty), k=3, epochs=1, seed=0)
    assert seen
    assert all(noise is not None and noise.shape[1:] == (6,) for noise in seen)


def test_penalised_class_is_the_predicted_one_unless_said():
    torch.manual_seed(0)
    model, x = mlp(act="tanh"), torch.randn(8, 6)
    predicted = model(x).argmax(1)
    penalty = R2ET(k=2)
    torch.testing.assert_close(penalty(model, x), penalty(model, x, predicted))
    other = penalty(model, x, (predicted + 1) % 3)
    assert not torch.allclose(other, penalty(model, x))
    torch.testing.assert_close(penalty(model, x, 0), penalty(model, x, torch.zeros(8).long()))


def test_flat_curvature_is_said():
    torch.manual_seed(0)
    model, x = MLP(6), torch.randn(16, 6)
    for penalty in (
        EstimatedHessian(explainer=Gradient(), step=1e-6),
        EstimatedHessian(explainer=Gradient(), by="product"),
        ExactHessian(explainer=Gradient()),
        SSR(explainer=Gradient()),
        R2ET(k=2, explainer=Gradient(), by="product"),
        CertifiedRatio(k=2, explainer=Gradient()),
    ):
        with pytest.warns(UserWarning, match="curvature is exactly 0"):
            rows = penalty(model, x)
        assert torch.isfinite(rows).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EstimatedHessian()(model, x)  # of the probability: curved
        CertifiedRatio(k=2)(model, x)
        R2ET(k=2, explainer=Gradient(), l2=0.0)(model, x)  # asks for none


def test_half_of_the_ways_to_be_wrong():
    model, x = mlp(), torch.randn(4, 6)
    for make, message in [
        (lambda: R2ET(k=0), "R2ET: k must be a positive whole number, got 0."),
        (lambda: R2ET(k=True), "R2ET: k must be a positive whole number, got True."),
        (lambda: R2ET(l1=-1.0), "R2ET: l1 must be 0 or a positive number, got -1.0."),
        (lambda: R2ET(l2=float("nan")), "R2ET: l2 must be 0 or a positive number, got nan."),
        (lambda: R2ET(pairs="some"), "R2ET: pairs must be one of all, anchor, closest, got some."),
        (lambda: R2ET(count=3), "R2ET: count must be None, or a positive whole number"),
        (lambda: R2ET(form="log"), "R2ET: form must be gap or exponential, got log."),
        (lambda: R2ET(by="hand"), "R2ET: by must be difference or product, got hand."),
        (lambda: R2ET(step=0.0), "R2ET: step must be positive, got 0.0."),
        (lambda: R2ET(explainer="grad"), "R2ET: explainer must be an Explainer that has a graph"),
        (
            lambda: BallR2ET(hinge=0.4, form="exponential"),
            "BallR2ET: hinge must be None with form exponential, got 0.4.",
        ),
        (
            lambda: BallR2ET(ends="nearest"),
            "BallR2ET: ends must be random or worst, got nearest.",
        ),
        (lambda: BallR2ET(radius=-1), "BallR2ET: radius must be positive, got -1."),
        (lambda: SSR(steps=0), "SSR: steps must be a positive whole number, got 0."),
        (lambda: R2ET(k=6)(model, x), "R2ET: k must be in 1..5 for 6 features, got 6."),
        (lambda: R2ET()(model, x[0]), "R2ET: x must be a batch"),
        (lambda: R2ET(k=2)(model, x * torch.nan), "R2ET: x must be finite"),
        (lambda: R2ET(k=2)(lambda v: v, x), "R2ET: model must be a torch.nn.Module"),
        (lambda: R2ET(k=2)(model, x, out=model(x)), "R2ET: out must be logits computed from x"),
        (lambda: R2ET(k=2)(model, x, order=torch.zeros(3, 6).long()), "R2ET: order must be"),
        (lambda: R2ET(k=2)(model, x, order=torch.tensor(1)), "order must be a tensor of 4 rows"),
        (
            lambda: R2ET(k=2)(model, x, order=torch.arange(6.0).repeat(4, 1)),
            "R2ET: order must be a tensor of whole numbers, int32 or int64, got float32",
        ),
        (
            lambda: R2ET(k=2)(model, x, order=torch.arange(1, 7).repeat(4, 1)),
            "R2ET: order must be of features 0..5, got 6.",
        ),
        (
            lambda: R2ET(k=2)(model, x, order=torch.arange(-1, 5).repeat(4, 1)),
            "R2ET: order must be of features 0..5, got -1.",
        ),
        (
            lambda: AdversarialTraining(k=2)(model, x, 3),
            "AdversarialTraining: target must be in 0..2, got 3.",
        ),
        (lambda: R2ET(k=2)(model, x, 3), "R2ET: target must be in 0..2, got 3."),
        (
            lambda: R2ET(k=2, by="product", explainer=Concept())(model, x),
            "R2ET: explainer must be one with x's shape for an exact product",
        ),
    ]:
        with pytest.raises(InputError) as caught:
            make()
        assert message in str(caught.value)


def test_an_explanation_without_a_graph_is_refused():
    captum = pytest.importorskip("captum.attr")
    with pytest.raises(InputError, match="an Explainer that has a graph"):
        R2ET(explainer=Captum(captum.Saliency))


def test_a_model_that_cuts_the_graph_is_refused():
    class Cut(nn.Module):
        def forward(self, x):
            return x.detach()[:, :2]

    with pytest.raises(InputError, match="differentiable in x"):
        R2ET(k=2)(Cut(), torch.randn(3, 6))
