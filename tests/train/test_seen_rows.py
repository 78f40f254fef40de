"""Rows that a training has seen are known again, whatever file they come in."""

import numpy as np
import pandas as pd
import pytest
import torch
from tests.credit import credit_table

from r2et.data import Data, Origin, Split, load_table
from r2et.errors import InputError
from r2et.train import fit, load_trained
from r2et.train.seen_rows import TRAINING, UNSEEN, VALIDATION, SeenRows, fingerprints


def split(*rows, label=0):
    return Split(torch.tensor(rows).float(), torch.full((len(rows),), label))


def seen_of(train, val, test):
    return SeenRows.of(Data("made", train, val, test, (), (), 1, Origin("here")))


@pytest.fixture
def trained(tmp_path):
    """A small credit table in a file, and a network trained on it."""
    table = credit_table(200)
    table.to_csv(tmp_path / "loans.csv", index=False)
    data = load_table(tmp_path / "loans.csv", "class")
    fit(None, data, "vanilla", epochs=1, out=tmp_path / "model", progress=False)
    return tmp_path, table, data


def counts(recognised):
    return np.bincount(recognised.parts, minlength=3).tolist()


def test_a_fingerprint_is_of_the_numbers_not_of_their_precision_or_sign_of_zero():
    x = torch.tensor([[0.1, 0.0], [0.1, -0.0], [0.2, 0.0]])
    one, two, other = fingerprints(x).tolist()
    assert one == two != other
    assert fingerprints(x.double()).tolist() == [one, two, other]
    assert fingerprints(torch.rand(9000, 3)).unique().numel() == 9000
    assert fingerprints(x[:0]).tolist() == []


def test_a_whole_file_leaves_its_test_part(trained):
    folder, _, data = trained
    seen = load_trained(folder / "model").seen
    x, y = (torch.cat([part[i] for part in data.parts]) for i in (0, 1))
    assert counts(seen.parts(x, y)) == [len(data.test.y), len(data.train.y), len(data.val.y)]
    assert counts(seen.parts(x)) == [len(data.test.y), len(data.train.y), len(data.val.y)]
    assert torch.equal(seen.held_out.x, data.test.x)
    assert torch.equal(seen.held_out.y, data.test.y)


def test_column_order_and_file_format_do_not_matter(trained):
    folder, table, data = trained
    model = load_trained(folder / "model")
    mixed = table[table.columns[::-1]].sample(frac=1, random_state=1)
    mixed.to_parquet(folder / "loans.parquet")
    x, y = model.read(folder / "loans.parquet")
    assert counts(model.seen.parts(x, y))[0] == len(data.test.y)


def test_rows_that_nobody_has_seen(trained):
    folder, _, _ = trained
    model = load_trained(folder / "model")
    x, y = model.read(credit_table(50, seed=1))
    recognised = model.seen.parts(x, y)
    assert (counts(recognised), recognised.alike) == ([50, 0, 0], 0)


def test_a_row_is_known_again_as_often_as_it_was_trained_on():
    seen = seen_of(split([1, 2], [1, 2]), split([3, 4]), split([5, 6]))
    x = torch.tensor([[1.0, 2]] * 3 + [[3.0, 4], [7.0, 8]])
    parts = seen.parts(x, torch.zeros(5).long()).parts
    assert parts.tolist() == [TRAINING, TRAINING, UNSEEN, VALIDATION, UNSEEN]
    other_class = seen.parts(x, torch.ones(5).long())
    assert counts(other_class) == [5, 0, 0]


def test_the_like_of_a_training_row_in_the_test_part_is_no_training_row():
    twins = seen_of(split([1, 2], [3, 4]), split([9, 9]), split([1, 2], [5, 6], [7, 8]))
    recognised = twins.parts(*split([1, 2], [7, 8]))
    assert (counts(recognised), recognised.alike) == ([2, 0, 0], 1)


def test_as_many_alike_as_among_the_test_rows_are_chance():
    """A table of few different rows: later ones repeat them as the test part does."""
    draw = torch.Generator().manual_seed(0)
    train, val, test, later = (
        Split(torch.randint(4, (rows, 5), generator=draw).float(), torch.zeros(rows).long())
        for rows in (600, 100, 200, 200)
    )
    seen = seen_of(train, val, test)
    recognised = seen.parts(*later)
    assert recognised.alike > 20
    assert counts(recognised) == [200, 0, 0]
    half = Split(torch.cat([train.x[:100], later.x[:100]]), later.y)
    assert counts(seen.parts(*half))[TRAINING] >= 100


def test_a_folder_without_its_rows_still_loads(trained):
    folder, _, _ = trained
    (file,) = (folder / "model").glob("rows-*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="the file of rows that its training wrote"):
        load_trained(folder / "model")
    file.unlink()
    assert load_trained(folder / "model").seen is None


def test_a_training_anew_replaces_the_rows(trained):
    folder, table, _ = trained
    other = load_table(table, "class", seed=1)
    fit(None, other, "vanilla", epochs=1, out=folder / "model", resume=False, progress=False)
    assert len(list((folder / "model").glob("rows-*.safetensors"))) == 1
    assert torch.equal(load_trained(folder / "model").seen.held_out.x, other.test.x)


def test_pandas_and_files_give_the_same_fingerprints(trained):
    folder, table, data = trained
    again = load_table(pd.read_csv(folder / "loans.csv"), "class")
    assert torch.equal(fingerprints(again.train.x), fingerprints(data.train.x))
    assert table.shape[0] == 200
