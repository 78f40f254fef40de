"""Attacks on models, units and modes as people have them."""

import pytest
import torch
from torch import nn

from nets import make, mlp, randn
from r2et.attack import ERAttack, MinimumNorm, MSEAttack, RandomSearch, StrongAttack
from r2et.attack.judge import Judge
from r2et.attack.local_search import cross_boundaries
from r2et.attack.problem import AttackProblem
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.rank import precision_at_k
from r2et.region import L2, Linf

X = randn(6, 6)
FAST = {"budget": "fast"}


class Times(nn.Module):
    """A network whose inputs or outputs are in other units."""

    def __init__(self, inner, before=1.0, after=1.0):
        super().__init__()
        self.inner, self.before, self.after = inner, before, after

    def forward(self, x):
        return self.after * self.inner(self.before * x)


class InPlace(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.sub_(0.5))


@pytest.mark.parametrize("factor", [1e-3, 30.0, 1e3])
def test_logits_of_any_size(factor):
    model = make(mlp)
    for attack in (StrongAttack(L2(0.8), **FAST), MinimumNorm(L2(0.8), **FAST)):
        plain = attack(model, Gradient(), X, k=2)
        scaled = attack(Times(model, after=factor), Gradient(), X, k=2)
        assert scaled.precision.isfinite().all()
        assert (scaled.precision - plain.precision).abs().mean() < 0.2


@pytest.mark.slow
def test_the_same_problem_in_other_units_is_as_easy():
    model, x = make(lambda: MLP(12, (32,)), seed=1), randn(60, 12)
    other = Times(model, before=1 / 255)
    for ball in (L2, Linf):
        plain = StrongAttack(ball(0.5))(model, Gradient(), x, k=4)
        units = StrongAttack(ball(0.5, scale=255.0))(other, Gradient(), 255 * x, k=4)
        assert units.precision.mean() <= plain.precision.mean() + 0.02
        near = MinimumNorm(ball(0.5), **FAST)(model, Gradient(), x, k=4).radius
        far = MinimumNorm(ball(0.5, scale=255.0), **FAST)(other, Gradient(), 255 * x, k=4).radius
        both = near.isfinite() & far.isfinite()
        assert both.float().mean() > 0.5
        assert (far[both] / near[both]).median().item() == pytest.approx(1, abs=0.03)


@pytest.mark.usefixtures("short_attacks")
def test_any_grad_mode_will_do():
    model = make(mlp)
    for attack in (
        StrongAttack(L2(0.5), **FAST),
        MinimumNorm(L2(0.5), **FAST),
        ERAttack(L2(0.5), steps=4, step_size=0.1, rho=5.0),
        RandomSearch(L2(0.5), points=9),
    ):
        expected = attack(model, Gradient(), X, k=2)
        with torch.no_grad():
            assert torch.equal(attack(model, Gradient(), X, k=2).x_adv, expected.x_adv)
        with torch.inference_mode():
            result = attack(model, Gradient(), X.clone(), k=2)
            assert torch.equal(result.x_adv, expected.x_adv)


@pytest.mark.usefixtures("short_attacks")
@pytest.mark.parametrize("constraint", ["none", "gda", "qp"])
def test_a_model_that_works_in_place_is_attacked_and_x_stays(constraint):
    model, x = InPlace(make(mlp)), X.clone()
    short = {"steps": 3, "step_size": 0.1}
    for attack in (
        StrongAttack(L2(0.5), **FAST),
        MinimumNorm(L2(0.5), **FAST),
        ERAttack(L2(0.5), **short, constraint=constraint),
    ):
        attack(model, Gradient(), x, k=2)
        assert torch.equal(x, X)


@pytest.mark.usefixtures("short_attacks")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    model, x = make(mlp).to(dtype), X.to(dtype)
    for radius in (0.5, 1e-3):
        for attack in (StrongAttack(L2(radius), **FAST), MinimumNorm(L2(radius), **FAST)):
            result = attack(model, Gradient(), x, k=2)
            assert result.x_adv.dtype == dtype
            assert result.x_adv.isfinite().all()


def test_boundaries_are_crossed_by_the_shortest_way_of_the_norm():
    """One hidden layer: the nearest switch of a unit is |a| / ||w||_1 away in the box norm."""
    model, x = make(lambda: MLP(12, (32,)), seed=1), randn(60, 12)
    radius_found = MinimumNorm(Linf(0.5), **FAST)(model, Gradient(), x, k=4).radius
    weight, value = model.layers[0].weight, model.layers[0](x)
    steps = (-value / weight.abs().sum(1))[..., None] * weight.sign()  # (B, U, n)
    best = torch.full((60,), torch.inf, dtype=torch.float64)
    for u in range(32):
        there = Linf(0.5).project(x + 1.001 * steps[:, u].detach(), x)
        scores = Gradient().at(model, x)
        top = Gradient()(model, x).topk(4).indices
        flips = (scores(there).topk(4).indices.sort().values != top.sort().values).any(1)
        same = model(there).argmax(1) == model(x).argmax(1)
        far = Linf(0.5).distance(there, x)
        best = torch.where(flips & same & (far < best), far, best)
    some = best.isfinite()
    assert some.any()
    assert (radius_found[some] <= 1.01 * best[some]).all()


def test_the_nearest_flip_is_one_when_looked_at_alone():
    """An untrained tanh network in float32, where gaps are small: no flip by rounding only."""
    model, x = make(lambda: MLP(28, (32, 32), activation="tanh")), randn(150, 28)
    result = MinimumNorm(L2(1.0), **FAST)(model, Gradient(), x, k=8)
    clean = Gradient()(model, x)
    for i in (result.precision < 1).nonzero().flatten().tolist():
        alone = Gradient().at(model, x[i : i + 1])(result.x_adv[i : i + 1])
        assert precision_at_k(clean[i : i + 1], alone, 8).item() < 1


def test_every_row_is_taken_across_boundaries_in_however_many_blocks(monkeypatch):
    model, x = make(lambda: MLP(12, (32,)), seed=1), randn(40, 12)
    monkeypatch.setattr("r2et.attack.local_search.CHUNK_NUMBERS", 100)  # a few rows at a time
    problem = AttackProblem.from_model("test", model, Gradient(), L2(0.5), x, 4, None)
    judge, generator = Judge(problem, "best", 1.0), torch.Generator()
    blocks = [p.rows.tolist() for p in cross_boundaries(problem, judge, generator, 1, 32)]
    assert max(len(rows) for rows in blocks) < 40
    assert {row for rows in blocks for row in rows} == set(range(40))


def test_the_mse_attack_leaves_x_where_its_slope_is_zero():
    model = make(lambda: mlp(act="softplus"))
    result = MSEAttack(L2(1.0), steps=5, step_size=0.1, keep="last")(model, Gradient(), X, k=2)
    assert (result.distance[result.kept] > 0.2).all()
    assert result.kept.any()


def test_a_generator_must_be_one():
    with pytest.raises(ValueError, match=r"generator must be a torch.Generator, got 0"):
        RandomSearch(L2(1.0))(make(mlp), Gradient(), X, k=2, generator=0)
