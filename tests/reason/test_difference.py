"""Who gets other reasons when a model is replaced."""

import json

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from credit_table import credit, frame
from linear_person import GROUPS, NAMES, Linear, people
from r2et import reasons
from r2et.cli import app
from r2et.errors import InputError
from r2et.models import MLP
from r2et.reason import agreement, difference
from r2et.train import fit

SETTINGS = {"groups": GROUPS, "names": NAMES, "baseline": 0.5, "k": 2}


def other_weights(*changes):
    model = Linear()
    with torch.no_grad():
        for place, value in changes:
            model.weight[place] = value
    return model


def test_a_model_agrees_with_itself():
    told = reasons(Linear(), people(30), **SETTINGS)
    result = difference(told, told)
    assert (result.rows, result.same_decision, result.changed, result.reordered) == (30, 30, 0, 0)
    assert result.shared == 1
    assert result.people == ()
    assert result.summary()["changed_share_high"] > 0  # thirty people say no more than that


def test_people_are_counted_by_hand():
    x, other = people(200), other_weights((0, 0.1), (5, 2.0))
    before, after = (reasons(model, x, **SETTINGS) for model in (Linear(), other))
    result = difference(before, after)
    pairs = list(zip(before, after, strict=True))
    alike = [(a, b) for a, b in pairs if a.decision == b.decision]
    changed = [(a, b) for a, b in alike if set(a.columns) != set(b.columns)]
    assert 0 < len(changed) < len(alike) < 200
    assert (result.same_decision, result.changed) == (len(alike), len(changed))
    assert result.changed_share == len(changed) / len(alike)
    assert result.reordered == sum(
        a.columns != b.columns and set(a.columns) == set(b.columns) for a, b in alike
    )
    assert {p.row for p in result.people} == {a.row for a, b in pairs if (a, b) not in alike} | {
        a.row for a, _ in changed
    }
    lost = sum(name not in b.columns for a, b in changed for name in a.columns)
    assert sum(count for _, count, _ in result.columns()) == lost
    assert "years" in {name for name, _, _ in result.columns()}


def test_agreement_is_the_mean_over_pairs():
    x = people(60)
    models = [Linear(), other_weights((0, 1.0)), other_weights((5, 1.5))]
    told = [reasons(model, x, **SETTINGS) for model in models]
    pairs = [difference(told[i], told[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    means = agreement(models, x, **SETTINGS)
    assert (means["models"], means["pairs"], means["rows"]) == (3, 3, 60)
    assert means["changed_share"] == pytest.approx(sum(p.changed_share for p in pairs) / 3)
    assert means["shared"] == pytest.approx(sum(p.shared for p in pairs) / 3)


def test_what_cannot_be_compared_is_refused():
    one, two = (reasons(Linear(), people(rows), **SETTINGS) for rows in (3, 4))
    with pytest.raises(InputError, match="diff: rows must be the same for both models"):
        difference(one, two)
    other = reasons(Linear(), people(3), **{**SETTINGS, "k": 1})
    with pytest.raises(InputError, match="diff: k must be 2 for both models, got 1"):
        difference(one, other)
    with pytest.raises(InputError, match="diff: models must be two or more, got 1"):
        agreement([Linear()], people(3))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    for seed in (0, 1):
        settings = {"k": 4, "epochs": 4, "progress": False, "baselines": False}
        torch.manual_seed(seed)
        data = credit()
        fit(MLP(len(data.names)), data, "vanilla", out=place / f"m{seed}", **settings)
    return place


def test_the_command(folders, tmp_path):
    old, new = str(folders / "m0"), str(folders / "m1")
    shown = CliRunner().invoke(app, ["diff", old, new, "--json"])
    assert shown.exit_code == 0, shown.output
    plain = json.loads(shown.stdout)
    assert plain["summary"]["rows"] == len(credit().test.y)
    share = plain["summary"]["changed_share"]
    assert 0 < share < 1
    assert CliRunner().invoke(app, ["diff", old, new, "--max-changed", "1"]).exit_code == 0
    shut = CliRunner().invoke(app, ["diff", old, new, "--max-changed", "0"])
    assert shut.exit_code == 3
    assert "may get other reasons for the same decision" in shut.stderr
    data, out = tmp_path / "t.csv", tmp_path / "out.csv"
    frame(20, seed=4).to_csv(data, index=False)
    told = CliRunner().invoke(app, ["diff", old, new, str(data), "--toward", "bad", "-o", str(out)])
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("20 people, at most 4 reasons each")
    assert list(pd.read_csv(out).columns)[:3] == ["row", "decision_before", "decision_after"]
