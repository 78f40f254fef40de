"""One default for each of radius, k, recipe and budget, wherever it is asked for."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from r2et import R2ETClassifier, audit
from r2et.attack import MinimumNorm, StrongAttack
from r2et.audit import bracket
from r2et.audit.settings import AuditSettings
from r2et.cli import app
from r2et.data import load_table
from r2et.defaults import BUDGET, PICTURE_RECIPE, RADIUS, RECIPE, K
from r2et.region import L2
from r2et.train import RECIPES, fit
from r2et.train.run import train


def default(function, name):
    return inspect.signature(function).parameters[name].default


def test_the_everyday_values():
    assert (RADIUS, K, RECIPE, BUDGET) == (0.3, 8, "certified", "standard")
    assert {RECIPE, PICTURE_RECIPE} <= set(RECIPES)


def test_python_has_one_default_each():
    assert default(fit, "radius") == default(train, "radius") == RADIUS
    assert default(R2ETClassifier, "radius") == R2ETClassifier().radius == RADIUS
    assert AuditSettings(k=1).region == L2(RADIUS)
    rows = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    found = audit(nn.Linear(3, 2), rows, k=1, budget="fast", minutes=1e-6)
    assert found.summary()["radius"] == RADIUS
    assert default(fit, "recipe") == default(R2ETClassifier, "recipe") == RECIPE
    assert default(R2ETClassifier, "k") == K
    assert default(fit, "k") is None  # the data's
    budgets = [default(f, "budget") for f in (audit.audit, bracket)]
    budgets += [kind(L2(1.0)).budget for kind in (StrongAttack, MinimumNorm)]
    assert {*budgets, AuditSettings(k=1).budget} == {BUDGET}


def test_the_k_of_a_table(tmp_path):
    numbers = np.random.default_rng(0).random((60, 12)).round(3)
    for width, k in ((12, K), (5, 4)):
        lines = [",".join(f"c{i}" for i in range(width)) + ",y"]
        lines += [",".join(map(str, [*row[:width], i % 2])) for i, row in enumerate(numbers)]
        (tmp_path / "t.csv").write_text("\n".join(lines))
        assert load_table(tmp_path / "t.csv", target="y").k == k


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("train", "radius", RADIUS),
        ("audit", "budget", BUDGET),
        ("certify", "budget", BUDGET),
    ],
)
def test_commands_have_the_same(command, option, value):
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    (line,) = (line for line in text.splitlines() if f"--{option} " in line)
    assert f"[default: {value}]" in line


def test_words_of_commands_name_them():
    shown = {
        command: CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
        for command in ("train", "audit")
    }
    assert f"by default {RECIPE} for tables, {PICTURE_RECIPE} for others" in shown["train"]
    assert f"as in training, else {RADIUS:g}" in shown["audit"]


def test_help_does_not_wait_for_torch():
    code = "import sys, r2et.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
