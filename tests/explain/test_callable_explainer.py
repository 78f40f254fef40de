"""A function of the user's is an explainer, and what it gets wrong is said in a sentence."""

import functools
import random

import numpy as np
import pytest
import torch

from nets import make, mlp, randn
from r2et.config import config_key
from r2et.errors import InputError
from r2et.explain import CallableExplainer, Gradient, as_explainer
from r2et.models import predict

MODEL, X = make(mlp), randn(5, 6)


def slopes(model, x, target):
    """The derivative of the class's own output: Gradient(of="logit", reduce="signed")."""
    x.requires_grad_()
    out = model(x).gather(1, target[:, None]).sum()
    return torch.autograd.grad(out, x)[0]


def shapes(_model, x, target):
    return x.new_tensor([[len(x), len(target), *x.shape[1:]]]).repeat(len(x), 1)


class Weighted:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, model, x, target):
        return self.weight * slopes(model, x, target)


def test_scores_are_the_functions():
    mine = CallableExplainer(slopes)
    expected = Gradient(of="logit", reduce="signed")
    for target in (None, 1, torch.tensor([0, 1, 1, 0, 1])):
        torch.testing.assert_close(mine(MODEL, X, target), expected(MODEL, X, target))
    torch.testing.assert_close(
        CallableExplainer(slopes, reduce="abs", normalize=True)(MODEL, X),
        Gradient(of="logit", normalize=True)(MODEL, X),
    )


def test_a_function_is_called_on_chunks_with_the_class_of_each_row():
    assert CallableExplainer(shapes, chunk=2)(MODEL, X)[:, :2].tolist() == [
        *[[2, 2]] * 4,
        [1, 1],
    ]
    seen = []
    CallableExplainer(lambda _, x, target: seen.append(target) or x)(MODEL, X)
    assert torch.equal(seen[0], predict(MODEL, X))


def test_arrays_and_other_dtypes_are_taken():
    scores = CallableExplainer(lambda _, x, __: x.numpy().astype(np.float64))(MODEL, X)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, X)
    assert CallableExplainer(lambda _, x, __: x > 0)(MODEL, X).unique().tolist() == [0, 1]


def test_inputs_modes_and_generators_come_back_as_they_were():
    def careless(model, x, _target):
        assert not model.training
        x.zero_()
        return torch.rand(len(x), 3) + random.random() + np.random.rand()  # noqa: NPY002

    model, before = make(mlp).train(), X.clone()
    state = torch.get_rng_state()
    mine = CallableExplainer(careless)
    first = mine(model, X)
    assert torch.equal(mine(model, X), first)
    assert not torch.equal(CallableExplainer(careless, seed=1)(model, X), first)
    assert torch.equal(X, before)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training


def test_it_is_known_by_its_functions_address():
    config = CallableExplainer(slopes).config()
    assert config["function"] == f"{__name__}:slopes"
    assert (
        repr(CallableExplainer(slopes)) == f"CallableExplainer({__name__}:slopes, reduce='signed')"
    )
    one = lambda _, x, __: x  # noqa: E731
    other = lambda _, x, __: -x  # noqa: E731
    keys = [
        config_key(CallableExplainer(f).config()) for f in (slopes, shapes, one, other, Weighted(2))
    ]
    assert len(set(keys)) == 5
    held = object()  # nothing that JSON can hold
    name = CallableExplainer(lambda _, x, __: (held, x)[1]).config()["function"]
    assert name.endswith("<lambda>")
    partial = CallableExplainer(functools.partial(slopes))
    assert partial.config()["function"]["function"] == f"{__name__}:slopes"
    assert "0x" not in repr(partial) + repr(CallableExplainer(Weighted(2)))


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda _, x, __: x[:2], r"got float32 tensor of shape \(2, 6\)"),
        (lambda _, x, __: x[:, 0], r"got float32 tensor of shape \(5,\)"),
        (lambda _, x, __: x[:, :0], r"got float32 tensor of shape \(5, 0\)"),
        (lambda _, x, __: x + 1j, "got "),
        (lambda *_: None, "got None"),
        (lambda _, x, __: x.tolist(), "got "),
        (lambda _, x, __: x.numpy().astype(str), "got "),
    ],
)
def test_a_bad_return_gets_a_sentence(function, got):
    expected = (
        r"^CallableExplainer: function must be one that returns scores \(5, n\), a tensor or "
        f"array of real numbers, {got}.*\\.$"
    )
    with pytest.raises(InputError, match=expected):
        CallableExplainer(function)(MODEL, X)


def test_a_score_that_is_no_number_names_its_row():
    def broken(_model, x, _target):
        return torch.where(torch.arange(len(x))[:, None] == 3, torch.nan, x)

    with pytest.raises(InputError, match=r"must be .* finite at x, got NaN or infinity in row 3\."):
        CallableExplainer(broken)(MODEL, X)


def test_a_graph_is_refused():
    with pytest.raises(InputError, match="create_graph must be False"):
        CallableExplainer(slopes)(MODEL, X, create_graph=True)


@pytest.mark.parametrize(
    "value",
    [lambda x: x, lambda model, x: x, Gradient, "Saliency", 3, None, MODEL],  # noqa: ARG005
)
def test_what_is_no_such_function_gets_a_sentence(value):
    expected = r"^audit: explainer must be an Explainer of r2et.explain, or a function \(model, x,"
    with pytest.raises(InputError, match=expected):
        as_explainer("audit", value)
    with pytest.raises(InputError, match="CallableExplainer: function must be a function"):
        CallableExplainer(value)


def test_explainers_stay_as_they_are():
    gradient = Gradient()
    assert as_explainer("audit", gradient) is gradient
    assert as_explainer("audit", slopes) == CallableExplainer(slopes)
    assert CallableExplainer(slopes).equivalent() is None
    with pytest.raises(InputError, match="function must be"):
        CallableExplainer(gradient)
