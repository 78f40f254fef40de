"""The papers' network for tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from r2et.errors import require

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}


class MLP(nn.Module):
    """A fully connected network, by default n - 32 LeakyReLU - 2 (Sec. 6, tables).

    x: (B, features). Returns (B, classes) logits.
    """

    def __init__(
        self,
        features: int,
        widths: Sequence[int] = (32,),
        *,
        classes: int = 2,
        activation: str = "leaky_relu",
    ) -> None:
        super().__init__()
        known = ", ".join(ACTIVATIONS)
        require(activation in ACTIVATIONS, "MLP", "activation", f"one of {known}", activation)
        sizes = [features, *widths, classes]
        require(all(s > 0 for s in sizes), "MLP", "every width", "at least 1", sizes)
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes[:-1]):
            layers += [nn.Linear(a, b), ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out
