"""What a penalty does to a training, against the same training by hand."""

import copy
import dataclasses

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from nets import ResidualNet
from plain_training import same, weights
from r2et.data import Data, Origin, Split
from r2et.explain import Concept, Gradient
from r2et.models import MLP
from r2et.penalty import R2ET, AdversarialTraining, BallR2ET
from r2et.train import RECIPES, Recipe, fit, recipe
from r2et.train.distributed import SingleProcess
from r2et.train.runtime import mixed
from r2et.train.step import TrainingStep, alike_in_both_modes
from training_data import small

ONE = {"epochs": 1, "progress": False}
QUICK = {"epochs": 2, "progress": False}


@pytest.mark.parametrize("name", [n for n, r in RECIPES.items() if r.penalty is not None])
def test_weight_0_is_plain_training_bit_by_bit(name):
    torch.manual_seed(3)
    model, data = MLP(8), small()
    chosen = recipe(name, weight=0.0)
    plain = fit(model, data, recipe("vanilla", cool_down=chosen.cool_down), **QUICK).model
    assert same(fit(model, data, chosen, **QUICK).model, plain)
    if name != "at":  # there the penalty is the loss
        assert not same(fit(model, data, recipe(name, weight=0.5), **QUICK).model, plain)


def test_both_factors_0_is_plain_training_bit_by_bit():
    torch.manual_seed(3)
    model, data = MLP(8), small()
    plain = fit(model, data, "vanilla", **QUICK).model
    for name in ("r2et", "r2et-ball"):
        nothing = recipe(name, l1=0.0, l2=0.0)
        assert same(fit(model, data, nothing, **QUICK).model, plain)


def test_nobody_asks_for_the_gradient_of_the_rows(monkeypatch):
    """A third of a convolution's backward pass, for nothing: a step's rows get none."""
    seen, forward = [], TrainingStep.forward

    def kept(step, x, *others):
        seen.append(x)
        return forward(step, x, *others)

    monkeypatch.setattr(TrainingStep, "forward", kept)
    fit(MLP(8), small(rows=64), recipe("r2et", every=1), **ONE)
    assert all(x.requires_grad and x.grad is None for x in seen)
    assert seen


def test_the_penalty_counts_as_in_a_loop_by_hand():
    """One step of fit against loss + weight * penalty, written out."""
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    chosen = recipe("r2et", weight=0.7, every=1, batch=64)
    found = fit(model, data, chosen, epochs=1, progress=False).model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = data.train
    numbers = torch.Generator().manual_seed(mixed(0, 0, -1))
    rows = torch.randperm(64, generator=numbers)
    loss = cross_entropy(model(x[rows]), y[rows])
    (loss + 0.7 * R2ET(k=3)(model, x[rows]).mean()).backward()
    optimizer.step()
    for a, b in zip(weights(found), weights(model), strict=True):
        torch.testing.assert_close(a, b)


def test_adaptive_weight_scales_the_penalty_to_the_loss():
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    chosen = recipe("r2et-nh", weight=0.5, every=1, batch=64, adaptive=True)
    found = fit(model, data, chosen, epochs=1, progress=False).model
    x, y = data.train
    rows = torch.randperm(64, generator=torch.Generator().manual_seed(mixed(0, 0, -1)))
    loss = cross_entropy(model(x[rows]), y[rows])
    penalty = R2ET(k=3, l2=0.0)(model, x[rows]).mean()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    factor = 0.5 * abs((loss.item() + 1) / penalty.item())
    (loss + factor * penalty).backward()
    optimizer.step()
    for a, b in zip(weights(found), weights(model), strict=True):
        torch.testing.assert_close(a, b)


def test_dropout_and_batch_norm_train_with_penalties():
    """Explanations are those of the deployed model, and leave its statistics alone."""
    torch.manual_seed(0)
    x, y = torch.randn(64, 1, 4, 4), torch.randint(0, 3, (64,))
    part = Split(x, y)
    data = Data("noise", part, part, part, (), (), 4, Origin("made here"), ("a", "b", "c"))
    model = ResidualNet(1, nn.ReLU)
    plain = fit(model, data, "vanilla", **QUICK).model
    again = fit(model, data, recipe("r2et", weight=0.0), **QUICK).model
    assert same(plain, again)
    assert torch.equal(plain.norm.running_mean, again.norm.running_mean)
    assert not same(plain, fit(model, data, recipe("r2et", weight=1.0), **QUICK).model)
    concepts = fit(model, data, recipe("r2et", every=1), explainer=Concept(), k=2, **QUICK)
    assert not same(plain, concepts.model)


