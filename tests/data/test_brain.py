"""Brain networks in pairs: who is paired with whom, and what a user's own file may look like."""

import io

import numpy as np
import pytest
import torch

from r2et.data import DATASETS, Origin, load
from r2et.data.brain import ABIDE_PAIRS
from r2et.data.graph_pairs import MOST, edge_names, pair_up
from r2et.errors import InputError, UnavailableError
from r2et.explain import Gradient
from r2et.models import SiameseGCN
from r2et.rank import top_k
from real_data import real

NODES = {"abide": 116, "adhd-frontal": 28, "kki": 190, "ohsu": 190, "peking-1": 190}
PAIRS = {"abide": ABIDE_PAIRS, "adhd-frontal": (528, 198, 297)}


def numbered(people, edges=3):
    """Networks whose every edge is the number of the person."""
    return np.ones((people, edges), np.float32) * np.arange(people, dtype=np.float32)[:, None]


@pytest.mark.parametrize("name", sorted(NODES))
def test_shapes(name):
    data = real(name)
    edges = NODES[name] * (NODES[name] - 1) // 2
    for part, count in zip(data.parts, PAIRS.get(name, MOST), strict=True):
        assert part.x.shape == (count, 2, edges)
        assert 0.4 < float(part.y.float().mean()) < 0.6
    assert data.k == 50
    assert data.notes == ()
    assert f"(B, 2, {edges})" == DATASETS[name].shape
    assert data.source == DATASETS[name].source
    stands = DATASETS[name].source.stands_for
    assert (f"stands in for {stands}, and is not it" in str(data)) == bool(stands)


def test_fifty_features_are_fifty_edges():
    """As full matrices, every edge would come twice with equal scores, and k edges be k / 2."""
    data = real("adhd-frontal")
    torch.manual_seed(0)
    scores = Gradient()(SiameseGCN(28), data.test.x[:4])
    assert scores.shape == (4, 2 * 378) == (4, len(data.names))
    for row, found in zip(top_k(scores, data.k), scores, strict=True):
        assert len({data.names[i] for i in row}) == 50
        assert len(found.unique()) == 756


def test_edges_are_named_by_their_regions():
    data = real("adhd-frontal")
    assert data.names[0] == "FAG - FAD, first"
    assert data.names[378] == "FAG - FAD, second"
    assert len(set(data.names)) == 756
    assert edge_names("toy", "ABC", 3)[:3] == ("A - B, first", "A - C, first", "B - C, first")
    assert edge_names("toy", (), 3) == ()


def test_pairs_are_a_training_graph_and_another():
    y = np.arange(60) % 2
    data = pair_up("toy", numbered(60), y, k=1, source=Origin("here"))
    ids = [part.x[:, :, 0].long() for part in (data.train, data.val, data.test)]
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
        people = set(part.x[:, 1, 0].long().tolist())
        assert {int(y[p]) for p in people} == {0, 1}


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


Y = np.arange(40) % 2


def matrices(people=40, nodes=12):
    """Symmetric ones with an infinite diagonal, as Fisher z values have."""
    a = np.random.default_rng(0).normal(size=(people, nodes, nodes))
    return a + a.transpose(0, 2, 1) + np.where(np.eye(nodes), np.inf, 0)


def test_a_file_of_ones_own(bp):
    full = matrices()
    row, column = np.triu_indices(12, 1)
    upper = full[:, row, column]
    regions = [f"r{i}" for i in range(12)]
    np.savez(bp, adjacency=full, y=Y.astype(float), regions=regions)
    data = load("bp")
    assert data.train.x.shape[1:] == (2, 66)
    assert data.names[:2] == ("r0 - r1, first", "r0 - r2, first")
    assert data.source.where == "your own file brain/bp.npz"
    np.savez(bp, fc_triu=upper, y=Y)
    again = load("bp")
    assert torch.equal(again.train.x, data.train.x)
    assert again.names == ()


