"""Explanations from elsewhere: attacked as hard as ours where they are ours, and told where not."""

from dataclasses import replace

import captum.attr
import pytest
import torch

from nets import make, mlp, randn
from r2et import audit
from r2et.attack import ERAttack, MinimumNorm, StrongAttack
from r2et.audit import Audit
from r2et.audit.run import score_names
from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import (
    CallableExplainer,
    Captum,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
)
from r2et.models import MLP
from r2et.rank import precision_at_k
from r2et.region import L2

MODEL, X = make(lambda: mlp(act="tanh")), randn(8, 6)
WHERE = L2(0.5)
FOLLOWED = "The explanation gives no gradients: attacks followed those of r2et's"
BLIND = "The explanation gives no gradients, so the attacks on it used none: they are weaker"
TUNNEL = Captum(
    "NoiseTunnel", around="Saliency", settings={"abs": False, "nt_samples": 4, "stdevs": 0.3}
)


def disguised(forward):
    """Saliency of the same quantity, in a form that shows nothing of that."""
    return captum.attr.Saliency(lambda *args: forward(*args))


def slopes(model, x, target):
    x.requires_grad_()
    return torch.autograd.grad(model(x).gather(1, target[:, None]).sum(), x)[0].abs()


@pytest.mark.parametrize("attack", [StrongAttack, MinimumNorm, ERAttack])
def test_attacks_go_through_the_equivalent(attack):
    settings = {"steps": 20, "step_size": 0.05} if attack is ERAttack else {"budget": "fast"}
    run = attack(WHERE, **settings)
    theirs = run(MODEL, Captum("Saliency"), X, k=2)
    ours = run(MODEL, Gradient(), X, k=2)
    assert (ours.precision < 1).any()
    torch.testing.assert_close(theirs.precision, ours.precision)
    torch.testing.assert_close(theirs.x_adv, ours.x_adv, atol=1e-4, rtol=1e-4)


def test_what_has_an_equivalent_falls_as_deep_as_ours():
    torch.manual_seed(0)
    model, x, run = MLP(12, (32, 32)), randn(16, 12), StrongAttack(L2(0.3), budget="fast")
    with torch.no_grad():
        for values in model.parameters():
            values *= 2
    ours = run(model, Gradient(), x, k=4).precision
    blind = run(model, Captum(disguised), x, k=4).precision
    followed = run(model, Captum("Saliency"), x, k=4).precision
    torch.testing.assert_close(followed, ours)
    assert followed.mean() < blind.mean()  # without gradients it looks stabler than it is
    with pytest.raises(InputError, match="ERAttack: explainer must be one that can be"):
        ERAttack(L2(0.3), steps=3)(model, Captum(disguised), x, k=4)


def test_a_tunnel_is_followed_by_smoothgrad_and_judged_on_its_own_noise():
    tunnel = replace(TUNNEL, settings={**TUNNEL.settings, "stdevs": 2.0})
    result = ERAttack(WHERE, steps=30, step_size=0.05)(MODEL, tunnel, X, k=2)
    assert (result.precision < 1).any()
    target = MODEL(X).argmax(1)
    clean, there = tunnel(MODEL, X, target), tunnel(MODEL, result.x_adv, target)
    torch.testing.assert_close(result.precision, precision_at_k(clean, there, 2))
    other = tunnel.equivalent()
    theirs = precision_at_k(other(MODEL, X, target), other(MODEL, result.x_adv, target), 2)
    assert not torch.equal(theirs, result.precision)  # another noise, another judgement


@pytest.mark.usefixtures("short_attacks")
def test_an_audit_of_captums_gradient_is_that_of_ours():
    ours, theirs = (
        audit(MODEL, X, k=2, region=WHERE, budget="fast", explainer=explainer)
        for explainer in (Gradient(), Captum("Saliency"))
    )
    assert ours.summary()["precision_er"] is not None
    assert ours.summary()["precision_strong"] < 1
    for name in ("precision_strong", "precision_er", "precision_noise", "distinct_top_k"):
        assert theirs.summary()[name] == pytest.approx(ours.summary()[name])
    for one, two in zip(ours.rows, theirs.rows, strict=True):
        radius = one["radius_attacked"]
        assert two["radius_attacked"] == (radius and pytest.approx(radius, rel=1e-3))
    assert ours.result["notes"] == []


