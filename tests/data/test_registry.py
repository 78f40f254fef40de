"""A new data set is one file and one call; the registry names all it has."""

import json

import pytest
import torch
from typer.testing import CliRunner

import own_dataset
from r2et.cli.data import app
from r2et.data import DATASETS, DatasetEntry, load, register_dataset
from r2et.data.inventory import state
from r2et.errors import InputError, UnavailableError
from r2et.train import fit


@pytest.fixture
def sums(monkeypatch, tmp_path):
    """The data set of another file, registered for one test, its table in the user's folder."""
    (tmp_path / "sums").mkdir()
    (tmp_path / "sums" / "sums.csv").write_bytes(own_dataset.CONTENTS)
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    monkeypatch.setenv("R2ET_CACHE", str(tmp_path / "cache"))
    own_dataset.register()
    yield tmp_path / "sums" / "sums.csv"
    del DATASETS["sums"]


@pytest.mark.usefixtures("sums")
def test_a_data_set_from_outside_is_loaded_listed_and_trained_on():
    data = load("sums")
    assert (data.name, data.k, data.train.x.shape) == ("sums", 2, (40, 3))
    sevenths = torch.tensor([[i % 7, i % 5, i % 3] for i in range(40)])
    assert torch.equal((data.train.x * 6).round().long(), sevenths)
    assert state("sums") == "here"
    listed = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)
    assert {"name": "sums", "summary": "sums of small numbers", "state": "here"} in listed
    assert json.loads(CliRunner().invoke(app, ["info", "sums", "--json"]).stdout)["k"] == 2
    trained = fit(None, data, "vanilla", k=2, radius=0.1, epochs=1, seed=0)
    assert trained.model(data.test.x).shape[0] == 10


def test_its_file_is_held_to_its_checksum(sums):
    sums.write_bytes(own_dataset.CONTENTS + b"\n")
    with (
        pytest.warns(UserWarning, match=r"sums\.csv is not used"),
        pytest.raises(UnavailableError, match=r"sums/sums\.csv is not here"),
    ):
        load("sums")


def test_a_loader_that_breaks_the_rules_is_refused(monkeypatch):
    adult = DATASETS["adult"].loader()
    broken = DatasetEntry("no rows", lambda: adult.__class__(**{**vars(adult), "k": 28}))
    monkeypatch.setitem(DATASETS, "broken", broken)
    with pytest.raises(InputError, match=r"adult: k must be in 1\.\.27 for 28 features, got 28"):
        load("broken")


@pytest.mark.parametrize(
    ("name", "entry", "sentence"),
    [
        ("adult", own_dataset.ENTRY, "name must be one that is not taken, got adult"),
        ("", own_dataset.ENTRY, "name must be text, got"),
        (3, own_dataset.ENTRY, "name must be text, got 3"),
        ("mine", own_dataset.load_sums, "entry must be a DatasetEntry, got function"),
    ],
)
def test_bad_registrations(name, entry, sentence):
    before = dict(DATASETS)
    with pytest.raises(InputError, match=f"register_dataset: {sentence}"):
        register_dataset(name, entry)
    assert before == DATASETS
