"""A leaderboard anybody can join: claims, and the zoo's, measured again."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from nets import make, mlp
from r2et.bench import evaluation
from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.bench.claim import Claim, SeedValues, load_claims
from r2et.bench.evaluation import (
    TABLE,
    add,
    check_reported,
    claim_lines,
    evaluate,
    is_linear,
    leaderboards,
    parse_reported,
)
from r2et.bench.registry import find_benchmark
from r2et.bench.table_formats import legend, markdown, missing
from r2et.bench.table_measurements import MEASUREMENTS
from r2et.cli import app
from r2et.errors import InputError
from r2et.models import MLP, load_extra, load_model
from r2et.models.weights import weights_digest
from r2et.train import load_trained

ZOO = Path(__file__).parents[2] / "zoo"
MODELS = sorted(path.name for path in (ZOO / "models").iterdir())
TOLERANCE = 0.01  # as docs/leaderboard.md says
MOST = 1_000_000  # bytes of all networks


def claim_of(name):
    claims = load_claims(ZOO / "claims", TABLE)
    (claim,) = [c for c in claims if c.settings["source"].endswith(f"/{name}")]
    return claim


def loaded(name, folder):
    """From a copy: reading may leave a lock."""
    shutil.copytree(ZOO / "models" / name, folder / name)
    return folder / name


def test_the_zoo_is_small_and_has_a_claim_each():
    assert len(MODELS) >= 5
    assert len(load_claims(ZOO / "claims", TABLE)) == len(MODELS)
    files = [path for path in ZOO.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST
    assert {path.suffix for path in files} == {".json", ".safetensors"}


@pytest.mark.parametrize("name", MODELS)
def test_a_network_of_the_zoo_is_what_its_claim_says(name, tmp_path):
    folder, claim = loaded(name, tmp_path), claim_of(name)
    model, benchmark = load_model(folder), find_benchmark("adult")
    assert weights_digest(model) == claim.settings["weights_sha256"]
    assert load_extra(folder)["data"] == "adult"
    assert load_trained(folder).k == benchmark.k == claim.settings["k"]
    clean = MEASUREMENTS["clean"](benchmark, model, benchmark.load())
    assert clean["auc"] == pytest.approx(claim.numbers["cauc"].mean, abs=TOLERANCE)
    assert clean["auc"] > 0.85
    assert clean["distinct_top_k"] == pytest.approx(claim.numbers["sets"].mean, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_network_of_the_zoo_is_attacked_and_proved_again(name, tmp_path):
    claim = claim_of(name)
    again = evaluate(load_model(loaded(name, tmp_path)), claim.recipe)
    assert again.settings["rules"] == claim.settings["rules"]
    for key in ("proved", "strongattack", "cauc"):
        assert again.numbers[key].mean == pytest.approx(claim.numbers[key].mean, abs=TOLERANCE)
        assert claim.numbers[key].failed is None
    assert again.numbers["strongattack"].mean >= again.numbers["proved"].mean


@pytest.fixture
def few(monkeypatch):
    """The same measurements of few rows and one table."""
    small = BenchmarkConfig("adult", "adult", rows=4, strong_rows=2, certified_rows=2)
    monkeypatch.setattr(evaluation, "find_benchmark", lambda _: small)


@pytest.mark.usefixtures("few", "short_attacks")
def test_a_claim_holds_what_was_reported_and_measured(tmp_path):
    model = make(lambda: mlp(28, classes=2))
    claim = evaluate(model, "mine", reported={"proved": 12.0}, by="somebody", source="there")
    path = add(claim, tmp_path)
    assert path == tmp_path / "open" / "adult-mine.json"
    assert Claim.from_json(path.read_text(), str(path)).numbers == claim.numbers
    stored = json.loads(path.read_text())
    assert stored["numbers"]["proved"]["reported"] == 12.0
    assert stored["settings"]["weights_sha256"] == weights_digest(model)
    assert 0 <= claim.numbers["proved"].mean <= claim.numbers["strongattack"].mean <= 1
    assert claim.settings["rules"]["strong"]["rows"] == 2
    (table,) = leaderboards(tmp_path)
    assert table.rows[0].recipe == "mine"
    assert table.rows[0].numbers[0].reported == "12.0"


@pytest.mark.usefixtures("few", "short_attacks")
def test_what_cannot_be_proved_is_said():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = MLP(28)

        def forward(self, x):
            return self.inner(torch.atan(x))

    claim = evaluate(make(Odd), "odd")
    assert claim.numbers["proved"].mean in (None, 0.0)
    assert claim.numbers["strongattack"].mean is not None


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [
        (
            MLP(5),
            {},
            "model must be one that takes rows of shape (28,), got InputError",
        ),
        (MLP(28, classes=3), {}, "model must be one of 2 classes, got outputs of shape (1, 3)."),
        (
            MLP(28),
            {"data": "mnist"},
            "data must be a table of the benchmark, got mnist",
        ),
        (MLP(28), {"name": "../x"}, "leaderboard: name must be letters, digits"),
        (MLP(28), {"reported": {"best": 1}}, "leaderboard: reported must be of proved, strong"),
        (MLP(28), {"reported": {"proved": "1"}}, "reported proved must be a number, 0 or more"),
        (MLP(28), {"reported": {"proved": 300}}, "proved must be a number, 0 or more, at most 100"),
        (MLP(28), {"reported": {"cauc": 88}}, "cauc must be a number, 0 or more, at most 1, got"),
        (
            MLP(28),
            {"data": "x" * 999},
            "leaderboard: data must be a table of the benchmark, got xx",
        ),
        (
            MLP(28),
            {"by": "a\nb"},
            "leaderboard: by must be one line of 300 characters at most, got",
        ),
        (MLP(28).train(), {}, "leaderboard: model must be in eval mode (call model.eval()), got"),
        ("model.pt", {}, "leaderboard: model must be a torch.nn.Module, got str."),
    ],
)
def test_what_cannot_be_evaluated_is_refused(model, settings, sentence):
    with pytest.raises(InputError) as caught:
        evaluate(model, **{"name": "mine", **settings})
    assert sentence in str(caught.value)


def test_reported_numbers_of_a_command_line():
    assert parse_reported("proved=97, cauc=0.88") == {"proved": 97.0, "cauc": 0.88}
    assert check_reported(parse_reported(None)) == {}
    with pytest.raises(InputError, match="numbers as proved=97"):
        parse_reported("proved")


@pytest.mark.usefixtures("few", "short_attacks")
def test_the_command_writes_a_claim_and_shows_the_table(tmp_path):
    folder, out = loaded("adult-certified", tmp_path), str(tmp_path / "claims")
    ran = CliRunner().invoke(
        app,
        [
            "leaderboard",
            "add",
            str(folder),
            "--name",
            "theirs",
            "-o",
            out,
            "--reported",
            "proved=99",
        ],
    )
    assert ran.exit_code == 0, ran.output
    # In the units of what was reported: percent.
    assert re.search(r"^proved +100\.0 \(reported 99\)$", ran.output, re.M), ran.output
    assert "adult-theirs.json" in ran.output
    shown = CliRunner().invoke(app, ["leaderboard", "show", "-o", out])
    assert shown.exit_code == 0
    assert "theirs" in shown.output
    with pytest.raises(InputError, match=r"^leaderboard: out must be a folder with claims, open/"):
        leaderboards(tmp_path)


def linear_network(weight=None):
    network = nn.Linear(28, 2).eval()
    if weight is not None:
        nn.init.constant_(network.weight, weight)
    return network


@pytest.mark.usefixtures("few", "short_attacks")
def test_a_network_that_cannot_be_measured_makes_no_claim():
    class Detached(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = linear_network()

        def forward(self, x):
            return self.inner(x.detach())

    expected = (
        r"^leaderboard: cauc must be measured, got an error \(Gradient: model must be .*\)\.$"
    )
    for network in (linear_network(float("nan")), Detached().eval()):
        with pytest.raises(InputError, match=expected):
            evaluate(network, "mine")


@pytest.mark.usefixtures("few", "short_attacks")
def test_what_rests_on_ties_is_said_at_once():
    lines = claim_lines(evaluate(linear_network(0.0), "mine"))
    assert "strongattack  100.0?" in lines
    assert any(line.startswith("? strongattack: 2 of 2 rows have equal scores") for line in lines)
    assert "linear, so not compared: one explanation for all rows" in lines


def test_which_networks_are_linear():
    torch.manual_seed(0)
    x = torch.rand(5, 28)
    linear = [nn.Linear(28, 1), nn.Linear(28, 3), nn.Sequential(nn.Linear(28, 9), nn.Linear(9, 2))]
    assert all(is_linear(network, x) for network in (*linear, linear_network(0.0)))
    layers = [nn.Linear(28, 9), nn.ReLU(), nn.Linear(9, 2)]
    assert not is_linear(nn.Sequential(*layers), x)
    assert not is_linear(make(lambda: mlp(28, classes=2)), x)


def entry(name, strong, proved=0.0, **settings):
    """A claim of a network of anybody's."""
    numbers = {
        "proved": SeedValues((proved,)),
        "cauc": SeedValues((0.9,)),
        "sets": SeedValues((3,)),
    }
    numbers["strongattack"] = SeedValues((strong,), rows=(strong, strong - 0.01, strong + 0.01))
    about = {"k": 8, "seeds": 1, "linear": False, **settings}
    return Claim(TABLE, "adult", name, {}, (), numbers, about)


