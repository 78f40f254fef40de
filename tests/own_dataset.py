"""A data set from outside the package: this one file, and one call of `register_dataset`."""

import hashlib

import torch

from r2et.data import Data, DatasetEntry, Origin, Split, register_dataset
from r2et.data.sources import File, read

ROWS = [f"{i % 7},{i % 5},{i % 3},{int(i % 7 + i % 5 > 5)}" for i in range(60)]
CONTENTS = "\n".join(ROWS).encode()
FILES = (File("sums/sums.csv", hashlib.sha256(CONTENTS).hexdigest(), len(CONTENTS)),)
SOURCE = Origin("made for a test", licence="CC0")


def load_sums() -> Data:
    """Three small numbers; y is 1 where the first two add up to more than 5."""
    (contents,) = read("sums", FILES)
    cells = torch.tensor([[float(c) for c in row.split(",")] for row in contents.decode().split()])
    x, y = cells[:, :3] / 6, cells[:, 3].long()
    train, val, test = (Split(x[a:b], y[a:b]) for a, b in ((0, 40), (40, 50), (50, 60)))
    names, classes = ("first", "second", "third"), ("small", "large")
    return Data("sums", train, val, test, names, (), 2, SOURCE, classes=classes)


ENTRY = DatasetEntry("sums of small numbers", load_sums, FILES, SOURCE, "(B, 3)", 2)


def register() -> None:
    register_dataset("sums", ENTRY)
