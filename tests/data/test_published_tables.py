"""Bank and COMPAS: what their features are, and that a plain network learns from them."""

import pytest
import torch
from sklearn.metrics import roc_auc_score

from r2et.data.compas import charge_kind
from r2et.models import MLP
from real_data import real

SIZES = {"bank": (28831, 6178, 6179), "compas": (4320, 925, 927)}
TABLES = sorted(SIZES)


def auc(data, seed=0, epochs=8):
    """Test AUC of the papers' network, trained plainly."""
    torch.manual_seed(seed)
    model = MLP(len(data.names))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = data.train
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(256):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        return roc_auc_score(data.test.y, model(data.test.x).diff(dim=1)[:, 0])


@pytest.mark.parametrize(("name", "features"), [("bank", 18), ("compas", 16)])
def test_shapes(name, features):
    data = real(name)
    for part, rows in zip((data.train, data.val, data.test), SIZES[name], strict=True):
        assert part.x.shape == (rows, features)
        assert part.x.dtype == torch.float32
        assert part.y.shape == (rows,)
        assert 0 <= part.x.min() <= part.x.max() <= 1
    assert len(data.names) == len(set(data.names)) == features
    assert data.k == 8


@pytest.mark.parametrize(("name", "share"), [("bank", 0.1127), ("compas", 0.4458)])
def test_every_part_has_the_same_share_of_class_1(name, share):
    data = real(name)
    whole = torch.cat([data.train.y, data.val.y, data.test.y])
    assert float(whole.float().mean()) == pytest.approx(share, abs=5e-4)
    for part in (data.train, data.val, data.test):
        assert float(part.y.float().mean()) == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize("name", TABLES)
def test_scaling_is_learned_on_the_training_part(name):
    data = real(name)
    measured = [i for i, column in enumerate(data.names) if ":" not in column]
    x = data.train.x[:, measured]
    assert torch.equal(x.amin(0), torch.zeros(len(measured)))
    assert torch.equal(x.amax(0), torch.ones(len(measured)))


@pytest.mark.parametrize("name", TABLES)
def test_one_hot_groups(name):
    data = real(name)
    for part in (data.train, data.val, data.test):
        for group in data.groups:
            assert torch.equal(part.x[:, list(group)].sum(1), torch.ones(len(part.y)))


def test_names():
    assert real("bank").names[:5] == (
        "age",
        "marital status: divorced",
        "marital status: married",
        "marital status: single or unknown",
        "education: basic",
    )
    assert "last campaign: success" in real("bank").names
    assert {"prior offences", "sex: male", "degree: felony", "charge: drugs"} <= set(
        real("compas").names
    )


@pytest.mark.parametrize(("name", "leak"), [("bank", "duration"), ("compas", "decile_score")])
def test_what_gives_the_answer_away_is_left_out(name, leak):
    schema = real(name).schema
    assert leak in dict(schema.dropped)
    assert leak not in [column.name for column in schema.columns]


def test_a_row_reads_back_as_its_raw_values():
    data = real("compas")
    person = data.schema.decode(data.test.x[0])
    assert 18 <= person["age"] <= 96
    assert person["race"] in ("African-American", "Caucasian", "Hispanic", "other")


@pytest.mark.parametrize(("name", "paper"), [("bank", 0.64), ("compas", 0.83)])
def test_a_plain_network_reaches_the_papers_auc(name, paper):
    assert auc(real(name)) > paper + 0.01


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Battery", "violence"),
        ("Burglary Dwelling Assault/Batt", "violence"),
        ("Poss Wep Conv Felon", "violence"),
        ("Possession Burglary Tools", "property"),
        ("Grand Theft (Motor Vehicle)", "property"),
        ("Possession of Cocaine", "drugs"),
        ("DUI Property Damage/Injury", "driving"),
        ("Driving While License Revoked", "driving"),
        ("arrest case no charge", "other or none"),
        ("", "other or none"),
    ],
)
def test_charge_kinds(text, kind):
    assert charge_kind(text) == kind
