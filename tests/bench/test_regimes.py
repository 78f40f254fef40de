"""Two regimes: their configs, their keys, and that everything is said that `fit` is told."""

import inspect
from dataclasses import replace

import pytest
import torch

from bench_run import main
from r2et.bench import train_task
from r2et.bench.benchmark_config import changes
from r2et.bench.claim import load_claims
from r2et.bench.command import parse_request
from r2et.bench.figure_plans import FIGURES
from r2et.bench.grid import Grid, select_trainings, try_candidates
from r2et.bench.measure_task import MeasureTask
from r2et.bench.nearest import select_nearest
from r2et.bench.networks import papers_network
from r2et.bench.papers import paper_tables
from r2et.bench.papers_regime import PUBLISHED, pair_weights, published_slack
from r2et.bench.record import Record
from r2et.bench.regime_searches import nearest_length
from r2et.bench.registry import BENCHMARKS, REGIMES, find_benchmark
from r2et.bench.run import Runner, run_figure
from r2et.bench.select_task import SelectTask, nearest_candidate
from r2et.bench.task import TaskInput
from r2et.bench.train_task import TrainTask
from r2et.errors import InputError
from r2et.models import MLP
from r2et.penalty import R2ET
from r2et.rank import pairs
from r2et.train import RECIPES, fit, recipe

TABLES = ("adult", "bank", "compas")


class ToldError(Exception):
    """What `fit` was told."""


@pytest.fixture
def told(monkeypatch):
    """Stop before a training, and say what it was asked for."""

    def stop(*given, **named):
        raise ToldError({**inspect.signature(fit).bind(*given, **named).arguments})

    monkeypatch.setattr(train_task, "fit", stop)

    def ask(task):
        with pytest.raises(ToldError) as stopped:
            task.do(())
        return stopped.value.args[0]

    return ask


