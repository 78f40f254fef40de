"""The built-in data set is what its card says, and what the raw files say."""

import csv
import gzip
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import r2et
from r2et.data import DATASETS, Schema, load
from r2et.data.sources import local
from r2et.errors import InputError, UnavailableError
from r2et.models import MLP

BUILTIN = Path(r2et.__file__).parent / "data" / "builtin"


@pytest.fixture(scope="module")
def adult():
    return load("adult")


def parts(data):
    return data.train, data.val, data.test


def test_shapes_types_and_split(adult):
    assert [len(p.y) for p in parts(adult)] == [34189, 7326, 7327]
    for x, y in parts(adult):
        assert x.shape == (len(y), 28)
        assert x.dtype == torch.float32
        assert y.dtype == torch.int64
        assert 0 <= float(x.min()) <= float(x.max()) <= 1
    assert adult.k == 8
    assert adult.name == "adult"


def test_damaged_files_are_not_loaded(tmp_path, monkeypatch):
    """Zeros are valid rows, so that only the checksum can tell."""
    copy = tmp_path / "builtin"
    copy.mkdir()
    for name in ("adult.npy", "adult.json"):
        (copy / name).write_bytes((BUILTIN / name).read_bytes())
    monkeypatch.setattr(local, "files", lambda _: tmp_path)
    assert len(load("adult").train.y) == 34189
    damaged = bytearray((copy / "adult.npy").read_bytes())
    damaged[1000:1400] = bytes(400)
    (copy / "adult.npy").write_bytes(damaged)
    with pytest.raises(UnavailableError) as caught:
        load("adult")
    assert str(caught.value).startswith("adult: builtin/adult.npy is damaged (its SHA-256 is ")
    assert str(caught.value).endswith("in 195496 bytes); install r2et again.")


def test_names_are_readable_and_in_order(adult):
    assert len(adult.names) == len(set(adult.names)) == 28
    assert adult.names[:5] == (
        "age",
        "hours per week",
        "race: white",
        "sex: male",
        "native country: United States",
    )
    assert "marital status: married" in adult.names
    assert [len(g) for g in adult.groups] == [4, 8, 5, 6]
    assert adult.names == adult.schema.names


def test_one_category_per_group_and_every_category_occurs(adult):
    for x, _ in parts(adult):
        for group in adult.groups:
            assert bool((x[:, group].sum(1) == 1).all())
        assert bool((x.std(0) > 0).all())


def test_class_balance_in_every_part(adult):
    for _, y in parts(adult):
        assert 0.23 < float(y.float().mean()) < 0.25
    assert sum(int(p.y.sum()) for p in parts(adult)) == 11687


def test_scale_is_that_of_the_training_part(adult):
    assert adult.train.x[:, :2].amin(0).tolist() == [0, 0]
    assert adult.train.x[:, :2].amax(0).tolist() == [1, 1]
    low = {c.name: (c.low, c.high) for c in adult.schema.columns[:2]}
    assert low == {"age": (17, 90), "hours per week": (1, 99)}


def test_a_second_load_is_equal_and_independent(adult):
    again = load("adult")
    again.train.x.zero_()
    third = load("adult")
    for a, b in zip(parts(adult), parts(third), strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)


def test_a_row_reads_as_a_person(adult):
    person = adult.schema.decode(adult.test.x[0])
    assert person == {
        "age": 20.0,
        "hours per week": 30.0,
        "race": "white",
        "sex": "female",
        "native country": "United States",
        "work class": "private",
        "education": "some college",
        "marital status": "never married",
        "occupation": "office or sales",
    }
    again = adult.schema.encode({name: [value] for name, value in person.items()})
    assert torch.equal(again[0], adult.test.x[0])


def test_decode_and_encode_are_inverse(adult):
    rows = [adult.schema.decode(row) for row in adult.val.x[:200]]
    raw = {name: [row[name] for row in rows] for name in rows[0]}
    torch.testing.assert_close(adult.schema.encode(raw), adult.val.x[:200], rtol=0, atol=1e-7)


def test_credit_and_description(adult, capsys):
    assert "10.24432/C5XW20" in adult.source.where
    assert adult.source.licence == "CC BY 4.0"
    assert repr(adult) == "Data(adult: 34189/7326/7327 rows, 28 features, k=8)"
    adult.describe()
    said = capsys.readouterr().out
    assert "income: at most 50K (76.1%), over 50K (23.9%)" in said
    assert "age: integer, 17 to 90" in said
    assert "Becker" in said


def test_schema_survives_json(adult):
    text = json.dumps(adult.schema.to_json())
    assert Schema.from_json(json.loads(text)) == adult.schema


def test_files_are_small_plain_and_without_code():
    sizes = {p.name: p.stat().st_size for p in BUILTIN.iterdir()}
    assert set(sizes) == {"adult.npy", "adult.json"}
    assert sum(sizes.values()) < 250_000
    packed = np.load(BUILTIN / "adult.npy", allow_pickle=False)
    assert packed.dtype == np.uint32


def test_the_papers_network_reaches_their_auc(adult):
    torch.manual_seed(0)
    model = MLP(28)
    step = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(10):
        for rows in torch.randperm(len(adult.train.y)).split(256):
            step.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                model(adult.train.x[rows]), adult.train.y[rows]
            )
            loss.backward()
            step.step()
    with torch.no_grad():
        scores = model(adult.test.x).diff(dim=1)
    assert roc_auc_score(adult.test.y, scores) > 0.875


def test_every_named_set_says_what_it_is():
    assert all(entry.summary and callable(entry.loader) for entry in DATASETS.values())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("adlut", r"^load: name must be one of .*adult.* \(did you mean 'adult'\?\), got adlut\.$"),
        ("Adult", r"did you mean 'adult'\?\), got Adult\.$"),
        ("zzz", r"^load: name must be one of [^?]*, got zzz\.$"),
        (3, r"^load: name must be one of [^?]*, got 3\.$"),
    ],
)
def test_unknown_names_get_one_sentence(name, sentence):
    with pytest.raises(InputError, match=sentence):
        load(name)


def test_it_is_the_raw_data(adult):
    folder = os.environ.get("R2ET_DATA")
    if not folder:
        pytest.skip("R2ET_DATA is not set: no raw files to compare with")
    rows = []
    for name in ("adult.data.gz", "adult.test.gz"):
        with gzip.open(Path(folder) / "adult" / name, "rt") as file:
            rows += [r for r in csv.reader(file, skipinitialspace=True) if len(r) == 15]
    x = torch.cat([p.x for p in parts(adult)])
    y = torch.cat([p.y for p in parts(adult)])
    column = dict(zip(adult.names, x.T, strict=True))
    ours = zip(
        (column["age"] * 73 + 17).round().int().tolist(),
        (column["hours per week"] * 98 + 1).round().int().tolist(),
        (column["sex: male"] == 1).tolist(),
        (column["race: white"] == 1).tolist(),
        (column["education: bachelor"] == 1).tolist(),
        (column["marital status: widowed"] == 1).tolist(),
        (column["occupation: executive"] == 1).tolist(),
        (column["work class: private"] == 1).tolist(),
        (column["native country: United States"] == 1).tolist(),
        (y == 1).tolist(),
        strict=True,
    )
    raw = (
        (
            int(r[0]),
            int(r[12]),
            r[9] == "Male",
            r[8] == "White",
            r[3] == "Bachelors",
            r[5] == "Widowed",
            r[6] == "Exec-managerial",
            r[1] == "Private",
            r[13] == "United-States",
            r[14].startswith(">50K"),
        )
        for r in rows
    )
    assert Counter(ours) == Counter(raw)
