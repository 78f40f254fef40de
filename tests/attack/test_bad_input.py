"""Bad input gets one clear sentence."""

import pytest
import torch
from torch import nn

from nets import make, mlp, randn
from r2et.attack import (
    ERAttack,
    MinimumNorm,
    ParetoAttack,
    RandomSearch,
    StrongAttack,
    TrustRegionAttack,
)
from r2et.errors import InputError
from r2et.explain import Captum, Gradient
from r2et.region import L2

MODEL, X = make(mlp), randn(3, 6)


class Cracked(nn.Module):
    """Finite at the clean inputs, NaN a little away from them."""

    def forward(self, x):
        far = (x - X.repeat(len(x) // 3, 1)).abs().sum(1, keepdim=True) > 0.01
        return torch.where(far, torch.nan, MODEL(x))


def attacked(attack=None, model=MODEL, explainer=None, x=X, k=2, **rest):
    return (attack or RandomSearch(points=3))(model, explainer or Gradient(), x, k=k, **rest)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ERAttack(L2(0)), "L2: radius must be positive and finite, got 0."),
        (lambda: ERAttack(L2(-1)), "L2: radius must be positive and finite, got -1."),
        (lambda: ERAttack(1.0), "ERAttack: region must be a Region, got 1.0."),
        (lambda: ERAttack(steps=0), "ERAttack: steps must be a positive whole number, got 0."),
        (lambda: ERAttack(step_size=-1), "ERAttack: step_size must be positive, got -1."),
        (
            lambda: ERAttack(keep="first"),
            "ERAttack: keep must be best, last or last_kept, got first.",
        ),
        (lambda: ERAttack(norm="l1"), "ERAttack: norm must be l2 or linf, got l1."),
        (
            lambda: ERAttack(constraint="kl"),
            "ERAttack: constraint must be one of none, uniform, gda, hedge, qp, got kl.",
        ),
        (lambda: ERAttack(flip_below=0), "ERAttack: flip_below must be in (0, 1], got 0."),
        (lambda: ERAttack(step_size="a"), "ERAttack: step_size must be positive, got a."),
        (lambda: ERAttack(rate=float("nan")), "ERAttack: rate must be positive, got nan."),
        (lambda: ERAttack(rho=-1), "ERAttack: rho must be positive, got -1."),
        (lambda: ERAttack(through=3), "ERAttack: through must be None or an Explainer, got 3."),
        (lambda: ERAttack(flip_below="x"), "ERAttack: flip_below must be in (0, 1], got x."),
        (lambda: StrongAttack(budget=["fast"]), "StrongAttack: budget must be fast, standard or"),
        (lambda: StrongAttack(keep="last"), "StrongAttack: keep must be best, got last."),
        (lambda: ERAttack(chunk=0), "ERAttack: chunk must be None or a positive whole number"),
        (lambda: RandomSearch(points=0), "RandomSearch: points must be a positive whole number"),
        (
            lambda: StrongAttack(budget="huge"),
            "StrongAttack: budget must be fast, standard or thorough, got huge.",
        ),
        (lambda: MinimumNorm(keep="last"), "MinimumNorm: keep must be best (the nearest), got"),
        (
            lambda: attacked(RandomSearch(L2(1, bounds=(0, 1)))),
            "L2: bounds must be around x, got x[0] with feature",
        ),
        (
            lambda: attacked(RandomSearch(L2(1, frozen=range(6)))),
            "L2: frozen must be fewer than all 6 features, got all 6.",
        ),
        (
            lambda: attacked(model=Cracked()),
            "Gradient: model must be one with finite logits, got NaN or inf in row 0.",
        ),
        (
            lambda: attacked(ERAttack(steps=3), explainer=Captum("DeepLift")),
            "ERAttack: explainer must be one that can be differentiated (or use RandomSearch, or "
            "give `through`), got Captum.",
        ),
        (
            lambda: attacked(explainer=lambda x: x),
            "RandomSearch: explainer must be an Explainer of r2et.explain, or a function "
            "(model, x, target) -> scores, got <function",
        ),
        (
            lambda: attacked(explainer=lambda *_: X[:, 0]),
            "CallableExplainer: function must be one that returns scores (3, n), a tensor or array",
        ),
        (lambda: RandomSearch(points=True), "RandomSearch: points must be a positive whole number"),
        (lambda: RandomSearch(progress=1), "RandomSearch: progress must be True or False, got 1."),
        (lambda: ERAttack(step_size=True), "ERAttack: step_size must be positive, got True."),
        (lambda: StrongAttack(through=3), "StrongAttack: through must be None or an Explainer"),
        (lambda: MinimumNorm(through=3), "MinimumNorm: through must be None or an Explainer"),
        (lambda: ParetoAttack(steps=True), "ParetoAttack: steps must be a positive whole number"),
        (lambda: ParetoAttack(armijo="a"), "ParetoAttack: armijo must be between 0 and 1, got a."),
        (lambda: ParetoAttack(limit="a"), "ParetoAttack: limit must be None or positive, got a."),
        (lambda: ParetoAttack(penalty=None), "ParetoAttack: penalty must be positive, got None."),
        (lambda: ParetoAttack(rho=-1), "ParetoAttack: rho must be None or positive, got -1."),
        (
            lambda: TrustRegionAttack(epsilon="a"),
            "TrustRegionAttack: epsilon must be positive, got a.",
        ),
        (
            lambda: TrustRegionAttack(gamma=[0.5]),
            "TrustRegionAttack: gamma must be between 0 and 1, got [0.5].",
        ),
        (lambda: TrustRegionAttack(input="a"), "TrustRegionAttack: input must be 0 or more, got a"),
        (lambda: TrustRegionAttack(rho=True), "TrustRegionAttack: rho must be None or positive"),
        (lambda: TrustRegionAttack(beyond=1), "TrustRegionAttack: beyond must be True or False"),
        (
            lambda: TrustRegionAttack(observer=3),
            "TrustRegionAttack: observer must be None or a function of the search, got 3.",
        ),
        (lambda: attacked(k=0), "RandomSearch: k must be in 1..5 for 6 features, got 0."),
        (lambda: attacked(k=6), "RandomSearch: k must be in 1..5 for 6 features, got 6."),
        (lambda: attacked(x=X / 0), "RandomSearch: x must be finite, got NaN or infinity in 3"),
        (lambda: attacked(x=X[:0]), "RandomSearch: x must be a batch of at least one row"),
        (lambda: attacked(target=9), "Gradient: target must be in 0..2, got 9."),
        (
            lambda: attacked(target=torch.zeros(2).long()),
            "RandomSearch: target must be of shape (3,), got int64 tensor of shape (2,) on cpu.",
        ),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)


class CrackedAt(nn.Module):
    """NaN a little away from one row: rows are told by their last feature."""

    def __init__(self, last):
        super().__init__()
        self.last = last

    def forward(self, x):
        near = (x[:, -1:] - self.last).abs() < 1e-6
        moved = x[:, :1] != 0
        return torch.where(near & moved, torch.nan, MODEL(x))


@pytest.mark.parametrize("chunk", [None, 4])
@pytest.mark.parametrize("explainer", [Gradient(), Gradient(chunk=3)])
def test_the_row_named_is_the_users(chunk, explainer):
    x = randn(11, 6)
    x[:, 0] = 0
    model = CrackedAt(x[9, -1].item())
    region = L2(0.5, frozen=[5])
    for attack in (
        RandomSearch(region, points=5, chunk=chunk),
        StrongAttack(region, budget="fast", chunk=chunk),
        ERAttack(region, steps=3, step_size=0.1, rho=2.0, chunk=chunk),
    ):
        with pytest.raises(InputError, match=r"finite logits, got NaN or inf in row 9\.$"):
            attacked(attack, model=model, explainer=explainer, x=x)
