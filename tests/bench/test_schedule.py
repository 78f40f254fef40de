"""The schedule, with tasks that cost nothing: order, once each, failures, budgets, lost workers."""

import hashlib
import json
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from bench_tasks import Sum
from r2et.bench.grid import Grid, select_trainings
from r2et.bench.measure_task import MeasureTask
from r2et.bench.record import OF_NETWORK, OTHERWISE, Record, Records
from r2et.bench.schedule import carry_out
from r2et.bench.select_task import SelectTask
from r2et.bench.task import TaskInput
from r2et.bench.train_task import TrainTask
from r2et.config import config_key
from r2et.engine import engine

A = Sum("a")
B = Sum("b", (A,))
C = Sum("c", (A, B))


def asks(*lists):
    """A plan that asks for lists of tasks, one after the other, and returns the last totals."""

    def plan():
        records = []
        for wanted in lists:
            records = yield list(wanted)
        return [r.failed or r.measured["total"] for r in records]

    return plan()


def run(plans, folder, **more):
    return carry_out(plans, Records(folder), engine("here"), **more)


def test_needs_come_first_and_everything_is_done_once(tmp_path):
    seen = []
    plans = [asks([C]), asks([A], [B, C]), asks([B]), asks([])]
    totals = run(plans, tmp_path, watch=lambda title, *_: seen.append(title))
    assert totals == [[4], [2, 4], [2], []]
    assert seen == ["a", "b", "c"]
    seen.clear()
    assert run([asks([C])], tmp_path, watch=lambda *heard: seen.append(heard)) == [[4]]
    assert seen == []


def test_a_failure_reaches_what_hangs_on_it_and_nothing_else(tmp_path):
    bad = Sum("bad", bad="it broke")
    after = Sum("after", (bad,))
    (totals, other) = run([asks([after, bad, B]), asks([C])], tmp_path)
    assert totals == ["bad: ValueError: it broke", "ValueError: it broke", 2]
    assert other == [4]
    stored = {r.name: r for r in Records(tmp_path).all()}
    assert stored[bad.name].failed == "ValueError: it broke"
    assert after.name not in stored
    mended = Sum("bad")  # the same config, and so the same name
    assert mended.name == bad.name
    assert run([asks([Sum("after", (mended,))])], tmp_path) == [[2]]


def test_nothing_is_begun_after_the_budget(tmp_path):
    (totals,) = run([asks([C])], tmp_path, until=time.monotonic() - 1)
    assert totals == ["a: not begun within the budget"] or totals[0].startswith("b: a: not begun")
    assert Records(tmp_path).all() == []
    assert run([asks([C])], tmp_path) == [[4]]


@pytest.mark.slow
def test_a_lost_task_is_not_recorded(tmp_path):
    plans = [asks([Sum("dies", bad="die"), A])]
    with engine("processes", workers=1) as pool:
        (totals,) = carry_out(plans, Records(tmp_path), pool)
    assert totals[0] == "its worker ended with signal 9 (SIGKILL), 2 times"
    assert totals[1] == 1
    assert [r.name for r in Records(tmp_path).all()] == [A.name]


def test_what_json_cannot_hold_is_a_failure_of_its_own(tmp_path):
    odd = Sum("odd", bad="nan")
    assert run([asks([odd, C])], tmp_path) == [["a number in its result is not finite", 4]]


def test_an_exit_in_a_task_is_its_own(tmp_path):
    assert run([asks([Sum("leaves", bad="exit"), C])], tmp_path) == [["SystemExit: 0", 4]]


def test_a_config_with_rows_of_numbers_in_a_text_is_found_again(tmp_path):
    """A text may look like a list of numbers, and is none."""
    config = {"shown": "tensor([10.,  1.])", "list": [1, 2], "nested": [{"a": [0.5, 1.5]}, "b  c"]}
    records, name = Records(tmp_path), f"x-{config_key(config)}"
    records.save(Record(config, {"rows": [1.0, 2.0], "none": {}, "empty": []}, name=name))
    text = (tmp_path / "records" / f"{name}.json").read_text()
    assert '"rows": [1.0, 2.0]' in text
    assert json.loads(text)["config"] == config
    record = Records(tmp_path).find(name)
    assert record is not None
    assert record.measured == {"rows": [1.0, 2.0], "none": {}, "empty": []}


def test_a_measurement_of_an_older_network_does_not_count(tmp_path):
    records = Records(tmp_path)
    network = b"weights"
    sha = hashlib.sha256(network).hexdigest()
    tasks = {"train": {"t": 1}, "current": {"m": 1}, "old": {"m": 2}}
    train, current, old = (f"{title}-{config_key(own)}" for title, own in tasks.items())
    records.save(Record({"t": 1}, {"network_sha256": sha}, name=train), network)
    records.save(Record({"m": 1}, {OF_NETWORK: sha}, name=current))
    records.save(Record({"m": 2}, {OF_NETWORK: "other"}, name=old))
    again = Records(tmp_path)
    assert again.find(current, [train]) is not None
    assert again.find(old, [train]) is None
    assert f"{old}.json was set aside" in again.notes[0]
    assert "another network" in again.notes[0]


