"""Figures of an audit against closed forms and a second computation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from nets import quadratic
from r2et import audit
from r2et.attack import ERAttack
from r2et.audit import bracket
from r2et.audit.concatenate import check_bracket
from r2et.audit.measures.predictions import top_sets
from r2et.audit.settings import AuditSettings
from r2et.audit.statistics import RESAMPLES, median, resampled_aucs
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.metrics import auc_of_logits
from r2et.models import predict
from r2et.rank import precision_at_k
from r2et.region import L2, Linf


class Squeezed(nn.Module):
    """Drops every dimension of size one, as many do who think of batches."""

    def __init__(self, out):
        super().__init__()
        self.line = nn.Linear(4, out)

    def forward(self, x):
        return self.line(x).squeeze()


@pytest.mark.usefixtures("short_attacks")
def test_one_logit_squeezed_away_is_one_logit():
    torch.manual_seed(0)
    net, x = Squeezed(1), torch.rand(5, 4)
    # The last chunk is a single row, too.
    kept, plain = (audit(m, x, k=2, minutes=1e-9, chunk=4) for m in (net, net.line))
    assert kept.result["rows"] == plain.result["rows"]
    with pytest.raises(InputError, match=r"\(1, C\), also for one row \(a squeeze takes its"):
        audit(Squeezed(3), x, k=2)


def test_probabilities_are_no_logits():
    net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    with pytest.raises(InputError, match=r"^audit: model must be one that returns logits, got"):
        audit(net, torch.rand(5, 4), k=2)
    with pytest.raises(InputError, match=r"^bracket: model must be one that returns logits, got"):
        bracket(net, torch.rand(5, 4), k=2)


def test_noise_and_sensitivity_against_a_second_computation():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).eval()
    x, region = torch.randn(24, 6), L2(1.0)
    found = audit(model, x, k=2, region=region, budget="fast", chunk=24)
    index = torch.tensor([row["index"] for row in found.rows])
    x, label = x[index], predict(model, x[index])
    # What the papers' attack ends at, and whether the prediction is still there.
    attack = ERAttack(region, steps=100, step_size=0.01, through=Gradient(of="probability"))
    last = replace(attack, keep="last")(model, Gradient(), x, k=2)
    assert [row["sensitivity"] for row in found.rows] == (~last.kept).double().tolist()
    assert 0 < found.summary()["sensitivity"] < 0.5
    # The mean over random points that keep the prediction, row by row.
    points = region.sample(x, 100, generator=AuditSettings(2, region).generator(0, "noise"))
    clean, lost = Gradient()(model, x), 0
    for i, row in enumerate(found.rows):
        kept = predict(model, points[:, i]) == label[i]
        scores = Gradient()(model, points[kept, i], int(label[i]))
        share = precision_at_k(clean[i : i + 1].expand_as(scores), scores, 2).double().mean()
        assert row["precision_noise"] == pytest.approx(float(share))
        lost += int((~kept).sum())
    assert lost > 0


def test_what_an_attack_does_inside_a_proof_is_a_bug_and_said_so():
    columns = {
        "index": torch.tensor([7, 8, 9]),
        "radius_certified": torch.tensor([0.1, 0.1, torch.nan]).double(),
        "radius_attacked": torch.tensor([0.2, torch.nan, 0.1]).double(),
        "certified_precision": torch.tensor([0.5, 1.0, torch.nan]).double(),
        "precision_strong": torch.tensor([0.5, 1.0, 0.0]),
    }
    check_bracket(columns)
    with pytest.raises(RuntimeError, match="row 7 was changed inside its certified radius"):
        check_bracket({**columns, "radius_attacked": torch.tensor([0.09, 1.0, 1.0]).double()})
    with pytest.raises(RuntimeError, match="row 8 was changed inside its certified radius"):
        check_bracket({**columns, "precision_er": torch.tensor([1.0, 0.75, 0.0])})


def test_a_linear_model_holds_still_whatever_happens():
    torch.manual_seed(0)
    model = nn.Linear(6, 2).eval()
    x = torch.rand(20, 6)
    found = audit(model, x, k=2, region=Linf(0.5), budget="fast")
    told = found.summary()
    (line,) = (line for line in str(found).splitlines() if "radius proved" in line)
    assert line.endswith("  at least 1.5")
    for name in ("precision_noise", "precision_er", "precision_strong", "certified_share"):
        assert told[name] == told[f"{name}_high"] == 1.0
        # Of 20 rows none moved: more than 16.8 % that do would have shown in 97.5 % of draws.
        assert told[f"{name}_low"] == pytest.approx(0.025 ** (1 / 20))
    assert told["radius_certified_median"] == pytest.approx(1.5, rel=1e-5)
    assert told["radius_attacked_median"] is None
    assert (told["distinct_top_k"], told["largest_top_k_share"]) == (1, 1.0)
    assert told["thickness_probability"] == pytest.approx(1.0)
    assert told["auc_clean"] is told["auc_linear"] is None


def test_the_smallest_change_of_a_quadratic_is_its_closed_form():
    model = quadratic()
    with torch.no_grad():
        model.b += 20 * torch.arange(1, 7).double()  # far from the decision and from ties of signs
    x = torch.rand(12, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    k = 2
    found = audit(model, x, k=k, region=L2(60.0), explainer=Gradient(reduce="signed"))
    a_rows = model.a.detach()
    scores = x @ a_rows + model.b.detach()
    for row in found.rows:
        i, rest = row["index"], set(range(6)) - set(row["top"])
        far = min(
            float((scores[i, a] - scores[i, b]) / (a_rows[a] - a_rows[b]).norm())
            for a in row["top"]
            for b in rest
        )
        assert row["radius_attacked"] == pytest.approx(far, rel=2e-2)
        assert row["radius_attacked"] >= far * (1 - 1e-9)
        assert row["radius_certified"] == pytest.approx(far, rel=5e-3)  # proof and attack meet
        assert row["radius_certified"] <= far


def test_sets_and_medians_by_hand():
    top = torch.tensor([[0, 1], [1, 0], [2, 1], [3, 1]])
    sets, largest = top_sets(top)
    assert sets == 3
    assert largest.tolist() == [1, 1, 0, 0]
    values = torch.tensor([3.0, 1.0, torch.inf, 4.0, 5.0, 9.0])
    assert median(values, 0.95) == (4.0, 1.0, None)
    assert median(torch.tensor([]), 0.95) == (None, None, None)
    # The interval holds the true median as often as it says.
    random = torch.Generator().manual_seed(0)
    held = 0
    for _ in range(500):
        _, low, high = median(torch.rand(31, generator=random), 0.9)
        held += low <= 0.5 <= high
    assert held / 500 >= 0.88


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_resampled_aucs_are_those_of_the_rows_drawn(classes):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(60, classes, generator=generator).double().round(decimals=1)
    y = torch.randint(max(2, classes), (60,), generator=generator)
    drawn = np.random.default_rng(0).multinomial(60, np.full(60, 1 / 60), size=RESAMPLES)
    found = resampled_aucs(logits, y)
    for sample, value in zip(drawn[:20], found[:20], strict=True):
        rows = torch.from_numpy(np.repeat(np.arange(60), sample))
        assert value == pytest.approx(auc_of_logits(logits[rows], y[rows]))


def test_few_rows_of_many_classes_are_enough_for_an_area():
    # Some samples of three rows hold one class only, and have none.
    logits, y = torch.eye(3).double(), torch.arange(3)
    found = resampled_aucs(logits, y)
    assert 0 < len(found) < RESAMPLES
    assert np.isfinite(found).all()
