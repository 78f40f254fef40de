"""A decision at another cut-off than a half: kept, explained and counted on its side of it."""

import pytest
import torch
from torch import nn

from r2et import audit
from r2et.attack import StrongAttack
from r2et.audit.decision import AtCutoff, own_logits
from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.metrics import comprehensiveness
from r2et.models import MLP
from r2et.region import L2

CUTOFF = 0.3


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    network = MLP(5, (16,)).double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3)
        logits = network(torch.rand(500, 5, dtype=torch.float64))
        odds = (logits[:, 1] - logits[:, 0]).median()
        network.layers[-1].bias[1] -= odds + 0.4  # about 0.4 on average: both sides of the cut-off
    return network


@pytest.fixture(scope="module")
def x():
    return torch.rand(40, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def positive(model, x):
    return model(x).detach().softmax(1)[:, 1]


def test_the_likelier_class_is_the_decision_at_the_cutoff(model, x):
    decided = AtCutoff(model, CUTOFF)(x).argmax(1)
    assert torch.equal(decided == 1, positive(model, x) >= CUTOFF)
    assert 0 < int((decided != model(x).argmax(1)).sum()) < len(x)
    again = own_logits(AtCutoff(model, CUTOFF)(x), CUTOFF)
    assert torch.allclose(again, model(x))


@pytest.mark.parametrize("flat", [True, False])
def test_one_logit_is_moved_as_well(x, flat):
    line = nn.Linear(5, 1).double()
    single = nn.Sequential(line, nn.Flatten(0)) if flat else line
    decided = AtCutoff(single, CUTOFF)(x).flatten() > 0
    assert torch.equal(decided, line(x).flatten().sigmoid() > CUTOFF)


def test_attacks_stay_on_their_side_of_the_cutoff(model, x):
    attack = StrongAttack(L2(0.3), budget="fast")
    at_cutoff = attack(AtCutoff(model, CUTOFF), Gradient(), x, k=2)
    side = positive(model, x) >= CUTOFF
    assert torch.equal(positive(model, at_cutoff.x_adv) >= CUTOFF, side)
    # At a half they keep to another side: some of those points would cross the cut-off.
    plain = attack(model, Gradient(), x, k=2)
    assert not torch.equal(positive(model, plain.x_adv) >= CUTOFF, side)


def test_an_audit_decides_at_the_cutoff_and_reports_the_models_own_probabilities(
    model,
    x,
    short_attacks,  # noqa: ARG001
):
    y = (x[:, 0] > 0.5).long()
    settings = {"k": 2, "region": L2(0.1), "budget": "fast"}
    at, half = audit(model, x, y, cutoff=CUTOFF, **settings), audit(model, x, y, **settings)
    p = positive(model, x)
    for row in at.rows:
        own = float(p[row["index"]])
        assert row["target"] == int(own >= CUTOFF)
        assert row["probability"] == pytest.approx(own if row["target"] else 1 - own)
    for row in at.result["shown"]:
        for step in row["steps"]:
            own = float(positive(model, torch.tensor([step["x"]], dtype=torch.float64)))
            assert step["probability"] == pytest.approx(own if row["target"] else 1 - own, abs=1e-4)
    # What ranks rows does not depend on where the line is drawn.
    for name in ("auc_clean", "calibration_error"):
        assert at.summary()[name] == pytest.approx(half.summary()[name])
    assert at.result["settings"]["cutoff"] == CUTOFF
    assert "decided at 0.3" in str(at).splitlines()[0]
    assert "cutoff" not in half.result["settings"]


def test_the_proof_is_that_of_the_model_itself_for_the_class_decided_for(
    model,
    x,
    short_attacks,  # noqa: ARG001
):
    result = audit(model, x, k=2, region=L2(0.1), budget="fast", cutoff=CUTOFF)
    target = (positive(model, x) >= CUTOFF).long()
    proof = IntervalCertifier(limit=0.3)(model, Gradient(), x, k=2, target=target).radius
    assert float(proof.max()) > 0.01
    for row in result.rows:
        expected = float(proof[row["index"]])
        assert row["radius_certified"] == pytest.approx(expected, rel=0.02, abs=1e-4)


def test_probabilities_that_fall_are_the_models_own(model, x, short_attacks):  # noqa: ARG001
    result = audit(model, x, k=2, region=L2(0.1), budget="fast", cutoff=CUTOFF)
    alike = positive(model, x).sub(0.5).sign() == positive(model, x).sub(CUTOFF).sign()
    plain = comprehensiveness(model, Gradient(), x)
    rows = [row for row in result.rows if bool(alike[row["index"]])]
    assert len(rows) > 10
    for row in rows:
        assert row["comprehensiveness"] == pytest.approx(float(plain[row["index"]]), abs=1e-9)


def test_half_is_what_it_is_without(model, x, short_attacks):  # noqa: ARG001
    settings = {"k": 2, "region": L2(0.1), "budget": "fast"}
    at, without = audit(model, x, cutoff=0.5, **settings), audit(model, x, **settings)
    assert at.result["rows"] == without.result["rows"]


@pytest.mark.parametrize("cutoff", [0.0, 1.0, -1.0, "0.3"])
def test_a_cutoff_is_a_probability(model, x, cutoff):
    with pytest.raises(InputError, match="cutoff must be None or a probability"):
        audit(model, x, k=2, cutoff=cutoff)


def test_what_has_no_cutoff(model, x):
    with pytest.raises(InputError, match="cutoff must be left out for a model of more than two"):
        audit(MLP(5, classes=3).double(), x, k=2, cutoff=CUTOFF)
    with pytest.raises(InputError, match="explainer must be one of log-odds with a cut-off"):
        audit(model, x, k=2, explainer=Gradient(of="probability"), cutoff=CUTOFF)
