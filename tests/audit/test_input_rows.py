"""Rows as they are given: none lost, none made up, and every label with its own row."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from r2et.audit.input_rows import InputRows
from r2et.errors import InputError

X = torch.rand(10, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(10) % 2


class Again:
    """Batches that can be read more than once."""

    def __init__(self, *batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def rows(x, y=None, size=4):
    """x, y and index of all chunks, put together."""
    source = InputRows(nn.Linear(4, 2), x, y, None)
    chunks = list(source.chunks(size, torch.Generator().manual_seed(0)))
    labels = None if chunks[0].y is None else torch.cat([chunk.y for chunk in chunks])
    return (
        torch.cat([chunk.x for chunk in chunks]),
        labels,
        torch.cat([chunk.index for chunk in chunks]).tolist(),
    )


def batches():
    for start in range(0, 10, 3):
        yield X[start : start + 3], Y[start : start + 3]


@pytest.mark.parametrize(
    "given", [batches, lambda: Again(*batches()), lambda: map(tuple, batches())]
)
@pytest.mark.parametrize("size", [1, 3, 4, 64])
def test_a_stream_that_can_be_read_only_once_keeps_its_first_batch(given, size):
    x, y, index = rows(given(), size=size)
    assert torch.equal(x, X)
    assert torch.equal(y, Y)
    assert index == list(range(10))


def test_a_shuffled_loader_is_read_once():
    read = []

    class Counted(TensorDataset):
        def __getitem__(self, i):
            read.append(i)
            return super().__getitem__(i)

    x, y, _ = rows(DataLoader(Counted(X, Y), batch_size=3, shuffle=True))
    assert sorted(read) == list(range(10))
    assert torch.equal(x, X[read])
    assert torch.equal(y, Y[read])


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("labelled", [True, False])
def test_labels_come_with_every_batch_or_with_none(size, labelled):
    with_y, without = (X[:4], Y[:4]), X[4:8]
    first, second = (with_y, without) if labelled else (without, with_y)
    said = "batch 1 without labels" if labelled else "batch 1 with labels"
    with pytest.raises(InputError, match=f"all hold labels, or none, got {said}"):
        rows(Again(first, second), size=size)


def test_what_is_wrong_with_a_batch_names_the_batch():
    hole = X[3:6].clone()
    hole[1, 2] = torch.nan
    with pytest.raises(InputError, match=r"^audit: x of batch 1 must be finite, .* first in row 1"):
        rows(Again(X[:3], hole))
    with pytest.raises(InputError, match=r"^audit: x must be batches x or \(x, y\), got dict"):
        rows(Again({"x": X, "y": Y}))


def test_frames_of_several_numeric_kinds():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.double().numpy(), columns=list("abcd"))
    frame["b"] = frame["b"] > 0.5
    frame["c"] = pd.array(range(10), dtype="Int64")
    x, _, index = rows(frame)
    assert torch.equal(x[:, 1], (X[index, 1] > 0.5).float())
    assert torch.equal(x[:, 2], torch.tensor(index).float())
    frame["c"] = pd.array([None, *range(9)], dtype="Int64")
    with pytest.raises(InputError, match=r"^audit: x must be finite, got NaN .* in 1 of 10 rows"):
        rows(frame)
    frame["c"] = "7"
    with pytest.raises(InputError, match=r"x must be numbers \(encode text columns first\)"):
        rows(frame)


@pytest.mark.parametrize("kind", [np.uint16, np.uint64, np.int8, np.float64, bool])
def test_labels_of_any_kind(kind):
    _, y, index = rows(X, (np.arange(10) % 2).astype(kind))
    assert torch.equal(y, Y[index])


@pytest.mark.parametrize("x", [X.to(torch.complex64), X.to_sparse()])
def test_numbers_that_a_row_cannot_hold(x):
    with pytest.raises(InputError, match=r"^audit: x must be dense and of real numbers, got"):
        rows(x)


def test_a_chunk_does_not_bring_the_whole_along():
    """A view is sent to another process, and kept, with all that it is a view of."""
    for chunk in InputRows(nn.Linear(4, 2), X, Y, None).chunks(4, torch.Generator()):
        for part in (chunk.index, chunk.x, chunk.y):
            assert part.untyped_storage().nbytes() == part.numel() * part.element_size()
