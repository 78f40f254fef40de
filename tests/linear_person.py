"""A logistic regression by hand: its contributions are known in closed form."""

import torch
from torch import Tensor, nn

WEIGHTS = torch.tensor([2.0, -1.0, 0.5, 1.0, -3.0, 0.25], dtype=torch.float64)
GROUPS = ((1, 2, 3),)
NAMES = ("age", "job: clerk", "job: cook", "job: none", "debt", "years")


class Linear(nn.Module):
    """Log-odds of class 1: WEIGHTS . x - 0.2."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(WEIGHTS.clone())

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight[:, None] - 0.2


def people(rows: int = 12, seed: int = 0) -> Tensor:
    """Rows whose job is one-hot."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(rows, 6, generator=generator, dtype=torch.float64)
    job = torch.randint(0, 3, (rows,), generator=generator)
    x[:, 1:4] = torch.nn.functional.one_hot(job, 3).double()
    return x


def contributions(x: Tensor, baseline: Tensor, sign: float = 1.0) -> Tensor:
    """(B, 4): of age, job, debt and years, toward class 1, or class 0 with sign -1."""
    each = sign * WEIGHTS * (x - baseline)
    return torch.stack([each[:, 0], each[:, 1:4].sum(1), each[:, 4], each[:, 5]], 1)
