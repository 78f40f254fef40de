"""Training for the reasons that people are given."""

from dataclasses import replace

import pytest
import torch

from credit_table import credit
from r2et.data import load
from r2et.errors import InputError
from r2et.explain import IntegratedGradients
from r2et.penalty import ReasonGaps
from r2et.region import Feasible, Linf
from r2et.train import fit, recipe
from r2et.train.defaults import (
    column_groups,
    moves_box,
    reasons_explainer,
    reasons_region,
)

QUICK = {"epochs": 2, "progress": False, "baselines": False}


def test_columns_are_those_of_the_table_with_their_flags():
    data = credit(60)
    groups = column_groups(data)
    names = [column.name for column in data.schema.columns]
    assert len(groups) == len(names)
    assert [i for group in groups for i in group] == list(range(len(data.names)))
    income = groups[names.index("income")]
    assert [data.names[i] for i in income] == ["income", "income: missing"]
    bare = replace(data, schema=None)
    assert set(column_groups(bare)) >= set(data.groups)
    assert [i for group in column_groups(bare) for i in group] == list(range(len(data.names)))


def test_contributions_are_compared_with_the_average_training_row():
    data = credit(60)
    method = reasons_explainer(data, ReasonGaps().explainer)
    assert isinstance(method, IntegratedGradients)
    assert method.reduce == "signed"
    assert torch.allclose(torch.tensor(method.baseline), data.train.x.mean(0), atol=1e-6)
    scores = method(torch.nn.Linear(len(data.names), 2), data.test.x)
    assert scores.shape == (len(data.test.y), len(data.schema.columns))


def test_rows_are_usually_off_by_whole_units_of_whole_numbers():
    data = credit(400)
    moves = data.schema.usual_moves(data.train.x)
    spread = data.schema.deviations(data.train.x)
    assert moves["age"] == moves["duration in months"] == 1
    assert moves["income"] == round(0.05 * spread["income"])
    assert moves["amount"] == pytest.approx(0.05 * spread["amount"])
    region = reasons_region(data, None, ReasonGaps())
    assert dict(region.reaches)["age"] == 1
    assert reasons_region(replace(data, schema=None), None, ReasonGaps()) is None
    assert reasons_region(data, Linf(0.1), ReasonGaps()) == Linf(0.1)


def test_fit_takes_four_reasons_and_the_usual_moves():
    data = credit(200)
    done = fit(None, data, "r2et-reasons", keep="last", **QUICK)
    penalty = done.record["config"]["recipe"]["penalty"]
    assert penalty["k"] == done.record["k"] == 4
    assert penalty["region"]["name"] == "Feasible"
    own = Feasible(data.schema, moves={"age": 3}, switches=1)
    other = fit(None, data, "r2et-reasons", region=own, k=2, keep="last", **QUICK)
    assert other.record["config"]["recipe"]["penalty"]["region"]["switches"] == 1
    assert other.record["k"] == 2
    again = fit(None, data, "r2et-reasons", keep="last", **QUICK)
    for a, b in zip(done.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_training_for_them_widens_their_gaps():
    """On rows that it was not trained on: less of the hinge is left, at a small price."""
    data = load("adult")
    few = replace(data, train=type(data.train)(data.train.x[:4000], data.train.y[:4000]))
    penalty = replace(
        ReasonGaps(), explainer=reasons_explainer(data, ReasonGaps().explainer), toward=0
    )
    penalty = replace(penalty, region=reasons_region(data, None, penalty))
    noise = torch.randn(400, data.train.x.shape[1], generator=torch.Generator().manual_seed(0))
    left = {}
    for weight in (0.0, 1.0):
        settings = recipe("r2et-reasons", weight=weight, toward=0)
        short = {"epochs": 6, "keep": "last", "progress": False, "baselines": False}
        model = fit(None, few, settings, **short).model
        left[weight] = float(penalty(model, data.test.x[:400], noise=noise).mean().detach())
    assert left[1.0] < 0.7 * left[0.0]


def test_the_box_of_moves_holds_every_change_of_the_numbers():
    data = credit(80)
    region = Feasible(data.schema, moves={"age": 2, "amount": 500.0})
    box = moves_box(region)
    x = data.test.x.double()
    reach = region.box(x)
    sizes = torch.tensor(box.scale, dtype=torch.float64)
    assert bool((reach <= sizes + 2.0**-23).all())  # x is known in float32
    still = torch.tensor([i in box.frozen for i in range(x.shape[1])])
    assert torch.equal(still, ~(reach > 0).any(0))


def test_against_the_proof_the_ball_is_in_units_of_the_moves():
    data = credit(200)
    region = Feasible(data.schema, moves={"age": 3})
    chosen = recipe("certified-reasons", toward=1)
    done = fit(None, data, chosen, region=region, radius=0.3, **QUICK)
    penalty = done.record["config"]["recipe"]["penalty"]
    assert (penalty["radius"], penalty["k"], penalty["toward"]) == (2.0, 4, 1)
    assert penalty["region"]["name"] == "Linf"
    assert len(penalty["region"]["frozen"]) == len(data.names) - 1
    assert penalty["explainer"]["groups"] == [list(group) for group in column_groups(data)]
    plain = fit(None, data, recipe("certified-reasons", weight=0.0), **QUICK)
    pairs = zip(done.model.parameters(), plain.model.parameters(), strict=True)
    assert not all(torch.equal(a, b) for a, b in pairs)


def test_what_has_no_reasons_is_refused():
    data = credit(60)
    with pytest.raises(InputError, match="fit: region must be left out for this recipe, got Linf"):
        fit(None, data, "vanilla", region=Linf(0.1), **QUICK)
    pictures = replace(
        data, **{p: type(data.train)(torch.rand(8, 1, 4, 4), torch.arange(8) % 2) for p in PARTS}
    )
    with pytest.raises(InputError, match="fit: data must be a table, of whose columns reasons are"):
        fit(torch.nn.Linear(1, 1), pictures, "r2et-reasons", **QUICK)


PARTS = ("train", "val", "test")
