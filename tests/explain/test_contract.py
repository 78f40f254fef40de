"""What every explainer promises: no trace, one value per row whatever the batch, a true graph."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from nets import GraphNet, ResidualNet, Siamese, cnn, make, mlp, randn
from r2et.explain import (
    CallableExplainer,
    Captum,
    Concept,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    SmoothGrad,
)
from r2et.models import predict

F64 = torch.float64
OURS = [
    Gradient(),
    Gradient(of="probability", reduce="signed", normalize=True),
    Gradient(of="loss"),
    GradientTimesInput(of="probability"),
    SmoothGrad(samples=4, sigma=0.1),
    SmoothGrad(samples=4, sigma=0.1, of="probability"),
    IntegratedGradients(points=4, reduce="signed"),
    IntegratedGradients(points=4, of="loss"),
    Concept(),
]
ALL = [
    *OURS,
    Captum("IntegratedGradients", settings={"n_steps": 5}),
    Captum("Saliency"),
    Captum("NoiseTunnel", around="Saliency", settings={"nt_samples": 3}),
    CallableExplainer(lambda model, x, _: x * model(x).sum(1)[:, None, None, None]),
    Captum("GradientShap", settings={"baselines": torch.zeros(2, 2, 6, 6), "n_samples": 3}),
]


def name(explainer):
    return f"{type(explainer).__name__}-{getattr(explainer, 'of', '')}"


def snapshot(model):
    """Everything a careless explainer could leave behind on a model."""
    return {
        "state": {k: v.clone() for k, v in model.state_dict().items()},
        "grad": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "mode": [m.training for m in model.modules()],
        "hooks": [
            (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks))
            for m in model.modules()
        ],
        "attributes": [sorted(vars(m)) for m in model.modules()],
    }


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b, strict=True))
    return a == b


@pytest.mark.parametrize("explainer", ALL, ids=name)
def test_nothing_leaves_a_trace(explainer):
    model = make(lambda: ResidualNet(2, nn.ReLU)).train()
    model.block.eval()  # mixed modes must come back as they were
    model.head.weight.grad = torch.ones_like(model.head.weight)
    model.stem.bias.requires_grad_(False)
    x = randn(4, 2, 6, 6)
    before, x_before = snapshot(model), x.clone()
    torch_state = torch.get_rng_state()
    numpy_state, python_state = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    explainer(model, x)
    if explainer in OURS:
        explainer(model, x, create_graph=True)
    assert same(snapshot(model), before)
    assert torch.equal(x, x_before)
    assert not x.requires_grad
    assert x.grad is None
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002
    assert random.getstate() == python_state
    assert torch.is_grad_enabled()


def test_a_failing_model_gets_its_modes_back():
    model = make(mlp).layers.train()
    with pytest.raises(ValueError, match="Gradient: model must be"):
        Gradient()(model, randn(2, 5))
    assert all(m.training for m in model.modules())


@pytest.mark.parametrize("explainer", ALL, ids=name)
def test_a_batch_is_explained_as_its_rows_are(explainer):
    model, x = make(lambda: ResidualNet(2, nn.ReLU), dtype=F64), randn(7, 2, 6, 6, dtype=F64)
    whole = explainer(model, x)
    assert torch.equal(explainer(model, x), whole)
    if explainer != ALL[-1]:  # captum's GradientShap draws its own noise for each row
        rows = torch.cat([explainer(model, row[None]) for row in x])
        torch.testing.assert_close(rows, whole)
        for chunk in (1, 3, 5, 100):
            settings = {k: v for k, v in vars(explainer).items() if k != "chunk"}
            small = type(explainer)(**settings, chunk=chunk)
            torch.testing.assert_close(small(model, x), whole)


def test_chunks_bound_the_rows_of_every_forward_pass():
    seen = []

    class Spy(nn.Module):
        def forward(self, x):
            seen.append(len(x))
            return torch.stack([x.sum(1), x.prod(1)], 1)

    for explainer in (SmoothGrad(samples=30, chunk=8), IntegratedGradients(points=30, chunk=8)):
        seen.clear()
        explainer(Spy(), randn(11, 3))
        assert max(seen) == 8


@pytest.mark.parametrize("explainer", OURS[:-1], ids=name)
def test_permuting_features_permutes_scores(explainer):
    model, x = make(mlp, dtype=F64), randn(5, 6, dtype=F64)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    shuffled = copy.deepcopy(model)
    shuffled.layers[0].weight.data = model.layers[0].weight.data[:, order]
    if isinstance(explainer, SmoothGrad):
        explainer = SmoothGrad(samples=4, sigma=0.0, of=explainer.of)  # noise has its own order
    torch.testing.assert_close(explainer(shuffled, x[:, order]), explainer(model, x)[:, order])


SMOOTH = {
    "mlp": (lambda: mlp(act="softplus"), (3, 6)),
    "cnn": (lambda: cnn(nn.Tanh), (1, 2, 8, 8)),
    "resnet": (lambda: ResidualNet(1, nn.SiLU), (2, 1, 4, 4)),
    "pair": (lambda: Siamese(6), (2, 2, 6)),
    "graph": (lambda: GraphNet(4), (2, 4, 4)),
}


@pytest.mark.parametrize("explainer", OURS, ids=name)
@pytest.mark.parametrize("net", SMOOTH)
def test_second_derivatives_pass_gradcheck(net, explainer):
    build, shape = SMOOTH[net]
    model = make(build, dtype=F64)
    x = randn(*shape, dtype=F64).requires_grad_()
    target = predict(model, x.detach())
    if net == "pair" and isinstance(explainer, Concept):
        explainer = Concept(layer="head")  # the embedding runs twice

    def of_x(x):
        return explainer(model, x, target, create_graph=True)

    assert torch.autograd.gradcheck(of_x, x)
    names = [n for n, _ in model.named_parameters()][:2]
    values = [p.detach().clone().requires_grad_() for _, p in model.named_parameters()][:2]

    class Bound(nn.Module):
        """The network with its first parameters taken from outside."""

        def __init__(self, weights):
            super().__init__()
            self.inner, self.weights = model, dict(zip(names, weights, strict=True))

        def forward(self, x):
            return functional_call(self.inner, self.weights, (x,))

    if isinstance(explainer, Concept) and explainer.layer:
        explainer = Concept(layer="inner.head")

    def of_weights(*weights):
        return explainer(Bound(weights), x.detach(), target, create_graph=True)

    assert torch.autograd.gradcheck(of_weights, tuple(values))


def test_scores_without_a_graph_carry_none():
    model, x = make(mlp), randn(3, 6).requires_grad_()
    assert not Gradient()(model, x).requires_grad
    assert Gradient()(model, x, create_graph=True).requires_grad
    assert Gradient()(model, x.detach(), create_graph=True).requires_grad  # in the weights


def test_any_grad_mode_will_do():
    model, x = make(mlp), randn(3, 6)
    expected = Gradient()(model, x)
    with torch.no_grad():
        torch.testing.assert_close(Gradient()(model, x), expected)
        assert Gradient()(model, x, create_graph=True).requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(Gradient()(model, x.clone()), expected)


def test_at_fixes_the_target_and_takes_stacked_copies():
    model, x = make(mlp), randn(5, 6)
    scores = Gradient(reduce="signed").at(model, x)
    far = 10 * randn(3, 5, 6, seed=4)
    explained = scores(far.flatten(0, 1)).view(3, 5, 6)
    target = predict(model, x)
    for points, part in zip(far, explained, strict=True):
        torch.testing.assert_close(part, Gradient(reduce="signed")(model, points, target))
    assert (predict(model, far.flatten(0, 1)).view(3, 5) != target).any()
    assert scores(x.clone().requires_grad_()).requires_grad
    assert not scores(x).requires_grad


def test_settings_are_values():
    for explainer in OURS:
        assert eval(repr(explainer)) == explainer
        assert hash(explainer) == hash(copy.deepcopy(explainer))
    assert SmoothGrad(seed=1) != SmoothGrad(seed=2)
    with pytest.raises(AttributeError):
        Gradient().of = "logit"


def test_noise_follows_the_seed():
    model, x = make(lambda: mlp(act="tanh")), randn(3, 6)
    a, b = SmoothGrad(seed=1)(model, x), SmoothGrad(seed=2)(model, x)
    assert not torch.equal(a, b)
    assert torch.equal(a, SmoothGrad(seed=1)(model, x))
