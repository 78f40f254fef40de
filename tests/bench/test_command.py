"""What a command line asks for, and what of all tables a budget is spent on."""

from dataclasses import replace

import pytest

from bench_run import GRID
from r2et.bench import command
from r2et.bench.agenda import MAIN, AgendaItem, agenda
from r2et.bench.claim import Claim, SeedValues, save_claims
from r2et.bench.command import BenchJob, duration, parse_request, run
from r2et.bench.figure_plans import FIGURES
from r2et.bench.paper_tables import TABLE_NAMES
from r2et.bench.papers import R2ET_VARIANTS
from r2et.bench.registry import REGIMES
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
    grids = {item.name: grid for item, grid in BenchJob("all", TINY).items()}
    assert grids["figure3"].datasets == ("mnist",)
    assert grids["length-search"].regime == "papers"
    given = BenchJob("all", TINY, given=frozenset(["datasets"])).items()
    assert {data for _, grid in given for data in grid.datasets} == {"adult"}
    assert "figure3" not in {item.name for item, _ in given}


def test_one_regime_or_both():
    both = BenchJob("all", TINY).items()
    assert {grid.regime for _, grid in both} == {"papers", "long"}
    request = parse_request("all", regime="papers", budget="1h")
    assert {grid.regime for _, grid in request.items()} == {"papers"}


def test_the_first_screen_comes_first():
    """One seed of every dataset of it before a second seed of any."""
    items = agenda(3)
    assert len(set(items)) == len(items)
    titles = [item.title for item in items]
    assert titles[:2] == ["table1-papers of adult, 1 seed", "table1-papers of bank, 1 seed"]
    screen = [i for i, each in enumerate(items) if each.name == "table1" and each.recipes == MAIN]
    first_more = next(i for i, item in enumerate(items) if item.seeds > 1)
    assert {items[i].datasets[0] for i in screen if i < first_more} == {"adult", "bank", "compas"}
    for data in REGIMES["papers"]:
        assert titles.index(f"table1-papers of {data}, 1 seed") < first_more
    shown = {*R2ET_VARIANTS, "vanilla", "sp", "wd", "est-h", "at", "certified", "linear"}
    assert shown <= set(MAIN)
    assert "figure7-papers of mnist, adhd-frontal, abide, 1 seed" in titles
    made = {item.name for item in items}
    assert made == {*FIGURES, *TABLE_NAMES, "nearest", "leaderboard"} - {"table3"}


class Clock:
    """Time that passes only while something is made."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


ITEMS = tuple(
    AgendaItem(name, "long", ("adult",), ("vanilla",), seeds)
    for name, seeds in (("table1", 1), ("table9", 1), ("table1", 3), ("figure8", 1))
)
SECONDS = {"table1": 10.0, "table9": 1.0, "figure8": 2.0}


@pytest.fixture
def made(monkeypatch):
    """Which parts are made with how many seeds, in a time that is made up."""
    clock, calls = Clock(), []

    def make(name, grid, runner):
        calls.append((name, grid.seeds))
        clock.now += SECONDS[name] * grid.seeds
        assert runner.budget > 0
        return command.BenchOutcome()

    monkeypatch.setattr(command, "time", clock)
    monkeypatch.setattr(command, "run_table", make)
    monkeypatch.setattr(command, "run_figure", make)
    monkeypatch.setattr(command, "agenda", lambda _: ITEMS)
    costs = {item.title: SECONDS[item.name] * item.seeds for item in ITEMS[:3]}
    monkeypatch.setattr(command, "cost", lambda item: costs.get(item.title))
    return calls


def make_all(budget, tmp_path):
    heard = []
    request = BenchJob("all", TINY, budget)
    run(request, tmp_path, kind="serial", say=heard.append)
    return heard


WHOLE = "bench: all of it takes about 41 s of one worker, and 1 of 4 parts whose cost is not known."


def test_where_there_is_time_all_is_made_in_order(made, tmp_path):
    assert make_all(1000.0, tmp_path) == [WHOLE]
    assert made == [(item.name, item.seeds) for item in ITEMS]


def test_what_would_take_too_long_waits_for_what_does_not(made, tmp_path):
    """After 11 s there are 19 left, and three seeds of table1 would take 30: they come last."""
    assert make_all(30.0, tmp_path) == [WHOLE]
    assert made == [("table1", 1), ("table9", 1), ("figure8", 1), ("table1", 3)]


def test_what_was_not_begun_is_said_with_its_cost(made, tmp_path):
    heard = make_all(12.5, tmp_path)
    assert made == [("table1", 1), ("table9", 1), ("figure8", 1)]
    assert heard[1:] == [
        "bench: not begun: table1 of adult, 3 seeds, which takes 30 s of one worker."
    ]
    made.clear()
    heard = make_all(0.5, tmp_path)
    assert made == [("table1", 1)]  # what the others rest on: a beginning of what is worth most
    assert len(heard) == 4


def test_what_rests_on_a_table_that_waits_waits_too(made, tmp_path):
    make_all(5.0, tmp_path)
    assert made == [("table1", 1)]


def test_what_a_folder_holds_costs_nothing(made, tmp_path):
    numbers = {"erattack": SeedValues((0.5,) * 3)}
    kept = Claim("table1", "adult", "vanilla", {}, (), numbers, {"seeds": 3})
    save_claims([kept], tmp_path / "claims")
    make_all(12.5, tmp_path)
    assert made[:3] == [("table1", 1), ("table9", 1), ("table1", 3)]


def test_data_that_cannot_be_had_costs_its_part_alone(made, tmp_path, monkeypatch):
    for name in ("R2ET_DATA", "R2ET_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("R2ET_OFFLINE", "1")
    items = (AgendaItem("figure3", "long", ("mnist",), ("vanilla",)), ITEMS[1])
    monkeypatch.setattr(command, "agenda", lambda _: items)
    _, sentence = make_all(100.0, tmp_path / "out")
    assert sentence.startswith(
        "bench: figure3 of mnist, 1 seed is left out: mnist: mnist/train-images-idx3-ubyte is not "
    )
    assert made == [("table9", 1)]


def test_a_table_and_a_figure_in_one_folder(tmp_path, monkeypatch):
    """For once nothing is made up: all seeds, the networks of the table used by the figure."""
    items = [AgendaItem(n, "long", ("adult",), ("vanilla",), 2) for n in ("table9", "figure8")]
    monkeypatch.setattr(command, "agenda", lambda _: items)
    request = BenchJob("all", TINY, 3600.0)
    outcome = run(request, tmp_path, kind="serial")
    assert {file.suffix for file in outcome.files} == {".md", ".tex", ".html", ".png", ".pdf"}
    assert outcome.tables[-1].rows[0].claim.settings["seeds"] == 2
    assert len(list((tmp_path / "records").glob("*-train-*"))) == 2
