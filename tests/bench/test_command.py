"""What a command line asks for, and what of all tables a budget is spent on."""

from dataclasses import replace

import pytest

from bench_run import GRID
from r2et.bench import command
from r2et.bench.command import BenchJob, duration, parse_request, run
from r2et.errors import InputError

TINY = replace(GRID, recipes=("vanilla",), seeds=1)


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
        parse_request("table4")


def test_a_figure_has_its_own_data_unless_they_are_given():
    grid = BenchJob("all", TINY).grid_of("figure3")
    assert (grid.datasets, grid.seeds) == (("mnist",), 1)
    given = BenchJob("all", TINY, given=frozenset(["datasets"])).grid_of("figure3")
    assert given.datasets == ("adult",)


class Clock:
    """Time that passes only while something is made."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def made(monkeypatch):
    """Which tables are made with how many seeds: table1 takes 10 s with one, the others 1 s."""
    clock, calls = Clock(), []

    def make(name, grid, runner):
        calls.append((name, grid.seeds))
        clock.now += (10.0 if name == "table1" else 1.0) * grid.seeds
        assert runner.budget > 0
        return command.BenchOutcome()

    monkeypatch.setattr(command, "time", clock)
    monkeypatch.setattr(command, "run_table", make)
    monkeypatch.setattr(command, "run_figure", make)
    monkeypatch.setattr(command, "ORDER", ("table1", "table9", "figure8"))
    return calls


def make_all(budget, tmp_path, seeds=3):
    heard = []
    grid = replace(TINY, seeds=seeds)
    request = BenchJob("all", grid, budget, given=frozenset(["datasets", "recipes"]))
    run(request, tmp_path, kind="serial", say=heard.append)
    return heard


def test_where_there_is_time_all_is_made_with_all_seeds(made, tmp_path):
    assert make_all(1000.0, tmp_path) == []
    assert made == [(name, n) for name in ("table1", "table9", "figure8") for n in (1, 3)]


def test_more_seeds_only_where_the_first_took_little_enough(made, tmp_path):
    """After 10 s of table1 there are 19 left, and two more seeds may take 20."""
    heard = make_all(29.0, tmp_path)
    assert made == [("table1", 1), ("table9", 1), ("table9", 3), ("figure8", 1), ("figure8", 3)]
    assert heard == ["bench: table1 has one seed: more would take up to 20 s."]
    made.clear()
    make_all(31.0, tmp_path)
    assert made[:2] == [("table1", 1), ("table1", 3)]


def test_nothing_is_begun_when_the_budget_is_spent(made, tmp_path):
    heard = make_all(10.5, tmp_path, seeds=1)
    assert made == [("table1", 1), ("table9", 1)]
    assert heard == ["bench: figure8 is left out: the budget is spent."]


def test_data_that_cannot_be_had_costs_its_figure_alone(made, tmp_path, monkeypatch):
    for name in ("R2ET_DATA", "R2ET_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("R2ET_OFFLINE", "1")
    monkeypatch.setattr(command, "ORDER", ("figure3", "table9"))
    heard = []
    run(BenchJob("all", TINY, 100.0), tmp_path / "out", kind="serial", say=heard.append)
    (sentence,) = heard
    assert sentence.startswith(
        "bench: figure3 is left out: mnist: mnist/train-images-idx3-ubyte is not "
    )
    assert made == [("table9", 1)]


def test_a_table_and_a_figure_in_one_folder(tmp_path, monkeypatch):
    """For once nothing is made up: all seeds, the networks of the table used by the figure."""
    monkeypatch.setattr(command, "ORDER", ("table9", "figure8"))
    grid = replace(TINY, seeds=2)
    request = BenchJob("all", grid, 3600.0, given=frozenset(["datasets", "recipes"]))
    outcome = run(request, tmp_path, kind="serial")
    assert {file.suffix for file in outcome.files} == {".md", ".tex", ".html", ".png", ".pdf"}
    assert outcome.tables[-1].rows[0].claim.settings["seeds"] == 2
    assert len(list((tmp_path / "records").glob("*-train-*"))) == 2
