"""The papers' network for tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import final

from torch import Tensor, nn

from r2et.errors import require
from r2et.models.network import Network, check_counts, check_widths

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


@final
class MLP(Network):
    """A fully connected network, by default n - 32 LeakyReLU - 2 (Sec. 6, tables).

    x: (B, features). Returns (B, classes) logits.

    Args:
        features: of a row.
        widths: of the hidden layers; none at all makes it a logistic regression.
        classes: how many logits.
        activation: "elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "softplus" or "tanh".
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
        check_counts("MLP", features=features, classes=classes)
        check_widths("MLP", widths)
        known = ", ".join(ACTIVATIONS)
        require(activation in ACTIVATIONS, "MLP", "activation", f"one of {known}", activation)
        self.settings = {
            "features": features,
            "widths": list(widths),
            "classes": classes,
            "activation": activation,
        }
        sizes = [features, *widths, classes]
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes[:-1]):
            layers += [nn.Linear(a, b), ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))

    def forward(self, x: Tensor) -> Tensor:
        features = self.settings["features"]
        require(x.shape[-1:] == (features,), "MLP", "x", f"rows of shape (B, {features})", x)
        out: Tensor = self.layers(x)
        return out
