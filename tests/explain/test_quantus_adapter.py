"""Explanations in the form that Quantus takes: arrays in, arrays of the inputs' shape out."""

import numpy as np
import pytest
import torch

from r2et.errors import InputError
from r2et.explain import Captum, Concept, Gradient, IntegratedGradients, quantus_explain
from r2et.models import MLP, ResNet18


@pytest.mark.parametrize("explainer", [Gradient(), IntegratedGradients(), Captum("Saliency")])
def test_a_table_gets_our_scores(explainer):
    model, x = MLP(5), torch.rand(4, 5)
    targets = np.array([0, 1, 1, 0])
    scores = quantus_explain(explainer)(model, x.numpy(), targets, device="cpu", unknown=3)
    assert isinstance(scores, np.ndarray)
    expected = explainer(model, x, torch.from_numpy(targets))
    np.testing.assert_array_equal(scores, expected.numpy())


def test_a_linear_models_gradient_is_its_weights():
    model = torch.nn.Linear(3, 1).double()
    x = np.random.default_rng(0).random((2, 3))
    scores = quantus_explain(Gradient(of="logit", reduce="signed"))(model, x, [1, 1])
    np.testing.assert_allclose(scores, model.weight.detach().numpy().repeat(2, 0))


def test_pictures_keep_their_shape_or_get_one_channel():
    model, x = ResNet18(width=4), np.random.default_rng(0).random((2, 3, 8, 8))
    assert quantus_explain(Gradient())(model, x, [0, 1]).shape == (2, 3, 8, 8)
    summed = quantus_explain(Gradient(reduce="abs_sum"))(model, x, np.array([[0], [1]]))
    assert summed.shape == (2, 1, 8, 8)
    whole = quantus_explain(Gradient())(model, x, [0, 1])
    np.testing.assert_allclose(summed, whole.sum(1, keepdims=True), rtol=1e-5)


def test_without_targets_the_predicted_class_is_explained():
    model, x = MLP(5), torch.rand(3, 5)
    scores = quantus_explain(Gradient())(model, x)
    np.testing.assert_array_equal(scores, Gradient()(model, x).numpy())


def test_scores_of_something_else_are_refused():
    with pytest.raises(InputError, match=r"explainer must be one with a score for each entry"):
        quantus_explain(Concept())(MLP(5), np.zeros((2, 5)), [0, 0])
    with pytest.raises(InputError, match=r"explainer must be an Explainer"):
        quantus_explain(Gradient)
    with pytest.raises(InputError, match=r"inputs must be numbers"):
        quantus_explain(Gradient())(MLP(2), [["a", "b"]], [0])
    with pytest.raises(InputError, match=r"model must be a torch.nn.Module"):
        quantus_explain(Gradient())("model", np.zeros((2, 5)), [0, 0])