def test_everything_is_said_to_fit(told):
    """Its defaults may change: those of the network, of stopping and of what is kept among them."""
    asked = told(TrainTask("adult", "r2et", changes(weight=0.1)))
    network = asked["model"]
    assert type(network) is MLP
    assert network.settings == {
        "features": 28,
        "widths": [32],
        "classes": 2,
        "activation": "leaky_relu",
    }
    settings = asked["recipe"]
    assert (settings.weight, settings.patience, settings.hidden) == (0.1, None, None)
    rows = len(find_benchmark("adult").load().train.y)
    assert asked["epochs"] == -(-3000 // -(-rows // 256)) == 23
    assert (asked["keep"], asked["threshold"], asked["k"], asked["radius"]) == ("last", None, 8, 1)
    assert (asked["agree"], asked["check_every"], asked["class_weight"]) == (0.9, None, None)
    assert asked["baselines"] is asked["progress"] is asked["retrain"] is False
    unsaid = set(inspect.signature(fit).parameters) - set(asked)
    assert unsaid <= {"out", "resume", "fabric", "save_every", "sample_weight"}


def test_a_linear_model_and_a_patient_recipe_are_said_too(told, monkeypatch):
    asked = told(TrainTask("adult", "linear"))
    assert asked["model"].settings["widths"] == []
    assert not asked["recipe"].linear  # the network is given, not made from the recipe
    hasty = replace(RECIPES["vanilla"], patience=3)
    monkeypatch.setitem(RECIPES, "vanilla", hasty)
    assert told(TrainTask("adult", "vanilla"))["recipe"].patience is None


def test_the_networks_are_those_of_the_records():
    """Weights drawn by hand, in the order of the papers' layers."""
    data = find_benchmark("compas").load()
    torch.manual_seed(3)
    layers = [torch.nn.Linear(16, 32), torch.nn.Linear(32, 2)]
    drawn = [p for layer in layers for p in layer.parameters()]
    own = list(papers_network(data, seed=3).parameters())
    assert len(own) == 4
    assert all(torch.equal(a, b) for a, b in zip(own, drawn, strict=True))


@pytest.mark.parametrize("name", ["vanilla", "r2et", "sp", "est-h", "certified"])
def test_no_record_is_of_both_regimes(name):
    for data in TABLES:
        epochs = find_benchmark(data, "papers").epochs
        long = TrainTask(data, name, epochs=epochs)
        short = TrainTask(data, name, regime="papers")
        assert "regime" not in long.config()
        assert short.config()["regime"] == "papers"
        assert short.config()["epochs"] == epochs
        for kind in ("er", "mse", "strong", "clean", "certified", "validation"):
            assert MeasureTask(long, kind).name != MeasureTask(short, kind).name
        assert short.vanilla.regime == "papers"


def test_the_long_regime_has_the_keys_that_it_had():
    """Of records that are kept with the pages."""
    assert TrainTask("adult", "vanilla").name == "adult-vanilla-train-6b58e7ffd645acdc"
    again = TrainTask("compas", "r2et", changes(weight=0.01), retrain=True)
    assert again.name == "compas-r2et-retrain-c964b4035a9d867d"


def test_the_papers_thresholds_are_distances_from_their_vanilla():
    assert [published_slack(name) for name in ("adult", "bank", "compas")] == [0.01, 0.01, 0.005]
    assert [published_slack(name) for name in ("adhd", "bp", "mnist")] == [0.02, 0.02, 0.005]
    assert set(PUBLISHED) == set(paper_tables()["table1"]["vanilla"])
    for data in TABLES:
        own, usual = find_benchmark(data, "papers"), find_benchmark(data)
        assert own.slack == published_slack(data)
        assert (own.keep, own.attack("er").keep, usual.attack("er").keep) == (
            "above",
            "last",
            "best",
        )
        assert (own.k, own.rows, own.radius) == (usual.k, usual.rows, usual.radius)


@pytest.mark.parametrize(("name", "kind"), [("r2et", "all"), ("r2et-mm", "closest")])
def test_weights_are_in_the_papers_units(name, kind):
    """l1 makes the sum over pairs of the mean: as many as there are, counted one by one."""
    for data, features in (("adult", 28), ("bank", 18), ("compas", 16)):
        assert find_benchmark(data).load().train.x.shape[1] == features
        count = len(pairs(features, 8, kind))
        tried = [dict(each) for each in pair_weights(features, 8)[name]]
        summed = [each for each in tried if "l1" in each]
        assert {each["l1"] for each in summed} == {count}
        weights = [each["weight"] for each in summed if "adaptive" not in each]
        assert weights == [0.001, 0.01, 0.1, 1.0, 5.0, 10.0, 100.0]
        assert any(each.get("adaptive") for each in tried)


def test_the_penalty_is_on_every_batch_without_a_warm_up():
    for name in ("r2et", "est-h", "r2et-mm-nh"):
        task = TrainTask("bank", name, regime="papers")
        settings = task.settings(RECIPES[name])
        assert (settings.every, settings.warm_up) == (1, 0.0)
        assert TrainTask("bank", name).settings(RECIPES[name]).warm_up == 0.5
    # Ours stay as they are.
    own = TrainTask("bank", "certified", regime="papers").settings(RECIPES["certified"])
    assert own == recipe("certified")


def test_a_sum_over_pairs_is_what_l1_makes():
    x, model = (
        find_benchmark("compas").load().test.x[:5],
        papers_network(find_benchmark("compas").load()),
    )
    one = R2ET(l2=0.0)(model, x)
    many = R2ET(l2=0.0, l1=64.0)(model, x)
    scores = R2ET().explainer(model, x).sort(1, descending=True).values
    summed = -(scores[:, :8, None] - scores[:, None, 8:]).sum((1, 2))
    assert torch.allclose(many, summed, rtol=1e-4)
    assert torch.allclose(many, 64 * one)


def test_a_retraining_tries_two_agreements_and_looks_within_epochs():
    grid = Grid(("bank",), ("r2et",), seeds=1, regime="papers")
    plan = select_trainings(grid, "bank", "r2et", retrain=True)
    (choice,) = next(plan)
    tasks = [measure.of for measure in choice.tried]
    assert {task.config()["agree"] for task in tasks} == {0.5, 0.7}
    assert {task.config()["check_every"] for task in tasks} == {5}
    assert all(task.retrain and task.settings(RECIPES["r2et"]).lr == 0.001 for task in tasks)
    scratch = TrainTask("bank", "r2et", regime="papers").config()
    assert "check_every" not in scratch


def test_the_nearest_length_is_accurate_enough():
    values = {
        "epochs": [1, 2, 3],
        "auc": [[0.7, 0.7], [0.83, 0.84], [0.85, 0.85]],
        "er_last": [[0.84, 0.84], [0.9, 0.92], [0.8, 0.7]],
        "papers": 0.842,
        "papers_auc": 0.83,
    }
    assert nearest_length(values) == 2
    assert nearest_length({**values, "papers_auc": 0.5}) == 1
    assert nearest_length({**values, "papers_auc": 0.99}) == 1  # none is: the nearest of all
    level = {**values, "er_last": [[0.84, 0.84], [0.851, 0.851], [0.842, 0.842]]}
    assert nearest_length(level) == 2  # within a point of the third
    level["er_last"][2] = [0.835, 0.835]
    assert nearest_length({**level, "papers": 0.83}) == 3


def test_regimes_are_asked_for_by_name():
    assert parse_request("table1", "adult", regime="papers").grid.regime == "papers"
    assert parse_request("length-search").grid.regime == "papers"
    with pytest.raises(InputError, match="bench: regime must be one of long, papers, got short"):
        parse_request("table1", regime="short")
    with pytest.raises(InputError, match="bench: regime must be long for figure2"):
        parse_request("figure2", regime="papers")
    with pytest.raises(InputError, match=r"of the papers regime \(adult.*got 'octid', which is"):
        Grid(("octid",), regime="papers")
    assert set(REGIMES["papers"]) < set(BENCHMARKS)


def test_a_table_of_the_papers_regime_is_kept_apart(tmp_path):
    grid = Grid(("compas",), ("vanilla",), seeds=1, epochs=1, rows=8, steps=5)
    main(tmp_path, grid=grid)
    outcome = main(tmp_path, grid=replace(grid, regime="papers"))
    assert {p.name for p in (tmp_path / "claims").iterdir()} == {"table9", "table9-papers"}
    (claim,) = load_claims(tmp_path / "claims", "table9-papers")
    assert (claim.table, claim.regime, claim.settings["regime"]) == ("table9", "papers", "papers")
    assert (
        (tmp_path / "table9-papers.md")
        .read_text()
        .startswith("# Table 9: faithfulness, in the papers' regime")
    )
    assert any("Vanilla's AUC - 0.005" in note for note in outcome.tables[0].notes)
    again = Grid.of_claim(claim.settings, "compas", "vanilla")
    assert again == replace(grid, regime="papers")


def test_the_search_for_a_length(tmp_path):
    grid = Grid(("compas",), ("vanilla",), seeds=2, epochs=1, rows=8, steps=5, regime="papers")
    outcome = run_figure("length-search", grid, Runner(tmp_path, "serial"))
    (panel,) = outcome.panels
    assert panel.values["papers"] == pytest.approx(0.842)
    assert (panel.values["nearest"], panel.values["epochs"]) == (1, [1])
    assert len(panel.records) == 4
    assert {f.suffix for f in outcome.files} == {".png", ".pdf"}
    (none,) = run_figure(
        "length-search", replace(grid, recipes=("linear",)), Runner(tmp_path, "serial")
    ).panels
    assert none.failed == "the papers have no linear on compas to come near to"
    assert FIGURES["length-search"].regime == "papers"


def test_the_nearest_is_above_the_threshold_where_that_is_near_enough():
    def entry(precision, met):
        return {"precision": precision, "met": met, "auc": 0.9}

    near = [entry(0.7, True), entry(0.88, True), entry(0.9, False)]
    assert nearest_candidate(near, 0.9) == (1, True)
    far = [entry(0.7, True), entry(0.84, True), entry(0.9, False)]
    assert nearest_candidate(far, 0.9) == (2, False)
    assert nearest_candidate(far[:2], 0.9) == (1, True)  # no other is nearer


def test_other_lengths_are_tried_where_nothing_is_near():
    """Validation P@k made up: 0.5 at the regime's length, the papers' 0.921 after two epochs."""
    grid = Grid(("adult",), ("r2et",), seeds=2, regime="papers")
    asked = []

    def record(task):
        if isinstance(task, SelectTask):
            inputs = tuple(TaskInput(record(need)) for need in task.needs)
            asked.append(len(task.tried))
            return Record(task.config(), task.do(inputs).measured, name=task.name)
        own = task.of if isinstance(task, MeasureTask) else task
        precision = 0.921 if dict(own.changes).get("epochs") == 2 else 0.5
        return Record(task.config(), {"auc_validation": 0.88, "precision": precision})

    plan = select_nearest(grid, "adult", "r2et")
    wanted = next(plan)
    try:
        while True:
            wanted = plan.send([record(task) for task in wanted])
    except StopIteration as end:
        chosen = end.value
    assert asked == [12, 12 + 3 * 2]  # the AUC allows every weight
    assert dict(chosen.changes)["epochs"] == 2
    assert [task.seed for task in chosen.trains] == [0, 1]
    assert {task.length(RECIPES["r2et"], 10**4) for task in chosen.trains} == {2}
    assert {task.config()["epochs"] for task in chosen.trains} == {2}
    assert chosen.trains[0].vanilla.config()["epochs"] == 1


def test_nearest_is_of_the_papers_regime_alone():
    assert parse_request("nearest", "adult").grid.regime == "papers"
    plan = select_nearest(Grid(("adult",), regime="papers"), "adult", "linear")
    with pytest.raises(StopIteration) as end:
        next(plan)
    assert end.value.value.failed == "the papers have no linear on adult"


def test_weights_grow_until_the_auc_is_too_low():
    """Three rows of weights, each with a made-up AUC that the second weight of the sum loses."""
    grid = Grid(("bank",), ("r2et",), seeds=1, regime="papers")
    every = grid.candidates(grid.benchmark("bank"), "r2et")
    rows = grid.ladders(grid.benchmark("bank"), "r2et")
    assert [each for row in rows for each in row] == list(every)
    assert [len(row) for row in rows] == [7, 3, 2]
    asked = []

    def record(task):
        asked.append(task)
        own = dict(task.of.changes)
        low = own.get("weight", 0) >= 0.01 and "adaptive" not in own and "l1" in own
        return Record(task.config(), {"auc_validation": 0.7 if low else 0.78}, name=task.name)

    plan = try_candidates(grid, "bank", "r2et", False)
    wanted = next(plan)
    try:
        while True:
            wanted = plan.send([record(task) for task in wanted])
    except StopIteration as end:
        tries, tasks = end.value
    assert tries == (*rows[0][:2], *rows[1], *rows[2])
    assert [task.of.changes for task in tasks] == list(tries)
    assert not any(dict(task.of.changes).get("weight", 0) > 1 for task in asked)
    long = Grid(("bank",), ("r2et",))
    assert [len(row) for row in long.ladders(long.benchmark("bank"), "r2et")] == [1, 1, 1, 1]
    again = grid.ladders(grid.benchmark("bank"), "r2et", retrain=True)
    assert {len(row) for row in again} == {1}
