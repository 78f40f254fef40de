"""What a run will take, and what of all tables a budget is spent on."""

from dataclasses import replace

import pytest

from bench_run import GRID
from r2et.bench import command, estimate
from r2et.bench.command import Asked, asked, duration, pick, run
from r2et.bench.estimate import Estimate, remaining, typical, units
from r2et.bench.record import Record, Records
from r2et.bench.run import Outcome, Runner, opened, plans_of, run_table
from r2et.bench.task import Measure, Train
from r2et.errors import InputError

TINY = replace(GRID, recipes=("vanilla", "wd", "linear"), seeds=1)


@pytest.mark.parametrize("name", ["table1", "table8", "figure8"])
def test_what_remains_is_what_is_then_done(name, tmp_path):
    """A choice takes one of its candidates; as many tasks follow from any of them."""
    before = remaining(plans_of(name, TINY), Records(tmp_path))
    seen = []
    runner = Runner(tmp_path, "here", watch=lambda title, *_: seen.append(title))
    runner(plans_of(name, TINY), lambda *_: Outcome())
    assert len(seen) == sum(task.settings()["kind"] != "choice" for task in before) > 0
    assert remaining(plans_of(name, TINY), Records(tmp_path)) == []


def test_time_goes_with_the_work():
    train = Train("adult", "vanilla", epochs=2)
    short, long = (Measure(train, "er", (("rows", n), ("steps", s))) for n, s in ((8, 5), (80, 50)))
    guess = Estimate([])
    assert guess.seconds(long) == pytest.approx(100 * guess.seconds(short))
    assert guess.seconds(replace(train, epochs=20)) == pytest.approx(10 * guess.seconds(train))


def test_this_folders_records_are_believed_before_the_package(tmp_path):
    run_table("table1", TINY, Runner(tmp_path, "here"))
    with opened(tmp_path) as records:
        (done,) = (r for r in records.all() if r.name.startswith("adult-vanilla-train"))
        own = Estimate(records.all())
    task = Train("adult", "vanilla", epochs=TINY.epochs)
    assert own.seconds(task) == pytest.approx(done.made["seconds"])
    assert own.rates != Estimate([]).rates


def test_a_slower_machine_is_slower_at_everything():
    of = {"data": "adult", "recipe": "wd"}
    task = {"kind": "strong", "of": of, "rows": 10, "options": {}}
    seconds = 70 * typical()["adult", "wd", "strong"]  # seven times for ten rows
    slow = Estimate([Record(task, made={"seconds": seconds})])
    other = Measure(Train("adult", "vanilla"), "er")
    assert slow.seconds(other) == pytest.approx(7 * Estimate([]).seconds(other), rel=0.3)


def test_the_package_knows_all_its_own_tables():
    known = typical()
    for data in ("adult", "bank", "compas"):
        for kind in ("train", "er", "mse", "strong", "certified", "clean", "validation"):
            assert known[data, kind] > 0


@pytest.fixture
def flat(monkeypatch):
    """Every task takes a second of one worker."""
    monkeypatch.setattr(estimate, "typical", dict)
    monkeypatch.setattr(Estimate, "seconds", lambda *_: 1.0)
    monkeypatch.setattr(command, "STARTING", 0.0)


@pytest.mark.usefixtures("flat")
def test_all_is_what_fits(tmp_path):
    grid = replace(TINY, seeds=3)
    whole = len(remaining(plans_of("table1", grid), Records(tmp_path)))
    one = len(remaining(plans_of("table1", replace(grid, seeds=1)), Records(tmp_path)))
    assert one < whole
    assert pick("table1", grid, tmp_path, 1, whole).grid == grid
    assert pick("table1", grid, tmp_path, 1, whole - 1).grid == replace(grid, seeds=1)
    assert pick("table1", grid, tmp_path, 2, whole / 2).grid == grid
    none = pick("table1", grid, tmp_path, 1, one - 1)
    assert none.grid is None
    assert (
        none.said == f"bench: table1 is left out: it takes about {one} s, and {one - 1} s are left."
    )


@pytest.mark.usefixtures("flat")
def test_workers_take_their_time_to_begin(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "STARTING", 10.0)
    count = len(remaining(plans_of("table1", TINY), Records(tmp_path)))
    assert pick("table1", TINY, tmp_path, 1, count + 10).grid == TINY
    assert pick("table1", TINY, tmp_path, 1, count + 9).grid is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("2h30m", 9000), ("1.5h", 5400), ("1h 2m 3s", 3723)]
)
def test_a_budget_in_words(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "0s", "30m2h", "h", "-1h"])
def test_what_is_no_budget(text):
    with pytest.raises(InputError, match="bench: budget must be a time as 90s, 30m or 2h30m, got"):
        duration(text)


def test_the_papers_table_of_settings():
    with pytest.raises(InputError, match="got 'table4', in the papers a list of settings"):
        asked("table4")


@pytest.mark.usefixtures("flat")
def test_a_smaller_table_takes_the_time_that_a_larger_one_would_not(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "ORDER", ("table1", "figure8"))
    told = replace(asked("all", budget="1h"), grid=TINY, budget=9.5)
    heard = []
    found = run(told, tmp_path, kind="here", say=heard.append)
    assert [text.split()[1:5] for text in heard] == [
        ["table1", "is", "left", "out:"],
        ["figure8", "with", "1", "seed:"],
    ]
    assert {file.name for file in found.files} == {"figure8.png", "figure8.pdf"}


def test_data_that_cannot_be_had_costs_its_figure_alone(tmp_path, monkeypatch):
    for name in ("R2ET_DATA", "R2ET_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("R2ET_OFFLINE", "1")
    grid = Asked("all", TINY).grid_of("figure3")
    assert (grid.datasets, grid.seeds) == (("mnist",), 1)
    assert Asked("all", TINY, given=frozenset(["datasets"])).grid_of("figure3").datasets == (
        "adult",
    )
    said = pick("figure3", grid, tmp_path / "out", 1, 1e9).said
    assert said.startswith(
        "bench: figure3 is left out: mnist: mnist/train-images-idx3-ubyte is not "
    )


def test_odd_records_are_no_guide():
    odd = [
        {"kind": "er", "of": {"data": "gone", "recipe": "r"}},
        {},
        {"kind": "other", "data": "adult"},
    ]
    train = {"kind": "train", "data": "adult", "recipe": "wd", "epochs": 1, "retrain": False}
    records = [Record(task, made={"seconds": 5.0}) for task in odd] + [Record(train)]
    assert Estimate(records).rates == Estimate([]).rates


def test_units_of_work():
    of = {"data": "adult", "recipe": "vanilla"}
    assert units({"kind": "train", "epochs": None}) == 1
    assert units({"kind": "train", "epochs": 7}) == 7
    assert units({"kind": "clean", "of": of, "rows": 9, "options": {}}) == 1
    assert units({"kind": "strong", "of": of, "rows": 5, "options": {}}) == 5
    assert units({"kind": "er", "of": of, "rows": 5, "options": {"steps": 3}}) == 15
    assert units({"kind": "er", "of": of, "rows": 5, "options": {}}) == 5000
