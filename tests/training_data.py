"""Data that trains in a moment: four of eight features matter, one by an interaction."""

import torch

from r2et.data import Data, Origin, Split


def small(rows: int = 300, n: int = 8, seed: int = 0, classes: int = 2) -> Data:
    numbers = torch.Generator().manual_seed(seed)
    x = torch.rand(2 * rows, n, generator=numbers)
    odds = 6 * (x[:, 0] - 0.5) + 4 * (x[:, 1] - 0.5) * (x[:, 2] > 0.5) - 2 * (x[:, 3] - 0.5)
    noise = 0.5 * torch.randn(2 * rows, generator=numbers)
    edges = torch.linspace(-1, 1, classes + 1)[1:-1]
    y = torch.bucketize(odds + noise, edges)
    part = [Split(x[a:b], y[a:b]) for a, b in ((0, rows), (rows, rows + rows // 2), (rows, None))]
    names = tuple(f"f{i}" for i in range(n))
    labels = tuple(str(c) for c in range(classes))
    return Data("small", *part, names, (), 3, Origin("made here"), labels)
