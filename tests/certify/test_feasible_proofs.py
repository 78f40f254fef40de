"""Proofs for feasible changes, against every one of them tried."""

import pytest
import torch
from torch import nn

from r2et.certify import IntervalCertifier
from r2et.data.column import Column
from r2et.data.schema import Schema
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients, SmoothGrad
from r2et.rank import precision_at_k
from r2et.region import Feasible

SCHEMA = Schema(
    columns=(
        Column("age", "integer", low=20.0, high=60.0),
        Column("job", "category", categories=("a", "b", "c")),
        Column("pay", "number", low=0.0, high=1.0, fill=0.5, flag=True),
        Column("home", "category", categories=("own", "rent")),
        Column("owner", "binary", categories=("no", "yes")),
    ),
)
REGION = Feasible(
    SCHEMA, moves={"age": 2, "pay": 0.1}, switches=1, grid={"pay": 0.05}, frozen=["job"]
)
MEAN = (0.5, 0.4, 0.3, 0.3, 0.5, 0.1, 0.5, 0.5, 0.5)
EXPLAINERS = {
    "gradient": Gradient(groups=SCHEMA.groups),
    "contribution": GradientTimesInput(groups=SCHEMA.groups, baseline=MEAN, reduce="signed"),
    "integrated": IntegratedGradients(groups=SCHEMA.groups, baseline=MEAN, points=6),
    "smooth": SmoothGrad(groups=SCHEMA.groups, samples=4, sigma=0.1, reduce="signed"),
}


def people(count):
    generator = torch.Generator().manual_seed(3)

    def drawn(high):
        return torch.randint(0, high, (count,), generator=generator)

    missing = drawn(4) == 0
    raw = {
        "age": (20 + drawn(41)).double().numpy(),
        "job": ["abc"[i] for i in drawn(3).tolist()],
        "pay": torch.where(missing, torch.nan, drawn(21) / 20.0).double().numpy(),
        "home": [("own", "rent")[i] for i in drawn(2).tolist()],
        "owner": [("no", "yes")[i] for i in drawn(2).tolist()],
    }
    return SCHEMA.encode(raw)


def net(seed, size):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(9, 8), nn.Softplus(), nn.Linear(8, 2))
    for weight in model.parameters():
        weight.data *= size
    return model.eval().requires_grad_(False)


def least_share(model, explainer, x, k):
    """(B,) the smallest share of the clean top k over all feasible points, whatever is decided."""
    target = model(x).argmax(1)
    clean, least = explainer(model, x, target), torch.ones(len(x))
    for rows, points in REGION.enumerate(x):
        there = explainer(model, points, target[rows])
        share = precision_at_k(clean[rows], there, k)
        least[rows] = torch.minimum(least[rows], share)
    return least


@pytest.mark.parametrize("name", EXPLAINERS)
def test_what_is_proved_holds_at_every_point(name):
    explainer, x, k = EXPLAINERS[name], people(30), 1
    proved = broken = 0
    for seed, size in ((0, 0.7), (1, 1.5)):
        model = net(seed, size)
        certificate = IntervalCertifier(region=REGION)(model, explainer, x, k=k)
        least = least_share(model, explainer, x, k)
        radius = certificate.radius
        assert set(radius.tolist()) <= {0.0, 1.0}
        assert (least[radius == 1] == 1).all()
        assert (certificate.precision_at(1) <= least + 1e-6).all()
        assert (certificate.precision_at(1)[radius == 1] == 1).all()
        proved += int(radius.sum())
        broken += int((least < 1).sum())
    assert proved > 5
    assert broken > 5


def test_each_reason_by_itself():
    explainer, x, model = EXPLAINERS["integrated"], people(30), net(1, 1.5)
    target = model(x).argmax(1)
    certificate = IntervalCertifier(region=REGION)(model, explainer, x, k=3)
    stays, each = certificate.stays_at(1), certificate.reason_radius
    clean = explainer(model, x, target)
    order = clean.argsort(1, descending=True)[:, :3]
    assert torch.equal(stays.gather(1, order), each == 1)
    always = torch.ones_like(stays)
    for rows, points in REGION.enumerate(x):
        there = explainer(model, points, target[rows]).topk(3).indices
        inside = torch.zeros(len(rows), 5 + 1, dtype=torch.bool).scatter(1, there, True)
        always[rows] &= inside
    assert not (stays & ~always).any()
    assert 0 < int((each == 1).all(1).sum()) < int((each == 1).any(1).sum())


def test_more_ways_than_are_certified_prove_nothing_and_say_so():
    region = Feasible(SCHEMA, moves=1.0, switches=2)
    certifier = IntervalCertifier(region=region, patterns=5)
    certificate = certifier(net(0, 0.5), Gradient(), people(4), k=2)
    assert not certificate.radius.any()
    assert not certificate.stays_at(1).any()
    assert certificate.precision_at(1).tolist() == [0.0] * 4
    (note,) = certificate.notes
    assert note.startswith("Nothing is proved: labels can be switched in 10 ways, more than the 5")


def test_labels_alone_and_numbers_alone():
    model, x = net(0, 1.0), people(20)
    explainer = EXPLAINERS["integrated"]
    both = IntervalCertifier(region=REGION)(model, explainer, x, k=3).radius
    moves = {"age": 2, "pay": 0.1}
    for region in (Feasible(SCHEMA, switches=1, frozen=["job"]), Feasible(SCHEMA, moves=moves)):
        radius = IntervalCertifier(region=region)(model, explainer, x, k=3).radius
        assert (radius >= both).all()
        assert both.sum() > 5
