"""What tests of commands share: the program in a folder of its own, and a trained model."""

import sys

import pytest

from r2et import cli
from r2et.data import load
from r2et.train import fit


@pytest.fixture
def program(monkeypatch, capsys, tmp_path):
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
