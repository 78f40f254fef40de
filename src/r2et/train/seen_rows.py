"""Rows that a training has seen, known again by their fingerprints; and its test part."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as parse
from safetensors.torch import save as format_tensors
from torch import Tensor

from r2et.data import Data, Split
from r2et.errors import InputError, require
from r2et.files import write
from r2et.models.folder import contents

UNSEEN, TRAINING, VALIDATION = 0, 1, 2
DIGEST = 8  # bytes of a fingerprint: among a million rows two meet by chance once in 10^7 tables
AT_ONCE = 4096  # rows copied at a time
CHANCE = 3  # standard deviations
PATTERN = "rows-*.safetensors"


def fingerprints(x: Tensor) -> Tensor:
    """(B,) int64, BLAKE2 of each row's numbers as float32, whatever their precision; -0 is 0."""
    codes = []
    for start in range(0, len(x), AT_ONCE):
        numbers = x[start : start + AT_ONCE].detach().cpu().float().flatten(1).numpy() + 0.0
        rows = np.ascontiguousarray(numbers, dtype="<f4")
        codes += [hashlib.blake2b(row, digest_size=DIGEST).digest() for row in rows]
    return torch.from_numpy(np.frombuffer(b"".join(codes), dtype="<i8").astype(np.int64))


class Recognised(NamedTuple):
    """Which part of a training rows are of.

    parts: (B,) UNSEEN, TRAINING or VALIDATION.
    alike: how many of the unseen have their like among the training rows by chance.
    """

    parts: NDArray[np.int8]
    alike: int


@dataclass(frozen=True, eq=False)
class RowKeys:
    """Fingerprints (B,) and, where known, classes (B,) of rows."""

    digest: Tensor
    label: Tensor | None

    @classmethod
    def of(cls, split: Split) -> RowKeys:
        return cls(fingerprints(split.x), split.y.detach().cpu().long())

    def counted(self, *, labelled: bool) -> Counter[tuple[int, int]]:
        """How many rows have each fingerprint, and each class where that counts."""
        return Counter(self.pairs(labelled=labelled))

    def pairs(self, *, labelled: bool) -> Iterable[tuple[int, int]]:
        """Fingerprint and class of each row; the class is 0 where it does not count."""
        labels: list[int] = [0] * len(self.digest)
        if labelled and self.label is not None:
            labels = self.label.detach().cpu().long().tolist()
        return zip(self.digest.tolist(), labels, strict=True)


