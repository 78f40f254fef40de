"""What tests of commands share: the program in a folder of its own, and a trained model."""

import os
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from r2et import cli
from r2et.data import load
from r2et.train import fit

FACTORY = """
from torch import nn
def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
def number():
    return 3
"""


@pytest.fixture
def program(monkeypatch, capsys, tmp_path, short_attacks):  # noqa: ARG001
    """By a command's name, a function of its arguments that gives exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def of(command):
        def call(*arguments):
            monkeypatch.setattr(sys, "argv", ["r2et", command, *arguments])
            with pytest.raises(SystemExit) as stop:
                cli.main()
            return stop.value.code, *capsys.readouterr()

        return call

    return of


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A network for Adult as `r2et train` leaves it."""
    place = tmp_path_factory.mktemp("model") / "adult"
    fit(None, load("adult"), "vanilla", epochs=1, out=place, progress=False)
    return str(place)


@pytest.fixture
def strange(tmp_path, monkeypatch):
    """Somebody's module, weights and numbers."""
    torch.manual_seed(0)
    name = f"their_model_{os.getpid()}_{time.monotonic_ns()}"
    (tmp_path / f"{name}.py").write_text(FACTORY)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    x = np.random.default_rng(0).random((30, 4)).round(3)
    y = np.where(x[:, 0] > 0.5, "yes", "no")
    rows = [",".join(map(str, [*row, label])) for row, label in zip(x, y, strict=True)]
    (tmp_path / "rows.csv").write_text("a,b,c,d,label\n" + "\n".join(rows) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name
