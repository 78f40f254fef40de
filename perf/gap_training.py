"""A training loop with a plain gap term, for measurements that want networks with wide gaps."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from r2et.explain import Gradient
from r2et.rank import gap_sum, ranking

K = 8  # features whose gaps are widened


def fitted(model: nn.Module, x: Tensor, y: Tensor, weight: float, epochs: int) -> nn.Module:
    """Trained by Adam on batches of 256."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(256):
            optimizer.zero_grad()
            loss = cross_entropy(model(x[batch]), y[batch])
            if weight:
                scores = Gradient()(model, x[batch], create_graph=True)
                scores = scores / scores.mean(1, keepdim=True).clamp(min=1e-6)
                pairs = K * (scores.shape[1] - K)
                loss = loss - weight * gap_sum(scores, ranking(scores), K).mean() / pairs
            loss.backward()
            optimizer.step()
    return model.eval().requires_grad_(False)
