"""What every attack promises, on every kind of model."""

import pytest
import torch
from torch import nn

from contracts import keeps_attack_promises
from nets import GraphNet, ResidualNet, Siamese, cnn, make, mlp, randn
from r2et.attack import (
    ERAttack,
    MinimumNorm,
    MSEAttack,
    RandomSearch,
    StrongAttack,
    SwapAttack,
    TopMassAttack,
)
from r2et.explain import Captum, Gradient, GradientTimesInput, SmoothGrad
from r2et.models import SiameseCNN, SiameseGCN
from r2et.rank import precision_at_k
from r2et.region import L2, Linf

REGION = L2(0.8, bounds=(-3, 3), frozen=[1, 4])
SHORT = {"steps": 8, "step_size": 0.1}
ATTACKS = {
    "er": ERAttack(REGION, **SHORT),
    "er, last": ERAttack(REGION, **SHORT, keep="last"),
    "er, last kept": ERAttack(REGION, **SHORT, keep="last_kept"),
    "er, soft": ERAttack(REGION, **SHORT, rho=5.0),
    "er, gda": ERAttack(REGION, **SHORT, constraint="gda"),
    "er, hedge": ERAttack(REGION, **SHORT, constraint="hedge"),
    "er, qp": ERAttack(REGION, **SHORT, constraint="qp"),
    "er, uniform": ERAttack(REGION, **SHORT, constraint="uniform"),
    "er, linf": ERAttack(REGION, **SHORT, norm="linf"),
    "mse": MSEAttack(REGION, **SHORT),
    "top mass": TopMassAttack(REGION, **SHORT, rho=5.0),
    "swap": SwapAttack(REGION, **SHORT),
    "random": RandomSearch(REGION, points=30),
    "strong": StrongAttack(REGION, budget="fast"),
    "minimum": MinimumNorm(REGION, budget="fast"),
}
MODELS = {
    "mlp": (mlp, (6, 6), Gradient(), 2),
    "one logit": (lambda: mlp(classes=1), (6, 6), Gradient(of="probability"), 2),
    "cnn": (cnn, (3, 2, 8, 8), Gradient(reduce="abs_sum"), 10),
    "residual": (lambda: ResidualNet(1, nn.ReLU), (3, 1, 4, 4), Gradient(), 4),
    "siamese": (lambda: Siamese(8), (4, 2, 8), Gradient(), 4),
    "graph": (lambda: GraphNet(4), (4, 4, 4), GradientTimesInput(reduce="upper"), 2),
}


@pytest.mark.parametrize("model_name", MODELS)
@pytest.mark.parametrize("attack_name", ATTACKS)
def test_every_promise(attack_name, model_name):
    build, shape, explainer, k = MODELS[model_name]
    model = make(build).train()
    x = randn(*shape).clamp(-2.5, 2.5)
    keeps_attack_promises(ATTACKS[attack_name], model, explainer, x, k)


@pytest.mark.parametrize(
    "build",
    [
        lambda r: ERAttack(r, **SHORT, chunk=4),
        lambda r: RandomSearch(r, points=20, chunk=4),
        lambda r: StrongAttack(r, budget="fast", chunk=4),
        lambda r: MinimumNorm(r, budget="fast", chunk=4),
    ],
)
def test_rows_in_chunks_and_under_other_norms(build):
    model, x = make(mlp), randn(9, 6)
    for region in (L2(0.5), Linf(0.2), L2(0.5, scale=(1, 2, 1, 1, 0.5, 1))):
        result = build(region)(model, Gradient(), x, k=2)
        assert len(result.precision) == 9
        assert region.contains(result.x_adv, x).all()


def test_the_papers_siamese_networks_are_attacked_with_all_three_predictions():
    for model, shape, explainer in (
        (make(SiameseCNN), (2, 2, 1, 28, 28), Gradient(normalize=True)),
        (make(lambda: SiameseGCN(10)), (2, 2, 10, 10), GradientTimesInput(reduce="upper")),
    ):
        x = randn(*shape)
        x = (x + x.mT) / 2
        for constraint in ("uniform", "gda", "hedge", "qp"):
            attack = ERAttack(Linf(0.5), steps=3, step_size=0.1, norm="linf", constraint=constraint)
            assert attack(model, explainer, x, k=5).kept.all()


def test_other_explanations_through_themselves_and_by_transfer():
    model, x = make(lambda: mlp(act="tanh")), randn(5, 6)
    explainer = SmoothGrad(samples=5, sigma=0.1)
    for through in (None, Gradient()):
        for attack in (
            ERAttack(L2(1.0), steps=5, step_size=0.2, through=through),
            StrongAttack(L2(1.0), budget="fast", through=through),
        ):
            result = attack(model, explainer, x, k=2)
            again = explainer.at(model, x)(result.x_adv)
            expected = precision_at_k(explainer(model, x), again, 2)
            torch.testing.assert_close(result.precision, expected)


def test_an_explanation_without_a_graph_is_still_searched():
    model, x = make(mlp), randn(4, 6)
    for attack in (RandomSearch(L2(1.0), points=50), StrongAttack(L2(1.0), budget="fast")):
        result = attack(model, Captum("Saliency"), x, k=2)
        assert (result.precision < 1).any()


def test_a_generator_changes_what_is_drawn():
    model, x = make(mlp), randn(5, 6)
    attack = RandomSearch(L2(0.5), points=5)
    other = attack(model, Gradient(), x, k=2, generator=torch.Generator().manual_seed(9))
    assert not torch.equal(attack(model, Gradient(), x, k=2).x_adv, other.x_adv)
