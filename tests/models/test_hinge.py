"""The network that is trained against a proof: its formula, its knots, its start, its proof."""

import numpy as np
import pytest
import torch

from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.models import HingeMLP
from r2et.models.hinge import NARROWEST, SHARPNESS, STEP
from r2et.penalty import CertifiedRanking


def rows(count: int = 400, seed: int = 0) -> torch.Tensor:
    """A column of evenly spread numbers, one mostly 0, one of two values, one of few."""
    numbers = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 4, generator=numbers)
    x[:, 1] = x[:, 1] ** 4 * (torch.rand(count, generator=numbers) < 0.2)
    x[:, 2] = (x[:, 2] > 0.6).float()
    x[:, 3] = (x[:, 3] * 5).floor() / 4
    return x


def knots_of(model: HingeMLP, feature: int) -> list[float]:
    """Where the hinges of a feature have half their slope."""
    own = range(model.settings["width"], len(model.scale))
    weight, bias = model.first.weight.detach(), model.first.bias.detach()
    return [float(-bias[i] / weight[i, feature]) for i in own if weight[i, feature] != 0]


def test_it_is_smooth_units_and_a_linear_function():
    torch.manual_seed(0)
    x = rows().double()
    model = HingeMLP.fitted(x, 7, classes=3).double()
    units = model.settings["width"] + model.settings["hinges"]
    weight, bias = STEP * model.first.weight, STEP * model.first.bias
    hidden = np.logaddexp(0.0, (x @ weight[:units].T + bias[:units]).detach().numpy())
    scale = np.where(np.arange(units) < 7, 1.0, (hidden.std(0) / 3).clip(min=0.02))
    last = STEP * model.last.weight.detach().numpy() / scale
    straight = (x @ weight[units:].T + bias[units:]).detach().numpy()
    expected = hidden @ last.T + STEP * model.last.bias.detach().numpy() + straight
    np.testing.assert_allclose(model(x).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_hinges_begin_at_knots_between_equally_many_rows():
    x = rows(2000)
    model = HingeMLP.fitted(x, 3)
    counts = np.histogram(x[:, 0].numpy(), [0.0, *knots_of(model, 0), 1.0])[0]
    assert counts.tolist() == [400] * 5
    rare = x[x[:, 1] > 0, 1].numpy()  # the zeros do not count
    counts = np.histogram(rare, [0.0, *knots_of(model, 1), 1.0])[0]
    assert counts.max() - counts.min() <= 1
    assert knots_of(model, 2) == []  # of two values
    few = [0.125, 0.375, 0.625, 0.875]  # between its five values
    assert set(np.round(knots_of(model, 3), 3)) <= set(few)
    slopes = STEP * model.first.weight.detach()[3:-2].abs()
    assert slopes[:, 1].max() == pytest.approx(SHARPNESS / NARROWEST)  # where values crowd
    ends = [float(x[:, 0].min()), *knots_of(model, 0), float(x[:, 0].max())]
    apart = [(b - a) / 2 for a, b in zip(ends, ends[2:], strict=False)]
    own = slopes[:, 0][slopes[:, 0] > 0]
    np.testing.assert_allclose(own, SHARPNESS / np.array(apart), rtol=1e-4)


def test_many_columns_have_few_knots_and_constant_ones_none():
    assert HingeMLP.fitted(torch.rand(50, 100), 2).settings["hinges"] == 200
    assert HingeMLP.fitted(torch.rand(50, 300), 2).settings["hinges"] == 0
    constant = HingeMLP.fitted(torch.ones(50, 2), 2)
    assert constant.settings["hinges"] == 0
    assert constant(torch.ones(3, 2)).isfinite().all()
    assert HingeMLP.fitted(torch.rand(50, 3), 2, knots=6).settings["hinges"] == 18


def test_it_begins_at_a_linear_model():
    torch.manual_seed(0)
    x = rows()
    model = HingeMLP.fitted(x)
    before = model(x)
    weight, bias = torch.randn(2, 4), torch.randn(2)
    model.start_at(weight, bias)
    odds = (model(x) - before) @ torch.tensor([-1.0, 1.0])
    expected = (x @ weight.T + bias) @ torch.tensor([-1.0, 1.0])
    torch.testing.assert_close(odds, expected, rtol=1e-4, atol=1e-4)
    # and what is not linear is small beside it
    assert before.sub(before.mean(0)).std() < 0.3 * expected.std()


def test_what_is_proved_holds_and_much_is_proved():
    torch.manual_seed(0)
    x = rows(60)
    model = HingeMLP.fitted(rows(), 6).eval()
    model.start_at(torch.tensor([[0.0] * 4, [3.0, -5.0, 1.0, 0.2]]), torch.zeros(2))
    certificate = IntervalCertifier()(model, Gradient(), x, k=2)
    assert (certificate.radius > 0.1).float().mean() > 0.5
    top = Gradient()(model, x).topk(2).indices.sort().values
    for _ in range(200):
        step = torch.nn.functional.normalize(torch.randn_like(x))
        moved = x + step * (certificate.radius[:, None].float() * 0.999)
        now = Gradient()(model, moved, target=model(x).argmax(1)).topk(2).indices.sort().values
        assert ((now == top).all(1) | (certificate.radius == 0)).all()


def test_the_penalty_of_a_proof_has_a_slope_from_the_first_step_on():
    torch.manual_seed(0)
    model = HingeMLP.fitted(rows(), 6)
    model.start_at(torch.tensor([[0.0] * 4, [3.0, -5.0, 1.0, 0.2]]), torch.zeros(2))
    CertifiedRanking(k=2, radius=0.1, margin=5.0)(model, rows(20)).mean().backward()
    for name, parameter in model.named_parameters():
        if name != "last.bias":  # a constant of the logits moves no gradient
            assert parameter.grad is not None
            assert parameter.grad.isfinite().all()
            assert parameter.grad.abs().max() > 0


def test_a_forgotten_feature_counts_for_nothing():
    x = rows()
    model = HingeMLP.fitted(x)
    before = model(x)
    model.forget(torch.tensor([True, False, False, False]))
    moved = x.clone()
    moved[:, 0] = 9.0
    assert torch.equal(model(moved), model(x))
    assert not torch.equal(model(x), before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HingeMLP(0), "HingeMLP: features must be a whole number, at least 1, got 0."),
        (lambda: HingeMLP(2, 0), "HingeMLP: width must be a whole number, at least 1, got 0."),
        (lambda: HingeMLP(2, 3, -1), "HingeMLP: hinges must be a whole number from 0 on, got -1."),
        (
            lambda: HingeMLP.fitted(torch.rand(4, 2), knots=-1),
            "HingeMLP.fitted: knots must be None or a whole number from 0 on, got -1.",
        ),
        (
            lambda: HingeMLP.fitted(torch.rand(4, 2, 2)),
            "HingeMLP.fitted: x must be rows of shape (B, features), got",
        ),
        (
            lambda: HingeMLP(2).start_at(torch.zeros(3), torch.zeros(2)),
            "HingeMLP.start_at: weight and bias must be finite numbers of shape (2, 2), got",
        ),
        (lambda: HingeMLP(3)(torch.rand(2, 2)), "HingeMLP: x must be rows of shape (B, 3), got"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
