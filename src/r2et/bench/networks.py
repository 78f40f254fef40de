"""The networks of the benchmark, whatever `fit` makes by default: the papers', and one of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from r2et.data import Data
from r2et.errors import require
from r2et.models import MLP, ResNet18, SiameseCNN, SiameseGCN, SiameseMLP

PICTURE_WIDTH = 16  # of a ResNet18 that a computer without a GPU can train
SMALL_SIDE = 32  # pictures of more pixels across are made smaller first


def papers_network(data: Data, widths: Sequence[int] | None = None, seed: int = 0) -> nn.Module:
    """The papers' network for data of this shape (Sec. 6), its weights drawn from the seed.

    Tables: n - 32 LeakyReLU - classes; pairs of brain networks: a GCN of 256 and 128; pictures: a
    ResNet18, of width 16 where the papers have 64; pairs of pictures: their CNN. widths: of the
    hidden layers of the first two, or the one width of a ResNet18.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _network(tuple(data.train.x.shape[1:]), _classes(data), widths)


def edge_network(data: Data, width: int, seed: int) -> nn.Module:
    """A network of ours for pairs of brain networks, where the papers' learns nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SiameseMLP.fitted(data.train.x, width)


def _network(shape: tuple[int, ...], classes: int, widths: Sequence[int] | None) -> nn.Module:
    if len(shape) == 1:
        hidden = (32,) if widths is None else widths
        return MLP(shape[0], hidden, classes=classes, activation="leaky_relu")
    if len(shape) == 2 and shape[0] == 2:
        nodes = (1 + math.isqrt(1 + 8 * shape[1])) // 2
        return SiameseGCN(nodes, (256, 128) if widths is None else widths)
    if len(shape) == 3 and shape[0] != 2:
        is_valid = widths is None or len(widths) == 1
        require(is_valid, "bench", "width", "one width, of a ResNet18", widths)
        stem = "small" if max(shape[1:]) <= SMALL_SIDE else "large"
        width = PICTURE_WIDTH if widths is None else widths[0]
        return ResNet18(channels=shape[0], classes=classes, width=width, stem=stem)
    require(widths is None, "bench", "width", "left out for pairs of pictures", widths)
    return SiameseCNN()


def _classes(data: Data) -> int:
    return max(len(data.classes), int(data.train.y.max()) + 1)