def test_warm_up_grows_the_radius_from_0():
    seen = []

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Radius(BallR2ET.__mro__[1]):  # the abstract base: BallR2ET itself is final
        radius: float = 1.0

        def ranked_rows(self, view):
            seen.append(self.radius)
            return view.scores.sum(1) * 0

    chosen = Recipe("noting", Radius(), warm_up=0.5, batch=100)
    fit(None, small(rows=400), chosen, radius=2.0, epochs=2, progress=False)
    assert seen == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0])


def test_one_pass_serves_loss_and_penalty_only_where_modes_agree():
    torch.manual_seed(0)
    x = torch.rand(32, 8)
    drop = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    assert alike_in_both_modes(MLP(8), x)
    assert not alike_in_both_modes(drop, x)
    assert drop.training
    # The penalty of a dropout network is that of the deployed one: it has no random part.
    data = small(rows=64)
    one_step = recipe("r2et-nh", weight=1.0, every=1, batch=64)
    found = fit(drop, data, one_step, epochs=1, progress=False).history[0]["penalty"]
    rows = R2ET(k=3, l2=0.0)(drop.eval(), data.train.x)
    assert found == pytest.approx(float(rows.detach().mean()), rel=1e-4)


def test_a_penalty_on_every_nth_batch_is_n_times_as_heavy():
    """With plain gradient descent, four batches of one kind must move as far either way."""
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    seen = {}
    for every in (1, 4):
        totals = []

        class Noted(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = copy.deepcopy(model)

            def forward(self, x):
                return self.inner(x)

        chosen = recipe("r2et-nh", weight=0.5, every=every, batch=64, warm_up=0.0).prepared(3, 1.0)
        step = TrainingStep(Noted(), chosen, SingleProcess(torch.device("cpu")), shared=True)
        for index in range(4):
            x, y = data.train
            part = step(x.clone(), y, 1.0, index % every == 0, 1.0, None, None, None)
            totals.append(part.total.item() - part.loss.item())
        seen[every] = sum(totals)
    assert seen[4] == pytest.approx(seen[1], rel=1e-5)
    assert seen[1] != 0


def test_the_weight_warms_up():
    data = small(rows=64)
    chosen = recipe("r2et-nh", weight=1.0, every=1, batch=64, warm_up=1.0)
    plain = fit(None, data, "vanilla", epochs=1, progress=False).model
    full = fit(None, data, recipe(chosen, warm_up=0.0), epochs=2, progress=False).model
    warm = fit(None, data, chosen, epochs=2, progress=False).model
    assert not same(full, warm)
    assert not same(plain, warm)


def test_adversarial_training_stands_in_the_place_of_the_loss():
    torch.manual_seed(3)
    model, data = MLP(8), small(rows=64)
    chosen = recipe("at", batch=64)
    found = fit(model, data, chosen, radius=0.2, epochs=1, progress=False).model
    x, y = data.train
    rows = torch.randperm(64, generator=torch.Generator().manual_seed(mixed(0, 0, -1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    AdversarialTraining(k=3, radius=0.2)(model, x[rows], y[rows]).mean().backward()
    optimizer.step()
    for a, b in zip(weights(found), weights(model), strict=True):
        torch.testing.assert_close(a, b)


def test_a_retraining_is_given_the_first_ranking():
    seen = []

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Order(BallR2ET.__mro__[1]):
        def ranked_rows(self, view):
            seen.append(view.top(3))
            return view.scores.sum(1)

    data = small(rows=64)
    model = fit(None, data, "vanilla", epochs=3, progress=False).model
    chosen = Recipe("order", Order(), 5.0, batch=16, lr=0.05)
    moved = fit(model, data, chosen, retrain=True, agree=0.0, epochs=1, keep="last", progress=False)
    rows = torch.randperm(64, generator=torch.Generator().manual_seed(mixed(0, 0, -1)))
    first = Gradient()(model, data.train.x[rows]).topk(3, 1).indices
    assert torch.equal(torch.cat(seen), first)
    assert moved.history[0]["agreement"] < 1  # by now its own ranking is another


def test_what_the_caller_holds_in_eval_mode_stays_so():
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8)
    model = nn.Sequential(nn.Linear(8, 8), norm, nn.Linear(8, 2))
    norm.eval()
    found = fit(model, small(), "vanilla", **QUICK).model
    assert torch.equal(found[1].running_mean, norm.running_mean)
