"""Training for reasons as a command line asks for it, and the same training with several seeds."""

import json
import sys

import pytest
import torch

from credit_table import credit, frame
from linear_person import GROUPS, NAMES, Linear, people
from r2et import cli, reasons
from r2et.errors import InputError
from r2et.reason import agreement, retrained
from r2et.reason.training import class_index, trained_for, trained_reasons
from r2et.region import Feasible
from r2et.train import fit, load_trained, recipe

SETTINGS = {"groups": GROUPS, "names": NAMES, "baseline": 0.5, "k": 2}


@pytest.fixture(scope="module")
def data():
    return credit(120)


def other_weights(place, value):
    model = Linear()
    with torch.no_grad():
        model.weight[place] = value
    return model


def test_people_to_whom_all_models_say_the_same_are_counted_by_hand():
    x = people(60)
    models = [Linear(), other_weights(0, 1.0), other_weights(5, 1.5)]
    told = [reasons(model, x, **SETTINGS) for model in models]
    alike = [own for own in zip(*told, strict=True) if len({p.decision for p in own}) == 1]
    same = [own for own in alike if len({frozenset(p.columns) for p in own}) == 1]
    assert 0 < len(same) < len(alike)
    common = agreement(models, x, **SETTINGS)
    assert common["all_alike"] == len(alike)
    assert common["same_share"] == len(same) / len(alike)
    assert common["same_share_low"] < common["same_share"] < common["same_share_high"]


def test_rows_that_one_model_refuses_alone_are_no_common_rows():
    with pytest.raises(InputError, match="only_decided must be left out where several models"):
        agreement([Linear()] * 2, people(3), only_decided=True, **SETTINGS)
    with pytest.raises(InputError, match="diff: models must be a list of two or more, got Linear"):
        agreement(Linear(), people(3))


def test_the_region_and_the_class_reach_the_penalty(data):
    chosen, region = trained_for(
        data, recipe("r2et-reasons"), moves="age=2,amount=100", switches=1, toward="good"
    )
    assert chosen.penalty.toward == data.classes.index("good")
    assert dict(region.reaches) == {"age": 2.0, "amount": 100.0}
    assert region.switches == 1
    untouched = recipe("vanilla")
    assert trained_for(data, untouched) == (untouched, None)
    assert trained_for(data, untouched, toward="bad", compared=True) == (untouched, None)
    own, none = trained_for(data, recipe("certified-reasons"), toward="1")
    assert (own.penalty.toward, none) == (1, None)


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("vanilla", {"moves": "age=2"}, "train: moves must be left out for vanilla"),
        ("vanilla", {"toward": "bad"}, "train: toward must be left out for vanilla"),
        ("r2et-reasons", {"frozen": "age"}, "train: frozen must be given with --moves, got age"),
        ("r2et-reasons", {"moves": "agee=2"}, r"got agee \(did you mean age\?\)"),
        ("r2et-reasons", {"toward": "worse"}, r"a class of the data \(bad, good\), got worse"),
        ("r2et-reasons", {"toward": "2"}, r"a class of the data \(bad, good\), got 2"),
        ("certified-reasons", {"moves": "age=2", "switches": 1}, "switches must be left out for"),
        ("certified-reasons", {"moves": "housing"}, "moves must be of numbers alone for"),
    ],
)
def test_what_cannot_be_trained_for_is_one_sentence(data, name, asked, message):
    with pytest.raises(InputError, match=message):
        trained_for(data, recipe(name), **asked)


def test_a_class_of_data_without_labels_is_a_number():
    from r2et.data import Data, Split

    part = Split(torch.rand(8, 3), torch.arange(8) % 2)
    bare = Data("bare", part, part, part, ("a", "b", "c"), (), 1, "made up")
    assert class_index(bare, "1") == 1
    with pytest.raises(InputError, match=r"a class of the data \(0, 1\), got yes"):
        class_index(bare, "yes")


def test_seeds_are_trained_kept_and_compared(data, tmp_path, short_attacks):  # noqa: ARG001
    settings = {"epochs": 1, "baselines": False, "toward": "bad"}
    done = retrained(data, recipe("vanilla"), tmp_path / "m", 2, seed=3, **settings)
    assert done.seeds == (3, 4)
    models = [load_trained(tmp_path / "m" / f"seed-{seed}") for seed in (3, 4)]
    weights = [next(iter(trained.model.parameters())) for trained in models]
    assert not torch.equal(*weights)
    expected = agreement(models, data.test.x[:200], k=4, toward="bad")
    assert done.agreement == expected
    stored = json.loads((tmp_path / "m" / "agreement.json").read_text())
    assert stored == done.to_dict()
    assert [run["folder"] for run in stored["runs"]] == [
        str(tmp_path / "m" / f"seed-{seed}") for seed in (3, 4)
    ]


@pytest.mark.parametrize(("seeds", "seed"), [(1, 0), (101, 0), (2.0, 0), (2, 2**32 - 1)])
def test_a_strange_number_of_seeds_is_refused(data, tmp_path, seeds, seed):
    with pytest.raises(InputError, match=r"train: seeds? must be"):
        retrained(data, recipe("vanilla"), tmp_path, seeds, seed=seed)


def test_the_reasons_after_a_training_are_those_of_reasons(data, tmp_path):
    fit(None, data, "linear", out=tmp_path / "m", epochs=1, progress=False, baselines=False)
    region = Feasible(data.schema, moves={"age": 1})
    kept = trained_reasons(tmp_path / "m", data, region, toward="bad", rows=10)
    told = reasons(load_trained(tmp_path / "m"), data.test.x[:10], k=4, toward="bad", region=region)
    assert {n: getattr(kept, n) for n in ("proved", "unknown", "broken")} == told.shares()
    assert kept.sets == len({frozenset(person.columns) for person in told})
    assert (kept.rows, kept.changes) == (10, "changes of at most 1 in age")


def test_the_command_tells_all_of_it(tmp_path, monkeypatch, capsys, short_attacks):  # noqa: ARG001
    frame(120).to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["r2et", "train", "t.csv", "--target", "risk", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, *capsys.readouterr()

    few = ("--epochs", "1", "--no-baselines")
    code, out, _ = run(*few, "--recipe", "linear", "--seeds", "2", "--toward", "bad", "-o", "many")
    assert code == 0
    for part in ("seed 0", "seed 1", "reasons for bad", "of all 2 models", "many/seed-0"):
        assert part in out
    reasoned = ("--recipe", "r2et-reasons", "--moves", "age=1", "--toward", "bad", "--json")
    code, out, _ = run(*few, *reasoned, "-o", "one")
    assert code == 0
    told = json.loads(out)["reasons"]
    assert told["changes"] == "changes of at most 1 in age"
    assert told["proved"] + told["unknown"] + told["broken"] == pytest.approx(1)
    code, _, err = run(*few, "--recipe", "certified", "--moves", "age=1", "-o", "none")
    assert (code, not (tmp_path / "none").exists()) == (2, True)
    assert "moves must be left out for certified (r2et-reasons and certified-reasons" in err