@pytest.mark.usefixtures("short_attacks")
@pytest.mark.parametrize(
    ("explainer", "note"),
    [
        (Captum("Saliency"), f"{FOLLOWED} Gradient, which has the same scores, and"),
        (
            Captum("IntegratedGradients", settings={"n_steps": 4}),
            f"{FOLLOWED} IntegratedGradients, which has the same scores, and",
        ),
        (TUNNEL, f"{FOLLOWED} SmoothGrad, which has the same scores, but for the noise drawn, and"),
        (Captum("NoiseTunnel", around="Saliency"), BLIND),
        (Captum("DeepLift"), BLIND),
        (slopes, BLIND),
        (lambda _, x, __: x.numpy() ** 2, BLIND),
        (CallableExplainer(slopes, normalize=True), BLIND),
    ],
)
def test_the_audit_says_how_it_was_attacked(explainer, note, tmp_path):
    result = audit(MODEL, X, torch.arange(8) % 2, k=2, explainer=explainer, budget="fast")
    assert 0 <= result.summary()["precision_strong"] <= 1
    assert f"\n  note: {note}" in str(result)
    result.to_html(tmp_path / "audit.html")
    text = (tmp_path / "audit.html").read_text().replace("&#39;", "'")
    assert note in text
    result.to_json(tmp_path / "audit.json")
    again = Audit.from_json(tmp_path / "audit.json")
    assert again.result["notes"] == result.result["notes"]
    assert "papers" not in {s["what"] for s in result.skipped} or note == BLIND


@pytest.mark.usefixtures("short_attacks")
def test_a_function_is_audited_as_its_scores_are():
    of_logit = Gradient(of="logit", normalize=True)
    noise = [
        audit(MODEL, X, k=2, region=WHERE, explainer=explainer, budget="fast").result["rows"]
        for explainer in (of_logit, CallableExplainer(slopes, normalize=True), slopes)
    ]
    assert noise[0]["precision_noise"] == noise[1]["precision_noise"] == noise[2]["precision_noise"]
    assert min(noise[0]["precision_noise"]) < 1


def test_a_function_in_an_attack():
    run = StrongAttack(WHERE, budget="fast")
    by_function = run(MODEL, slopes, X, k=2)
    by_class = run(MODEL, CallableExplainer(slopes), X, k=2)
    assert torch.equal(by_function.x_adv, by_class.x_adv)
    target = MODEL(X).argmax(1)
    gradient = Gradient(of="logit")
    clean, there = gradient(MODEL, X, target), gradient(MODEL, by_function.x_adv, target)
    torch.testing.assert_close(by_function.precision, precision_at_k(clean, there, 2))
    assert (by_function.precision < 1).any()
    followed = StrongAttack(WHERE, budget="fast", through=gradient)(MODEL, slopes, X, k=2)
    assert followed.precision.mean() <= by_function.precision.mean()


@pytest.mark.parametrize(
    ("explainer", "sentence"),
    [
        (lambda x: x, "audit: explainer must be an Explainer of r2et.explain, or a function"),
        (IntegratedGradients, "audit: explainer must be an Explainer of r2et.explain, or a"),
        (lambda _, x, __: x.sum(), "CallableExplainer: function must be one that returns scores"),
        (lambda _, x, __: x[:0], "CallableExplainer: function must be one that returns scores"),
        (Captum("NoiseTunnel"), "Captum: around must be what it smooths, as in Captum"),
    ],
)
def test_a_bad_explainer_gets_a_sentence(explainer, sentence):
    with pytest.raises(InputError) as caught:
        audit(MODEL, X, k=2, explainer=explainer)
    assert str(caught.value).startswith(sentence)


def test_scores_of_columns_have_the_columns_names():
    features = ("age", "pay", "pay: missing", "job: clerk", "job: cook")
    groups = ((1, 2), (3, 4))
    assert score_names(Gradient(groups=groups), features, 3) == ["age", "pay", "job"]
    assert score_names(Gradient(), features, 5) == list(features)
    assert score_names(Gradient(), features, 2) is None
    assert score_names(Gradient(groups=groups), None, 3) is None


@pytest.mark.usefixtures("short_attacks")
def test_columns_are_proved_and_attacked_in_the_region_that_was_given():
    model, x = make(lambda: MLP(6, (8,), activation="softplus")), randn(24, 6)
    explainer = GradientTimesInput(groups=[(0, 1), (2, 3)], baseline=(0.1,) * 6, reduce="signed")
    scale = (1.0, 0.5, 2.0, 1.0, 0.3, 1e9)
    region = L2(0.3, scale=scale, frozen=[5])
    result = audit(model, x, k=2, explainer=explainer, region=region, budget="fast")
    rows = result.result["rows"]
    limit = result.result["settings"]["limit"]
    certifier = IntervalCertifier(region=region, limit=1.001 * limit)  # as audits have it
    own = certifier(model, explainer, x[rows["index"]], k=2).radius.clamp(max=limit)
    torch.testing.assert_close(
        torch.tensor(rows["radius_certified"]).double(), own, rtol=1e-5, atol=0
    )
    assert min(rows["radius_certified"]) > 0
    assert result.summary()["certified_share"] > 0