def bad(**changes):
    return {"adjacency": matrices(), "y": Y, **changes}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"y": np.zeros(3)},
            "the file must be as docs/data/brain.md describes, got one with ['y'].",
        ),
        (
            bad(fc_triu=np.zeros((40, 66))),
            "the file must be as docs/data/brain.md describes, got one with ['adjacency', "
            "'fc_triu', 'y'].",
        ),
        (
            bad(adjacency=np.zeros((3, 4, 5))),
            "adjacency must be an array of shape (people, nodes, nodes), got (3, 4, 5).",
        ),
        (
            bad(adjacency=np.zeros((0, 4, 4))),
            "adjacency must be an array of shape (people, nodes, nodes), got (0, 4, 4).",
        ),
        (
            bad(adjacency=np.zeros((40, 1, 1))),
            "adjacency must be of two nodes or more, got 1 node.",
        ),
        (bad(adjacency=np.full((40, 12, 12), np.nan)), "adjacency must be finite, got NaN or"),
        (bad(adjacency=matrices().astype(complex)), "adjacency must be an array of real numbers"),
        (bad(adjacency=matrices().astype(str)), "adjacency must be an array of real numbers"),
        (
            bad(adjacency=np.tril(np.nan_to_num(matrices(), posinf=1))),
            "adjacency must be symmetric (give triangles as fc_triu), got another matrix in place "
            "0.",
        ),
        (
            bad(adjacency=matrices(nodes=10)),
            "every network must be one of more than k = 50 edges, got 45 edges.",
        ),
        (
            bad(adjacency=np.ones((40, 12, 12))),
            "the networks must be different from person to person, got all the same.",
        ),
        (
            bad(y=np.zeros(40)),
            "y must be two labels or more, each of 7 people or more, got 40 of label 0.",
        ),
        (bad(y=np.where(Y, np.nan, 0)), "y must be whole numbers, got nan in place 1."),
        (bad(y=Y / 2), "y must be whole numbers, got 0.5 in place 1."),
        (bad(y=Y.astype(str)), "y must be whole numbers, got an array of <U21."),
        (bad(y=np.array(1)), "y must be an array of shape (people,), got ()."),
        (bad(y=Y[:39]), "y must be one number for each of 40 people, got 39."),
        (
            {"fc_triu": np.zeros(66), "y": Y},
            "fc_triu must be an array of shape (people, edges), got (66,).",
        ),
        (
            {"fc_triu": np.zeros((40, 67)), "y": Y},
            "fc_triu must be upper triangles, got 67 edges.",
        ),
        (bad(regions=["a", "b"]), "regions must be a name for each node of 66 edges, got 2 names."),
    ],
)
def test_a_bad_file_of_ones_own(bp, arrays, message):
    np.savez(bp, **arrays)
    with pytest.raises(InputError) as caught:
        load("bp")
    assert str(caught.value).startswith(f"bp: {message}")


def npy():
    out = io.BytesIO()
    np.save(out, matrices())
    return out.getvalue()


def damaged():
    out = io.BytesIO()
    np.savez_compressed(out, **bad())
    return out.getvalue()[:200] + bytes(50) + out.getvalue()[250:]


def pickled():
    out = io.BytesIO()
    np.savez(out, y=np.array([{}], dtype=object))
    return out.getvalue()


@pytest.mark.parametrize("contents", [b"", b"not an archive", npy(), damaged(), pickled()])
def test_a_file_that_is_none(bp, contents):
    bp.write_bytes(contents)
    with pytest.raises(InputError) as caught:
        load("bp")
    text = str(caught.value)
    assert text.startswith("bp: brain/bp.npz must be an .npz file without pickles, got ")
    assert len(text) < 300
    assert "\n" not in text


def test_a_folder_is_no_file(bp):
    bp.mkdir()
    with pytest.raises(InputError, match=r"without pickles, got Is a directory\.$"):
        load("bp")
