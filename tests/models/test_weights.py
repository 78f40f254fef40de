"""Weights told apart, and kept while the model goes on."""

import torch
from torch import nn

from r2et.models import MLP
from r2et.models.weights import copied_weights, tensors_digest, weights_digest


def test_a_digest_knows_names_types_shapes_and_the_last_bit():
    x = torch.rand(2, 3)
    nearly = x.clone()
    nearly[1, 2] = torch.nextafter(nearly[1, 2], torch.tensor(2.0))
    others = ({"a": nearly}, {"b": x}, {"a": x.view(3, 2)}, {"a": x.double()}, {"a": x, "b": x})
    digests = {tensors_digest(tensors) for tensors in ({"a": x}, *others)}
    assert len(digests) == 6
    assert tensors_digest({"a": x.t().contiguous().t()}) == tensors_digest({"a": x})


def test_what_is_kept_stays_and_brings_the_model_back():
    model = nn.Sequential(MLP(4), nn.BatchNorm1d(2))
    kept, before = copied_weights(model), weights_digest(model)
    with torch.no_grad():
        model[0].layers[0].weight.add_(1)
        model[1].running_mean.add_(1)
    assert weights_digest(model) != before
    model.load_state_dict(kept)
    assert weights_digest(model) == before


def test_extra_state_that_is_no_tensor_is_passed_over():
    class Own(nn.Linear):
        def get_extra_state(self):
            return {"note": 1}

    assert weights_digest(Own(2, 2)) != weights_digest(nn.Linear(2, 2))