@pytest.mark.parametrize("change", [{"failed": 5}, {"unreliable": [[1]]}, {"measured": None}])
def test_a_record_with_odd_parts_is_set_aside(change, tmp_path):
    name = f"x-{config_key({'m': 1})}"
    Records(tmp_path).save(Record({"m": 1}, name=name))
    path = tmp_path / "records" / f"{name}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    again = Records(tmp_path)
    assert again.all() == []
    assert f"{name}.json was set aside as {name}.json.aside" in again.notes[0]
    assert OTHERWISE not in again.notes[0]


@pytest.mark.parametrize(
    ("candidates", "index", "met"),
    [
        ([(0.90, 0.5), (0.895, 0.9), (0.80, 1.0)], 1, True),  # the third is not accurate enough
        ([(0.80, 0.5), (0.85, 0.4)], 1, False),  # none is: the most accurate
        ([(0.89, 0.7)], 0, True),  # exactly at the threshold
    ],
)
def test_the_choice(candidates, index, met):
    tried = tuple(
        MeasureTask(TrainTask("adult", "r2et", (("weight", float(i)),)), "validation")
        for i in range(len(candidates))
    )
    choice = SelectTask(tried, MeasureTask(TrainTask("adult", "vanilla"), "validation"))
    every = [{"auc_validation": a, "precision": p} for a, p in [*candidates, (0.90, 0.1)]]
    every += [{"epoch_kept": 3}] * len(candidates)
    done = choice.do(tuple(TaskInput(Record({}, measured)) for measured in every))
    assert done.measured["index"] == index
    assert done.measured["met"] is met
    assert bool(done.unreliable) is not met
    assert done.measured["candidates"][index]["changes"] == {"weight": float(index)}


@pytest.mark.parametrize(("kept", "index"), [((4, 4), 1), ((4, -1), 0), ((-1, -1), 1)])
def test_a_retraining_that_is_vanilla_still_is_not_preferred(kept, index):
    trains = [TrainTask("adult", "r2et", (("weight", w),), retrain=True) for w in (0.1, 0.2)]
    tried = tuple(MeasureTask(train, "validation") for train in trains)
    choice = SelectTask(tried, MeasureTask(TrainTask("adult", "vanilla"), "validation"))
    every = [{"auc_validation": 0.9, "precision": p} for p in (0.5, 0.6, 0.6)]
    every += [{"epoch_kept": epoch} for epoch in kept]
    assert [need.name for need in choice.needs[3:]] == [train.name for train in trains]
    done = choice.do(tuple(TaskInput(Record({}, measured)) for measured in every))
    assert done.measured["index"] == index


def tried_weights(grid, low_from):
    """The weights that are tried of r2et, where the AUC is too low from one of them on."""
    plan, seen = select_trainings(grid, "adult", "r2et"), []

    def record(task):
        config = task.config()
        if config["name"] == "choice":
            seen.extend(dict(m.of.changes)["weight"] for m in task.tried)
            return Record(config, {"index": len(task.tried) - 1}, name=task.name)
        low = dict(getattr(task, "of", task).changes).get("weight", 0) >= low_from
        return Record(config, {"auc_validation": 0.8 if low else 0.9}, name=task.name)

    with suppress(StopIteration):
        wanted = next(plan)
        while True:
            wanted = plan.send([record(task) for task in wanted])
    return seen


def test_larger_weights_are_tried_until_the_auc_is_too_low():
    """So the last of a grid is chosen only where the next one would not count."""
    usual = [0.003, 0.01, 0.03, 0.1]
    grid = Grid(("adult",), ("r2et",), seeds=1)
    assert tried_weights(grid, 0.1) == usual
    assert tried_weights(grid, 0.3) == [*usual, 0.3]
    assert tried_weights(grid, 3.0) == [*usual, 0.3, 1.0, 3.0]
    assert tried_weights(grid, 1e9) == [*usual, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
    assert tried_weights(replace(grid, beyond=False), 1e9) == usual
    assert tried_weights(replace(grid, weights=(0.5,)), 1e9) == [0.5]


def test_a_claims_grid_is_that_of_its_run():
    grid = Grid(("adult",), ("r2et",), seeds=2, epochs=4, rows=7, steps=9, weights=(0.5,))
    assert Grid.of_claim(grid.settings(), "adult", "r2et") == grid


def test_a_tasks_config_is_plain_json_and_what_changes_no_result_is_no_part_of_it():
    """So a record is found again by another version that has more settings."""
    train = TrainTask("adult", "r2et", (("weight", 0.1),), epochs=3)
    tasks = [train, MeasureTask(train, "er"), MeasureTask(train, "strong")]
    for task in tasks:
        config = task.config()
        assert json.loads(json.dumps(config)) == config
        assert task.name == f"{task.title}-{config_key(config)}"
        assert not {"progress", "chunk"} & set(words(config))
    assert tasks[1].config()["of"] == train.config()
    other = [
        replace(train, seed=1),
        replace(train, epochs=4),
        replace(train, changes=(("weight", 0.2),)),
        replace(train, changes=(("weight", 0.1), ("radius", 0.5))),
        replace(train, retrain=True),
        replace(train, data="compas"),
    ]
    assert len({task.name for task in (train, *other)}) == 1 + len(other)
    er = [MeasureTask(train, "er", options) for options in ((), (("rows", 7),), (("k", 2),))]
    assert len({task.name for task in er}) == 3


def words(config):
    """Every key of a config, of those within it too."""
    for key, value in config.items():
        yield key
        if isinstance(value, dict):
            yield from words(value)
