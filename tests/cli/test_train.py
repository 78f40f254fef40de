"""r2et train, as a user types it: exit codes, one sentence for bad input, Ctrl-C."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from ctrl_c import hearing_ctrl_c
from r2et.defaults import MAX_AUC_DROP
from r2et.train import RECIPES, load_trained


def write(path, rows=300, classes=("yes", "no")):
    random = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["a", "b", "c", "d", "e", "y"])
        for _ in range(rows):
            x = random.normal(size=5).round(4)
            out.writerow([*x, classes[int(x[0] + x[1] * x[2] > 0) % len(classes)]])
    return path


@pytest.fixture
def run(program, tmp_path):
    """The command in a folder of its own, with a table beside it; gives code, output, errors."""
    write(tmp_path / "t.csv")
    return program("train")


FOUND = ("t.csv", "--target", "y", "--k", "2", "--epochs", "2", "-o", "model")
USUAL = (*FOUND, "--no-find-weight")


def test_it_trains_stores_and_says_what_came_of_it(run):
    code, out, err = run(*USUAL, "--recipe", "r2et", "--seed", "3", "--hidden", "8,8")
    assert (code, err) == (0, "")
    parts = ("r2et on t", "test AUC", "logistic regression", "P@2 under attack, radius 0.3")
    for part in (
        *parts,
        "thickness",
        "different top-2 sets",
        "epochs",
        "load_trained('model')",
        "t.read(",
    ):
        assert part in out
    found = load_trained("model")
    assert (found.k, found.recipe, found.radius) == (2, "r2et", 0.3)
    assert found.model.settings["widths"] == [8, 8]
    x, _ = found.read("t.csv")
    assert found.model(x).shape == (300, 2)


def test_it_names_rows_to_audit(run):
    assert "r2et audit model --html" in run(*USUAL)[1]
    told = run("adult", "--epochs", "1", "--recipe", "vanilla", "-o", "named")[1]
    assert "r2et audit named --html" in told


def test_json_alone_is_on_standard_output(run):
    code, out, _ = run(*USUAL, "--recipe", "wd", "--set", "weight_decay=0.1", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["recipe"] == "wd"
    assert found["epochs"] == 2
    assert 0 <= found["precision_strong"] <= 1
    assert 0 <= found["auc_linear"] <= 1
    assert not any(isinstance(value, dict) for value in found.values())


def test_the_same_command_again_gives_the_same(run):
    first = json.loads(run(*USUAL, "--json")[1])
    weights = load_trained("model").model.state_dict()
    assert json.loads(run(*USUAL, "--json")[1]) == first
    again = load_trained("model").model.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in weights.items())


def test_another_training_in_the_folder_is_not_overwritten_unasked(run):
    run(*USUAL)
    before = load_trained("model").model.state_dict()
    code, out, err = run(*USUAL, "--seed", "1")
    assert (code, out) == (2, "")
    assert err.startswith("fit: out must be another folder, or start anew with resume=False (--no-")
    after = load_trained("model").model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert run(*USUAL, "--seed", "1", "--no-resume")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("adlt", "-o", "m"), "load: name must be one of abide,"),
        (("nothing.csv", "-o", "m"), "train: DATA must be a file that exists or a data set"),
        (("nothing.csv", "--target", "y", "-o", "m"), "load_table: source must be a file that"),
        (("t.csv", "-o", "m"), "train: target must be the column of t.csv to predict, got nothing"),
        (("t.csv", "--target", "z", "-o", "m"), "load_table: target must be one of a, b, c,"),
        (("one.csv", "--target", "y", "-o", "m"), "load_table: target 'y' must be a column of at"),
        (("adult", "--target", "y", "-o", "m"), "train: target must be left out for adult,"),
        ((*USUAL, "--recipe", "r2te"), "recipe: name must be one of vanilla,"),
        ((*USUAL, "--set", "weigth=1"), "recipe: a change must be one of"),
        ((*USUAL, "--set", "weight"), "train: a change must be of the form name=value, got weight"),
        ((*USUAL, "--hidden", "a"), "train: hidden must be whole numbers with commas between"),
        ((*USUAL, "--hidden", "0"), "MLP: every width must be a whole number, at least 1, got 0"),
        ((*USUAL, "--k", "5"), "load_table: k must be in 1..4 for 5 features, got 5."),
        ((*USUAL, "--radius", "-1"), "fit: radius must be positive and finite, got -1.0."),
        ((*USUAL, "--epochs", "0"), "fit: epochs must be None or a positive whole number, got 0."),
        ((*USUAL, "-o", "t.csv"), "fit: folder must be a folder, got t.csv."),
        ((*USUAL, "-o", "t.csv/m"), "fit: folder must be one that can be made, got t.csv/m"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(run, tmp_path, arguments, sentence):
    write(tmp_path / "one.csv", classes=("yes",))
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(sentence)
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(("wrong", "right"), [("r2te", "r2et"), ("r2et-bal", "r2et-ball")])
def test_the_nearest_recipe_is_named(run, wrong, right):
    assert f"(did you mean {right}?)" in run(*USUAL, "--recipe", wrong)[2]


def test_warnings_are_notes(run, tmp_path):
    with (tmp_path / "t.csv").open("a") as file:
        file.write("1,2,3,4,5,\n")
    code, out, err = run(*USUAL, "--recipe", "vanilla", "--json")
    assert code == 0
    assert err == "note: load_table: 1 of 301 rows without a y left out.\n"
    assert json.loads(out)["data"] == "t"


def test_the_default_recipe_is_one(run):
    assert "certified" in RECIPES
    assert json.loads(run(*USUAL, "--json")[1])["recipe"] == "certified"


def test_the_weight_is_found_unless_it_is_given(run):
    code, out, _ = run(*FOUND, "--recipe", "est-h", "--json")
    assert code == 0
    search = json.loads(out)["search"]
    assert search["max_auc_drop"] == MAX_AUC_DROP
    weights = [trial["weight"] for trial in search["trials"]]
    assert {0.0, 0.01} <= set(weights)
    assert max(weights) == 0.01  # the recipe's own
    for number, rest in enumerate([("--set", "weight=0.1"), ("--no-find-weight",)]):
        here = (*FOUND, *rest, "-o", f"other{number}", "--recipe", "est-h", "--json")
        assert json.loads(run(*here)[1])["search"] is None


@pytest.mark.parametrize("recipe", ["vanilla", "at", "linear"])
def test_a_recipe_without_a_weight_is_trained_once(run, recipe):
    code, out, _ = run(*FOUND, "--recipe", recipe, "--json")
    assert code == 0
    assert json.loads(out)["search"] is None


def test_too_few_validation_rows_find_no_weight(run, tmp_path):
    write(tmp_path / "t.csv", rows=60)
    code, out, _ = run(*FOUND, "--recipe", "est-h", "--json")
    assert code == 0
    assert json.loads(out)["search"] is None


INTERRUPTED = """
import os, signal
from r2et.cli import main
from r2et.train.loop import Loop
step = Loop._step
def interrupted(self, *rest):
    if self.state.step == 7:
        os.kill(os.getpid(), signal.SIGINT)
    return step(self, *rest)
Loop._step = interrupted
main()
"""


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(run, tmp_path):
    arguments = (*USUAL, "--recipe", "vanilla", "--epochs", "20")
    command = hearing_ctrl_c([sys.executable, "-c", INTERRUPTED, "train", *arguments])
    for extra, again in (("--no-resume", "command without --no-resume"), ("--resume", "command")):
        stopped = subprocess.run([*command, extra], capture_output=True, text=True, check=False)
        assert (stopped.returncode, stopped.stdout) == (130, "")
        assert stopped.stderr == f"Stopped; the same {again} continues where this one was.\n"
        saved = torch.load(tmp_path / "model" / "checkpoint.pt", weights_only=True)
        assert saved["state"]["step"] == 8
        (tmp_path / "model" / "checkpoint.pt").rename(tmp_path / "saved.pt")
    (tmp_path / "saved.pt").rename(tmp_path / "model" / "checkpoint.pt")
    assert run(*arguments)[0] == 0
    gone_on = load_trained("model").model.state_dict()
    run(*arguments, "--no-resume")
    at_once = load_trained("model").model.state_dict()
    assert all(torch.equal(value, at_once[name]) for name, value in gone_on.items())
