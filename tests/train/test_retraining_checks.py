"""A retraining that is compared with its start in the middle of an epoch."""

import pytest
import torch
from torch import nn

from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.metrics import split_auc
from r2et.rank import precision_at_k
from r2et.train import fit, recipe
from r2et.train.defaults import default_network
from r2et.train.step import alike_in_both_modes, resting_modules
from training_data import small


@pytest.fixture(scope="module")
def data():
    return small(rows=320)


@pytest.fixture(scope="module")
def vanilla(data):
    chosen = recipe("vanilla", batch=16)
    start = default_network(data)
    return fit(start, data, chosen, epochs=10, keep="last", progress=False).model


def retrained(data, vanilla, lr, **more):
    wild = recipe("r2et-nh", weight=1.0, lr=lr, batch=16, every=1, warm_up=0.0)
    asked = {"agree": 0.7, "keep": "last", "progress": False, "baselines": False, "k": 3}
    return fit(vanilla, data, wild, retrain=True, **{**asked, **more})


def agreement(data, vanilla, model):
    before, after = (Gradient(of="probability")(m, data.val.x) for m in (vanilla, model))
    return float(precision_at_k(before, after, 3).mean())


def test_what_is_kept_is_the_last_that_passed_within_the_epoch(data, vanilla):
    """20 batches an epoch; by epochs the first has left already, and nothing is kept."""
    whole = retrained(data, vanilla, 0.01)
    assert whole.record["epoch_kept"] == -1
    assert whole.record["stopped"]
    fine = retrained(data, vanilla, 0.01, check_every=1)
    assert fine.record["epoch_kept"] == 1
    assert fine.record["stopped"].startswith("the validation AUC fell from")
    at_start, kept = (split_auc(model, data.val) for model in (vanilla, fine.model))
    assert at_start - 0.01 <= kept == fine.record["auc"]


def test_the_ranking_is_looked_at_within_the_epoch_too(data, vanilla):
    fine = retrained(data, vanilla, 0.01, check_every=1, agree=0.99)
    assert fine.record["stopped"].startswith("P@3 with the first ranking fell to 0.9")
    assert agreement(data, vanilla, fine.model) >= 0.99


def test_a_check_that_nothing_fails_changes_nothing(data, vanilla):
    plain = retrained(data, vanilla, 1e-5, epochs=2)
    checked = retrained(data, vanilla, 1e-5, epochs=2, check_every=7)
    assert plain.record["stopped"] is checked.record["stopped"] is None
    assert plain.record["auc"] == checked.record["auc"]
    both = zip(plain.model.parameters(), checked.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in both)
    assert len(checked.history) == 2


def test_a_killed_one_ends_with_the_same_bits(data, vanilla, tmp_path):
    straight = retrained(data, vanilla, 0.003, check_every=3)
    again = retrained(data, vanilla, 0.003, check_every=3, out=tmp_path, save_every=0.0)
    once_more = retrained(data, vanilla, 0.003, check_every=3, out=tmp_path)
    for other in (again, once_more):
        both = zip(straight.model.parameters(), other.model.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in both)
        assert other.record["auc"] == straight.record["auc"]


@pytest.mark.parametrize(
    ("retrain", "every", "given"), [(True, 0, "0"), (True, 1.5, "1.5"), (False, 5, "5")]
)
def test_how_often_is_asked_for_properly(data, retrain, every, given):
    expected = "check_every must be None, or a positive number of batches with retrain=True"
    with pytest.raises(InputError, match=f"fit: {expected}, got {given}"):
        fit(None, data, "wd", retrain=retrain, check_every=every, progress=False)


def normed(seed=0):
    torch.manual_seed(seed)
    layers = [nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Softplus(), nn.Linear(8, 2)]
    return nn.Sequential(*layers, nn.BatchNorm1d(2, track_running_stats=False))


def test_batch_normalisation_rests_in_a_retraining_and_in_no_training_from_scratch(data):
    """A loss by each batch's own statistics lets a penalty ruin the network that is deployed."""
    start = normed()[:4]
    with torch.no_grad():
        start(3 * data.train.x)  # the statistics of other rows than these
    begun = {name: value.clone() for name, value in start[1].named_buffers()}
    for retrain in (True, False):
        done = fit(
            start,
            data,
            recipe("r2et"),
            retrain=retrain,
            epochs=1,
            agree=0.0,
            k=3,
            keep="last",
            progress=False,
            baselines=False,
        )
        same = [torch.equal(begun[n], value) for n, value in done.model[1].named_buffers()]
        assert all(same) == retrain
        assert not torch.equal(done.model[0].weight, start[0].weight)
    assert start.training
    assert start[1].training


def test_what_rests(data):
    network = normed().train()
    assert resting_modules(network, retrain=False) == []
    assert resting_modules(network, retrain=True) == [network[1]]  # the other has no statistics
    network[1].eval()
    for retrain in (False, True):
        assert resting_modules(network, retrain=retrain) == [network[1]]
    only = network[:4]
    assert alike_in_both_modes(only, data.train.x, [only[1]])
    only[1].train()
    assert not alike_in_both_modes(only, data.train.x)
