"""Retinal OCT: what a scan of the eye's layers shows. docs/data/oct.md.

The papers' images (OCTID, which they call ROCT) are read from a folder the user supplies. The
stand-in is another collection (Kermany 2018, four classes), and is never called ROCT.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from r2et.data.arrays import labels
from r2et.data.dataset import Data, DatasetEntry, Origin, Split
from r2et.data.shuffle import parts, shuffled
from r2et.data.sources import Supplied, supplied, supplied_arrays
from r2et.errors import InputError, first_line, require

KERMANY = Origin(
    where="Kermany, Zhang and Goldbaum, Mendeley Data, https://doi.org/10.17632/rscbjbr9sj",
    credit="D. S. Kermany et al., Cell 172 (2018)",
    licence="CC BY 4.0",
    changes="a sample, made smaller, split by patient",
    stands_for="the papers' ROCT (OCTID)",
)
OCTID = Origin(
    where="OCTID, https://doi.org/10.1016/j.compeleceng.2019.106532",
    credit="P. Gholami, P. Roy, M. K. Parthasarathy and V. Lakshminarayanan (2020)",
    changes="grey, made smaller",
)
PAGE = "docs/data/oct.md"
MADE = "its owners publish the full images, from which this sample is made"
FILES = {
    "oct-kermany": Supplied(
        "oct/oct_kermany_500_224.npz",
        PAGE,
        MADE,
        sha256="3c413a72cb3d229502eb36c24bda674d6e0c3c50a72eca35f96e52cace3d6c2a",
    ),
    "oct-kermany-64": Supplied(
        "oct/oct_kermany_8000_64.npz",
        PAGE,
        MADE,
        sha256="5ed82162eec30ab22d1b7edb4134a080aef4a3224d368de39bec7a6afe75aa8a",
    ),
    "octid": Supplied("oct/octid", PAGE, "no checksum of it is known", instead="oct-kermany"),
}
K = 50
WIDTH, HEIGHT = 386, 257  # half of the papers' 771 x 514
PICTURES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp"}


def kermany(name: str) -> Callable[[], Data]:
    """The loader of one of the two samples, x (B, 1, H, W) in 0..1, split by patient."""

    def load() -> Data:
        stored, notes = supplied_arrays(name, FILES[name])
        lacking = sorted({"x", "y", "patient", "classes"} - set(stored))
        require(not lacking, name, "the file", f"as {PAGE} describes", f"one without {lacking}")
        x, y, patient, classes = (stored[key] for key in ("x", "y", "patient", "classes"))
        pictures = x.ndim == 3 and x.dtype == np.uint8 and x.size > 0
        require(pictures, name, "x", "bytes (images, H, W)", f"{x.dtype} {x.shape}")
        texts = classes.ndim == 1 and classes.dtype.kind in "US"
        require(texts, name, "classes", "a list of names", f"{classes.dtype} {classes.shape}")
        y = labels(name, "y", y, len(x), "images")
        patient = labels(name, "patient", patient, len(x), "images")
        return _data(name, x, y, patient, [str(c) for c in classes], KERMANY, notes)

    return load


def load_octid() -> Data:
    """The images of oct/octid/CLASS/*, x (B, 1, 257, 386) in 0..1, split image by image."""
    root = supplied("octid", FILES["octid"])
    require(root.is_dir(), "octid", FILES["octid"].path, "a folder of folders", "a file")
    folders = sorted(path for path in root.iterdir() if path.is_dir())
    pictures = [
        (path, label)
        for label, folder in enumerate(folders)
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in PICTURES
    ]
    enough = len(folders) >= 2 and len(pictures) >= 10
    counted = f"{len(pictures)} images in {len(folders)} folders"
    require(enough, "octid", root.name, "a folder per class, with images", counted)
    x = np.stack([_grey(path) for path, _ in pictures])
    y = np.array([label for _, label in pictures])
    classes = [folder.name for folder in folders]
    return _data("octid", x, y, np.arange(len(y)), classes, OCTID, ())


def _data(
    name: str,
    x: NDArray[Any],
    y: NDArray[Any],
    patient: NDArray[Any],
    classes: list[str],
    source: Origin,
    notes: tuple[str, ...],
) -> Data:
    """Split 70:15:15 by patient: two scans of one eye never lie on both sides."""
    named = len(classes) >= 2 and len(set(classes)) == len(classes)
    require(named, name, "classes", "two names or more, all different", classes)
    low, high = int(y.min()), int(y.max())
    inside = low >= 0 and high < len(classes)
    require(inside, name, "y", f"in 0..{len(classes) - 1}", low if low < 0 else high)
    pixels = x[0].size
    require(pixels > K, name, "an image", f"one of more than k = {K} pixels", f"{pixels} pixels")
    people, index = np.unique(patient, return_inverse=True)
    enough = len(people) >= 7
    require(enough, name, "patient", "7 different ones or more, for three parts", len(people))
    order = shuffled(len(people), name)
    splits = []
    for part in parts(len(people)):
        rows = np.flatnonzero(np.isin(index, order[part]))
        images = torch.from_numpy(x[rows]).float().div_(255).unsqueeze(1)
        splits.append(Split(images, torch.from_numpy(y[rows].astype(np.int64))))
    train, val, test = splits
    return Data(name, train, val, test, (), (), K, source, classes=tuple(classes), notes=notes)


def _grey(path: Path) -> NDArray[Any]:
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("L").resize((WIDTH, HEIGHT)))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(
            f"octid: {path.name} must be an image, got {first_line(error)}."
        ) from error


def _kermany_entry(name: str, count: int, side: int) -> DatasetEntry:
    text, shape = f"{count} retinal scans, 4 classes, {side} x {side}", f"(B, 1, {side}, {side})"
    return DatasetEntry(text, kermany(name), (FILES[name],), KERMANY, shape, K)


ENTRIES = {
    "oct-kermany": _kermany_entry("oct-kermany", 500, 224),
    "oct-kermany-64": _kermany_entry("oct-kermany-64", 8000, 64),
    "octid": DatasetEntry(
        "the papers' ROCT, from your own folder of images",
        load_octid,
        (FILES["octid"],),
        OCTID,
        f"(B, 1, {HEIGHT}, {WIDTH})",
        K,
    ),
}
