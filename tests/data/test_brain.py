"""Brain networks in pairs: who is paired with whom, and what a user's own file may look like."""

import numpy as np
import pytest
import torch

from r2et.data import Origin, load
from r2et.data.brain import full, symmetric
from r2et.data.graph_pairs import MOST, pair_up
from r2et.errors import InputError, UnavailableError
from real_data import real

NODES = {"abide": 116, "adhd-frontal": 28, "kki": 190, "ohsu": 190, "peking-1": 190}
PAIRS = {"adhd-frontal": (528, 198, 297)}


def numbered(people, nodes=3):
    """Graphs whose every edge is the number of the person."""
    graphs = np.ones((people, nodes, nodes), np.float32) * np.arange(people)[:, None, None]
    return symmetric(graphs)


@pytest.mark.parametrize("name", sorted(NODES))
def test_shapes(name):
    data = real(name)
    nodes = NODES[name]
    for part, count in zip((data.train, data.val, data.test), PAIRS.get(name, MOST), strict=True):
        assert part.x.shape == (count, 2, nodes, nodes)
        some = part.x[:50]
        assert torch.equal(some, some.transpose(2, 3))
        assert not some.diagonal(dim1=2, dim2=3).any()
        assert 0.4 < float(part.y.float().mean()) < 0.6
    assert data.k == 50
    assert data.notes == ()


def test_pairs_are_a_training_graph_and_another():
    y = np.arange(60) % 2
    data = pair_up("toy", numbered(60), y, k=1, source=Origin("here"))
    ids = [part.x[:, :, 0, 1].long() for part in (data.train, data.val, data.test)]
    train = set(ids[0].flatten().tolist())
    held = [set(part[:, 1].tolist()) for part in ids[1:]]
    assert len(train) == 42
    assert all(set(part[:, 0].tolist()) <= train for part in ids)
    assert not train & held[0]
    assert not train & held[1]
    assert not held[0] & held[1]
    for part, pairs in zip((data.train, data.val, data.test), ids, strict=True):
        assert torch.equal(part.y, (pairs[:, 0] % 2 == pairs[:, 1] % 2).long())
        assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == len(pairs)


def test_all_pairs_where_they_are_few():
    data = pair_up("toy", numbered(20), np.arange(20) % 2, k=1, source=Origin("here"))
    assert len(data.train.y) == 14 * 13 // 2


def test_every_part_has_every_label():
    y = np.array([0] * 50 + [1] * 10)
    data = pair_up("toy", numbered(60), y, k=1, source=Origin("here"))
    for part in (data.val, data.test):
        people = set(part.x[:, 1, 0, 1].long().tolist())
        assert {int(y[p]) for p in people} == {0, 1}


def test_a_triangle_and_back():
    triangle = np.arange(12.0).reshape(2, 6)
    graphs = symmetric(full("toy", triangle))
    assert np.array_equal(graphs[1][np.triu_indices(4, 1)], triangle[1])
    assert np.array_equal(graphs, graphs.transpose(0, 2, 1))
    with pytest.raises(InputError, match="fc_triu must be an upper triangle, got 7"):
        full("toy", np.zeros((2, 7)))


@pytest.mark.parametrize(("name", "instead"), [("bp", "adhd-frontal"), ("adhd", "abide")])
def test_what_nobody_publishes_is_one_sentence(name, instead, monkeypatch):
    monkeypatch.delenv("R2ET_DATA", raising=False)
    with pytest.raises(UnavailableError) as error:
        load(name)
    assert str(error.value) == (
        f"{name}: brain/{name}.npz is not in R2ET_DATA (not set), and is not fetched because the "
        "papers' networks are not published; put your copy, as docs/data/brain.md describes it, "
        f"into a folder as brain/{name}.npz and set R2ET_DATA to that folder, or use the stand-in "
        f"{instead!r}."
    )


@pytest.fixture
def bp(tmp_path, monkeypatch):
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    (tmp_path / "brain").mkdir()
    return tmp_path / "brain" / "bp.npz"


def test_a_file_of_ones_own(bp):
    y = np.arange(40) % 2
    np.savez(bp, adjacency=np.random.default_rng(0).random((40, 82, 82)), y=y)
    data = load("bp")
    assert data.train.x.shape[1:] == (2, 82, 82)
    assert torch.equal(data.train.x, data.train.x.transpose(2, 3))
    assert data.source.where == "your own file brain/bp.npz"
    np.savez(bp, fc_triu=np.zeros((40, 82 * 81 // 2)), y=y)
    assert load("bp").train.x.shape[1:] == (2, 82, 82)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": np.zeros(3)}, "bp: the file must be as docs/data/brain.md describes"),
        ({"adjacency": np.zeros((3, 4, 5)), "y": np.zeros(3)}, "bp: adjacency must be"),
        ({"adjacency": np.zeros((20, 4, 4)), "y": np.zeros(20)}, "bp: y must be two labels"),
        (
            {"adjacency": np.full((20, 4, 4), np.nan), "y": np.arange(20) % 2},
            "bp: every edge must be a finite number",
        ),
    ],
)
def test_a_bad_file_of_ones_own(bp, arrays, message):
    np.savez(bp, **arrays)
    with pytest.raises(InputError, match=message):
        load("bp")


def test_a_file_that_is_none(bp):
    bp.write_bytes(b"not an archive")
    with pytest.raises(
        InputError, match=r"bp: brain/bp\.npz must be an \.npz file without pickles"
    ):
        load("bp")
