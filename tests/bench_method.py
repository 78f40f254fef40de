"""Somebody else's method, as docs/bench.md shows it."""

from dataclasses import dataclass

import torch

from r2et.bench import Method
from r2et.train import recipe


@dataclass(frozen=True)
class Short(Method):
    """A few plain steps."""

    steps: int = 60

    def train(self, network, data, *, k, radius, seed):  # noqa: ARG002
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
        for i in range(self.steps):
            rows = slice(256 * i, 256 * (i + 1))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                network(data.train.x[rows]), data.train.y[rows]
            )
            loss.backward()
            optimizer.step()
        return network


LONGER = Short(steps=100)
HEAVY = recipe("wd", weight_decay=0.1)