def test_a_name_says_nothing_of_what_a_network_is(tmp_path):
    for claim in (entry("linear", 0.9), entry("r2et", 0.8), entry("certified", 0.7)):
        add(claim, tmp_path)
    add(entry("mine", 1.0, 1.0, linear=True), tmp_path)
    (table,) = leaderboards(tmp_path)
    marks = {row.recipe: row.numbers[1].mark for row in table.rows}
    assert marks == {"mine": "", "linear": "best", "r2et": "second", "certified": ""}
    assert not any(number.dagger for row in table.rows for number in row.numbers)
    assert "Linear, so not compared: mine." in missing(table)
    assert "Not compared: linear models" in legend([table])[0]


def test_a_claim_is_replaced_only_when_asked(tmp_path):
    path = add(entry("mine", 0.5), tmp_path)
    with pytest.raises(InputError, match=r"name must be of no claim yet .*--replace.* got that of"):
        add(entry("mine", 0.9), tmp_path)
    assert load_claims(tmp_path, TABLE) == [entry("mine", 0.5)]
    assert add(entry("mine", 0.9), tmp_path, replace=True) == path
    assert load_claims(tmp_path, TABLE) == [entry("mine", 0.9)]
    command = ["leaderboard", "add", "no-such-model", "--name", "mine", "-o", str(tmp_path)]
    refused = CliRunner().invoke(app, command).exception
    assert "of no claim yet" in str(refused)
    assert "of no claim yet" not in str(CliRunner().invoke(app, [*command, "--replace"]).exception)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("mine", "../../../x"),
        ("mine", "nosuch"),
        ("mine", "mnist"),
        ("mine", "adult/x"),
        ("../mine", "adult"),
        ("..", "adult"),
        ("a\x1b[31mb", "adult"),
        ("a" * 61, "adult"),
        ("mine", "adult"),  # whose model is not there
    ],
)
def test_nothing_is_made_for_what_is_refused(name, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["leaderboard", "add", "no-such-model", "--name", name, "--data", data]
    ran = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out" / "claims")])
    assert isinstance(ran.exception, InputError)
    assert str(ran.exception).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="out must be a folder that can be written to, got"):
        evaluation.check_folder(tmp_path / "file")


def test_a_claim_stands_in_its_own_file(tmp_path):
    """Two files of one name would be one row."""
    path = add(entry("mine", 0.5), tmp_path)
    shutil.copy(path, path.with_name("adult-other.json"))
    expected = "leaderboard: claim must be in open/adult-mine.json, as it says, got .*other.json"
    with pytest.raises(InputError, match=expected):
        leaderboards(tmp_path)


def test_what_is_shown_of_anybodys_texts(tmp_path):
    """No tags, links, colours or codes of theirs."""
    hostile = "\x1b[31m<script>x</script> [a](javascript:b)\n| c"
    claim = entry("mine", 0.5)
    numbers = {**claim.numbers, "proved": SeedValues(failed=hostile)}
    add(replace(claim, numbers=numbers, made={"date": hostile, "seconds": 1}), tmp_path)
    shown = CliRunner().invoke(app, ["leaderboard", "show", "-o", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    assert "\x1b" not in shown.output
    text = markdown(leaderboards(tmp_path)[0])
    assert "<script>" not in text
    assert "](javascript" not in text.replace("\\](", "")
    assert "\\x1b[31m&lt;script>" in text