@dataclass(frozen=True, eq=False)
class SeenRows:
    """What a training has seen, by fingerprints, and what it has not.

    train, val, test: keys of the rows of each part.
    held_out: the test rows themselves, of a table; None of other data.
    """

    train: RowKeys
    val: RowKeys
    test: RowKeys
    held_out: Split | None = None

    @classmethod
    def of(cls, data: Data) -> SeenRows:
        """The rows of a data set, as a training on it leaves them."""
        train, val, test = (RowKeys.of(part) for part in data.parts)
        kept = data.train.x.ndim == 2 and len(data.test.y) > 0
        copied = Split(data.test.x.detach().cpu().float(), data.test.y.detach().cpu().long())
        return cls(train, val, test, copied if kept else None)

    def parts(self, x: Tensor, y: Tensor | None = None) -> Recognised:
        """Which part of the training each row is of: UNSEEN, TRAINING or VALIDATION.

        A row that was trained on n times is known again n times: what is there more often than
        that is another row of the same numbers. Where columns are few, two people may have the
        same numbers: rows that are all of the test part are unseen, and so are rows of which no
        more have their like among the training rows than of the test rows do (without any, than
        of the validation rows).
        """
        given, labelled = RowKeys(fingerprints(x), y), y is not None
        parts = RowRecogniser(self, labelled=labelled)(given)
        alike = int((parts != UNSEEN).sum())
        if alike == 0:
            return Recognised(parts, 0)
        of_test = given.counted(labelled=labelled) <= self.test.counted(labelled=labelled)
        if of_test or alike <= self._by_chance(len(x), labelled=labelled):
            return Recognised(np.full(len(x), UNSEEN, dtype=np.int8), alike)
        return Recognised(parts, 0)

    def _by_chance(self, rows: int, *, labelled: bool) -> float:
        """How many of so many rows may have their like among the training rows by chance."""
        if not len(self.test.digest) and not len(self.val.digest):
            return 0.0
        if len(self.test.digest):
            known = RowRecogniser(self, labelled=labelled)(self.test) != UNSEEN
        else:
            known = RowRecogniser(self, labelled=labelled)(self.val) == TRAINING
        share = float(known.mean())
        return rows * share + CHANCE * math.sqrt(rows * share * (1 - share))

    def save(self, folder: Path) -> str:
        """Write the file of rows, under a name made from its SHA-256; returns that name."""
        tensors = {}
        for name in ("train", "val", "test"):
            keys: RowKeys = getattr(self, name)
            assert keys.label is not None  # a training's rows have classes
            tensors[f"{name}.digest"], tensors[f"{name}.label"] = keys.digest, keys.label.clone()
        if self.held_out is not None:
            x, y = self.held_out
            tensors["held_out.x"], tensors["held_out.y"] = x.contiguous(), y.clone()
        blob = format_tensors(tensors)
        name = f"rows-{hashlib.sha256(blob).hexdigest()[:16]}.safetensors"
        write(folder / name, blob)
        return name

    @classmethod
    def load(cls, path: Path) -> SeenRows | None:
        """What `save` wrote; None where the file is gone."""
        if not os.path.isfile(path):  # unlike the method of Path, False for what no file can be
            return None
        where, blob = "load_trained", contents("load_trained", path)
        whole = path.stem == f"rows-{hashlib.sha256(blob).hexdigest()[:16]}"
        expected = "the file of rows that its training wrote (by SHA-256)"
        require(whole, where, str(path), expected, f"{len(blob)} bytes that differ from it")
        try:
            tensors = parse(blob)
            train, val, test = (
                RowKeys(*_columns(tensors, f"{name}.digest", f"{name}.label"))
                for name in ("train", "val", "test")
            )
            held_out = None
            if "held_out.x" in tensors:
                y, digest = _columns(tensors, "held_out.y", "test.digest")
                held_out = Split(tensors["held_out.x"], y)
                is_valid = held_out.x.ndim == 2 and held_out.x.dtype == torch.float32
                if not (is_valid and len(held_out.x) == len(digest)):
                    raise ValueError("held_out.x")
        except (SafetensorError, KeyError, ValueError) as error:
            raise InputError(f"{where}: {path} must be {expected}, got something else.") from error
        return cls(train, val, test, held_out)


def _columns(tensors: dict[str, Tensor], *names: str) -> list[Tensor]:
    """Whole numbers, (B,) each, of one B."""
    columns = [tensors[name] for name in names]
    is_valid = all(c.ndim == 1 and c.dtype == torch.int64 for c in columns)
    if not (is_valid and len({len(c) for c in columns}) == 1):
        raise ValueError(", ".join(names))
    return columns


class RowRecogniser:
    """Rows of a stream, batch by batch: which part of a training each is of."""

    def __init__(self, seen: SeenRows, *, labelled: bool) -> None:
        self.labelled = labelled
        self.left = {
            TRAINING: seen.train.counted(labelled=labelled),
            VALIDATION: seen.val.counted(labelled=labelled),
        }

    def __call__(self, rows: RowKeys) -> NDArray[np.int8]:
        """(B,) UNSEEN, TRAINING or VALIDATION."""
        parts = (self._part(pair) for pair in rows.pairs(labelled=self.labelled))
        return np.fromiter(parts, dtype=np.int8, count=len(rows.digest))

    def _part(self, pair: tuple[int, int]) -> int:
        for part, left in self.left.items():
            if left[pair] > 0:
                left[pair] -= 1
                return part
        return UNSEEN
