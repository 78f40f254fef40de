"""Networks of people in pairs, as a database is used: a new person against those in it (B.1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from r2et.data.dataset import Data, Origin, Split
from r2et.data.shuffle import parts, pick, shuffled
from r2et.errors import require

# At most so many pairs: of 116 nodes, a thousand take 53 MB.
MOST = (1200, 300, 600)


def pair_up(
    name: str,
    edges: NDArray[Any],
    y: NDArray[Any],
    *,
    k: int,
    source: Origin,
    regions: Sequence[str] = (),
    notes: tuple[str, ...] = (),
    most: tuple[int, int, int] = MOST,
) -> Data:
    """Pairs x (B, 2, N (N - 1) / 2) of upper triangles; y is 1 where both labels are the same.

    edges: (people, N (N - 1) / 2), row by row without the diagonal, so that every edge is one
    feature. regions: the names of the N nodes, if they have any. People are split 70:15:15 within
    each label. A training pair is any two training graphs; a validation or test pair is a training
    graph and a validation or test graph. most: how many pairs of each part, drawn from all.
    """
    count = edges.shape[1]
    require(count > k, name, "every network", f"one of more than k = {k} edges", f"{count} edges")
    alike = bool((edges == edges[0]).all())
    require(not alike, name, "the networks", "different from person to person", "all the same")
    values, sizes = np.unique(y, return_counts=True)
    enough = len(values) >= 2 and int(sizes.min()) >= 7
    counted = ", ".join(f"{n} of label {v}" for v, n in zip(values[:5], sizes[:5], strict=True))
    require(enough, name, "y", "two labels or more, each of 7 people or more", counted)
    people = _people(name, y)
    splits = []
    for part, held, limit in zip(("train", "val", "test"), people, most, strict=True):
        both = held is people[0]
        ends = np.triu_indices(len(held), 1) if both else _grid(len(people[0]), len(held))
        chosen = pick(len(ends[0]), limit, f"{name}:{part}")
        pairs = np.stack([people[0][ends[0][chosen]], held[ends[1][chosen]]], 1)
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        x = torch.from_numpy(edges[pairs].astype(np.float32))
        splits.append(Split(x, torch.from_numpy(same.astype(np.int64))))
    train, val, test = splits
    names, classes = edge_names(name, regions, count), ("different", "same")
    return Data(name, train, val, test, names, (), k, source, classes, notes=notes)


def edge_names(name: str, regions: Sequence[str], count: int) -> tuple[str, ...]:
    """The name of every feature of a pair, "A - B, first" to "Y - Z, second"; none without any."""
    if not regions:
        return ()
    named = [f"{a} - {b}" for a, b in combinations(regions, 2)]
    fits = len(named) == count and len(set(regions)) == len(regions)
    require(
        fits, name, "regions", f"a name for each node of {count} edges", f"{len(regions)} names"
    )
    return tuple(f"{edge}, {which}" for which in ("first", "second") for edge in named)


def _grid(rows: int, columns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Row and column of every cell."""
    return np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows)


def _people(name: str, y: NDArray[Any]) -> list[NDArray[Any]]:
    """The people of the three parts, each label's shuffled and cut on its own."""
    split: list[list[int]] = [[], [], []]
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        order = rows[shuffled(len(rows), f"{name}:{label}")]
        for people, part in zip(split, parts(len(order)), strict=True):
            people += order[part].tolist()
    return [np.array(people) for people in split]
