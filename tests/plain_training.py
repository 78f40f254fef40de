"""A plain PyTorch loop, for trainings to be compared with."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from r2et.data import Data
from r2et.train.runtime import mixed


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [p.detach() for p in model.parameters()]


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(weights(a), weights(b), strict=True))


def by_hand(model: nn.Module, data: Data, epochs: int, batch: int = 256) -> nn.Module:
    """A plain PyTorch loop over the same batches."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        numbers = torch.Generator().manual_seed(mixed(0, epoch, -1))
        for rows in torch.randperm(len(data.train.y), generator=numbers).split(batch):
            optimizer.zero_grad()
            cross_entropy(model(data.train.x[rows]), data.train.y[rows]).backward()
            optimizer.step()
    return model
