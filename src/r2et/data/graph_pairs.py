"""Networks of people in pairs, as a database is used: a new person against those in it (B.1.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from r2et.data.dataset import Data, Origin, Split
from r2et.data.shuffle import parts, pick, shuffled
from r2et.errors import require

# At most so many pairs: of 116 nodes, a thousand take 108 MB.
MOST = (1200, 300, 600)


def pair_up(
    name: str,
    graphs: NDArray[Any],
    y: NDArray[Any],
    *,
    k: int,
    source: Origin,
    notes: tuple[str, ...] = (),
) -> Data:
    """Pairs x (B, 2, nodes, nodes); y is 1 where both people have the same label.

    People are split 70:15:15 within each label. A training pair is any two training graphs; a
    validation or test pair is a training graph and a validation or test graph.
    """
    finite = bool(np.isfinite(graphs).all())
    require(finite, name, "every edge", "a finite number", "NaN or infinity")
    labels = np.unique(y)
    few = min(int((y == label).sum()) for label in labels)
    enough = len(labels) >= 2 and few >= 7
    require(enough, name, "y", "two labels or more, each of 7 people or more", y)
    people = _people(name, y)
    splits = []
    for part, held, most in zip(("train", "val", "test"), people, MOST, strict=True):
        both = held is people[0]
        ends = np.triu_indices(len(held), 1) if both else _grid(len(people[0]), len(held))
        chosen = pick(len(ends[0]), most, f"{name}:{part}")
        pairs = np.stack([people[0][ends[0][chosen]], held[ends[1][chosen]]], 1)
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        x = torch.from_numpy(graphs[pairs].astype(np.float32))
        splits.append(Split(x, torch.from_numpy(same.astype(np.int64))))
    classes = ("different", "same")
    return Data(name, splits[0], splits[1], splits[2], (), (), k, source, classes, notes=notes)


def _grid(rows: int, columns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Row and column of every cell."""
    return np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows)


def _people(name: str, y: NDArray[Any]) -> list[NDArray[Any]]:
    """The people of the three parts, each label's shuffled and cut on its own."""
    found: list[list[int]] = [[], [], []]
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        order = rows[shuffled(len(rows), f"{name}:{label}")]
        for people, part in zip(found, parts(len(order)), strict=True):
            people += order[part].tolist()
    return [np.array(people) for people in found]
