"""Scores of columns: sums of features' signed attributions, against captum and closed forms."""

import captum.attr
import pytest
import torch

from nets import mlp, quadratic, randn
from r2et.attack import RandomSearch, StrongAttack
from r2et.errors import InputError
from r2et.explain import (
    CallableExplainer,
    Captum,
    Concept,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    SmoothGrad,
)
from r2et.penalty import R2ET, SSR, BallR2ET
from r2et.rank import thickness
from r2et.region import L2

F64 = torch.float64
GROUPS = ((1, 2, 4), (3, 5))  # columns: 0, {1, 2, 4}, {3, 5}
START = (0.3, -0.1, 0.2, 0.0, 0.5, -0.4)


def columns(raw):
    return torch.stack([raw[:, 0], raw[:, [1, 2, 4]].sum(1), raw[:, [3, 5]].sum(1)], 1)


def test_a_columns_score_is_the_sum_of_its_signed_attributions():
    model, x = quadratic(), randn(4, 6, dtype=F64)
    slope, ones = (x @ model.a + model.b).detach(), torch.ones(4).long()
    start = torch.tensor(START, dtype=F64)
    middle = ((x + start) / 2 @ model.a + model.b).detach()
    cases = [
        (Gradient, {}, slope),
        (GradientTimesInput, {}, slope * x),
        (GradientTimesInput, {"baseline": START}, slope * (x - start)),
        (IntegratedGradients, {"baseline": START, "points": 5}, middle * (x - start)),
    ]
    for kind, settings, raw in cases:
        signed = kind(reduce="signed", groups=GROUPS, **settings)(model, x, ones)
        torch.testing.assert_close(signed, columns(raw))
        sizes = kind(groups=GROUPS, normalize=True, **settings)(model, x, ones)
        expected = columns(raw).abs()
        torch.testing.assert_close(sizes, expected / expected.sum(1, keepdim=True))


def test_as_captum_sums_them():
    model, x = mlp().double().eval(), randn(5, 6, dtype=F64)
    target = model(x).argmax(1)
    start = torch.tensor(START, dtype=F64)
    theirs = captum.attr.IntegratedGradients(model).attribute(
        x, baselines=start[None], target=target, n_steps=20, method="gausslegendre"
    )
    ours = IntegratedGradients(
        points=20, rule="gauss_legendre", baseline=START, groups=GROUPS, of="logit"
    )
    torch.testing.assert_close(ours(model, x, target), columns(theirs).abs())
    wrapped = Captum("InputXGradient", groups=GROUPS, reduce="signed", of="logit")
    plain = GradientTimesInput(groups=GROUPS, reduce="signed", of="logit")
    torch.testing.assert_close(wrapped(model, x, target), plain(model, x, target))
    assert wrapped.equivalent() == plain
    # Captum's Saliency is absolute before anything is summed.
    assert Captum("Saliency", groups=GROUPS).equivalent() is None


def test_every_explainer_takes_groups():
    model, x = mlp().eval(), randn(3, 6)
    first = Concept()(model, x).shape[1]
    assert Concept(groups=[(0, 1)])(model, x).shape == (3, first - 1)
    assert SmoothGrad(samples=3, groups=GROUPS)(model, x).shape == (3, 3)
    own = CallableExplainer(lambda _model, x, _target: x, groups=GROUPS)
    torch.testing.assert_close(own(model, x), columns(x))


def test_groups_in_any_form_and_none_at_all():
    model, x = mlp().eval(), randn(3, 6)
    given = [torch.tensor([4, 2, 1]), [5, 3]]
    assert Gradient(groups=given) == Gradient(groups=GROUPS)
    assert Gradient(groups=()) == Gradient()
    assert Gradient(groups=GROUPS)(model, x).shape == (3, 3)
    hash(Gradient(groups=given))


@pytest.mark.parametrize("groups", [3, "ab", [[]], [[0, 1], [1, 2]], [[-1]], [[0.5]], [[True]]])
def test_bad_groups(groups):
    with pytest.raises(InputError, match="Gradient: groups must be sequences of feature numbers"):
        Gradient(groups=groups)


def test_groups_that_do_not_fit():
    with pytest.raises(InputError, match=r"groups must be of features below 6, .* got 6"):
        Gradient(groups=[(5, 6)])(mlp().eval(), randn(2, 6))
    with pytest.raises(InputError, match="reduce must be abs or signed where groups are given"):
        Gradient(groups=[(0, 1)], reduce="abs_sum")
    with pytest.raises(InputError, match="baseline must be a number or 6 of them, got 2"):
        GradientTimesInput(baseline=(0.0, 1.0))(mlp().eval(), randn(2, 6))
    with pytest.raises(InputError, match="baseline must be a finite number"):
        GradientTimesInput(baseline=float("nan"))


def test_what_stands_on_scores_counts_columns():
    model, x = mlp().eval(), randn(8, 6)
    explainer = GradientTimesInput(groups=GROUPS, baseline=START)
    clean = explainer(model, x)
    for attack in (RandomSearch(L2(2.0)), StrongAttack(L2(2.0), budget="fast")):
        found = attack(model, explainer, x, k=1)
        there = explainer(model, found.x_adv, model(x).argmax(1))
        same = clean.argmax(1) == there.argmax(1)
        assert torch.equal(found.precision == 1, same)
        assert not bool(same.all())
    assert thickness(model, x, 2, explainer=explainer, region=L2(0.5)).shape == (8,)
    for penalty in (R2ET(k=2, explainer=explainer), BallR2ET(k=2, explainer=explainer)):
        assert penalty(model, x).shape == (8,)
    assert SSR(explainer=Gradient(groups=GROUPS, of="probability"))(model, x).shape == (8,)
    with pytest.raises(InputError, match=r"k must be in 1\.\.2"):
        R2ET(k=3, explainer=explainer)(model, x)
