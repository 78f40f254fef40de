"""How near proofs come to attacks, and what each way of bounding buys for its time.

A part of certify.py, which records it. The same test rows of each network are attacked
(`MinimumNorm`) and certified in every way that applies to it; processor time of each is taken.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gap_training import K, fitted
from r2et.attack import MinimumNorm
from r2et.certify import Certifier, HessianCertifier, IntervalCertifier
from r2et.data import Data, load
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.region import L2
from r2et.train import fit

SMOOTH = ("softplus", "tanh", "gelu")
# Activation, hidden layers and kinds of networks for tables.
TABLES = (
    ("leaky_relu", 1, ("vanilla", "r2et", "gap")),
    ("leaky_relu", 2, ("vanilla",)),
    ("leaky_relu", 3, ("vanilla",)),
    ("softplus", 1, ("vanilla", "r2et", "gap")),
    ("softplus", 2, ("vanilla",)),
    ("softplus", 3, ("vanilla", "r2et")),
    ("tanh", 2, ("vanilla", "r2et")),
    ("tanh", 3, ("vanilla", "r2et")),
    ("gelu", 2, ("vanilla", "r2et")),
    ("gelu", 3, ("vanilla", "r2et")),
)
IMAGES = {
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
}


def train(
    data: Data, activation: str, widths: tuple[int, ...], weight: float = 0.0, epochs: int = 5
) -> nn.Module:
    """A network for tables; with a weight, also trained for large gaps without regard to scale."""
    torch.manual_seed(0)
    model = MLP(len(data.names), widths, activation=activation)
    return fitted(model, data.train.x, data.train.y, weight, epochs)


def made(kind: str, data: Data, activation: str, widths: tuple[int, ...]) -> nn.Module:
    """A network of one of three kinds: plain, by the papers' recipe, or for gaps alone."""
    if kind != "r2et":
        return train(data, activation, widths, 0.1 if kind == "gap" else 0.0)
    torch.manual_seed(0)
    network = MLP(len(data.names), widths, activation=activation)
    return fit(network, data, "r2et", k=K, radius=1.0, progress=False).model.requires_grad_(False)


def cnn(activation: type[nn.Module]) -> nn.Module:
    """Two convolutions for digits of 8 * 8, 3 against 8."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        activation(),
        nn.Conv2d(4, 4, 3, stride=2, padding=1),
        activation(),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


class Block(nn.Module):
    """Two convolutions, each with its BatchNorm, beside what comes in."""

    def __init__(self, channels: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            activation(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.activation = activation()

    def forward(self, x: Tensor) -> Tensor:
        """x (B, channels, h, w), and as much out."""
        return self.activation(x + self.body(x))


def resnet(activation: type[nn.Module]) -> nn.Module:
    """Two residual blocks for digits of 8 * 8: five convolutions deep."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        activation(),
        Block(4, activation),
        nn.AvgPool2d(2),
        Block(4, activation),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


def digits() -> tuple[Tensor, Tensor]:
    """scikit-learn's digits 3 and 8, in 0..1."""
    from sklearn.datasets import load_digits

    found = load_digits()
    chosen = (found.target == 3) | (found.target == 8)
    x = torch.tensor(found.images[chosen], dtype=torch.float32)[:, None] / 16
    return x, torch.tensor((found.target[chosen] == 8).astype(int))


Case = tuple[dict[str, Any], nn.Module, Tensor]  # a description, the network, its rows


def table_networks(rows: int, names: tuple[str, ...]) -> Iterator[Case]:
    """Networks for tables."""
    for name in names:
        data = load(name)
        for activation, depth, kinds in TABLES:
            for kind in kinds:
                entry = {"data": name, "activation": activation, "layers": depth, "kind": kind}
                yield entry, made(kind, data, activation, (32,) * depth), data.test.x[:rows]


def image_networks(plain: int, residual: int) -> Iterator[Case]:
    """Networks for digits, and how many rows of each kind.

    Residual ones in float64: in float32 the rounding of so many sums in a row, bounded whatever
    their order, may be more than the gaps of a smooth one. How many rows still have a radius there,
    with linear bounds, is noted.
    """
    x, y = digits()
    for kind, build, depth, rows in (("cnn", cnn, 2, plain), ("resnet", resnet, 5, residual)):
        for activation, layer in IMAGES.items():
            torch.manual_seed(0)
            model = fitted(build(layer), x[100:], y[100:], 0.0, 40)
            entry = {"data": "digits", "activation": activation, "layers": depth, "kind": kind}
            if kind == "cnn":
                yield entry, model, x[:rows]
                continue
            some = x[:rows]
            radius = IntervalCertifier(splits=0, symbols=False)(model, Gradient(), some, k=K).radius
            entry["proved_in_float32"] = int((radius > 0).sum())
            yield entry, model.double(), some.double()


def ways(entry: dict[str, Any]) -> dict[str, Certifier]:
    """The ways to bound that make a difference for a network."""
    found: dict[str, Certifier] = {
        "interval": IntervalCertifier(relaxation="interval"),
        "linear": IntervalCertifier(splits=0, symbols=False),
    }
    image = entry["data"] == "digits"
    if entry["activation"] in SMOOTH:
        # A ResNet's symbols are a little above what relaxation="auto" lets pass.
        deep = entry["kind"] == "resnet"
        found["symbols"] = IntervalCertifier(relaxation="linear" if deep else "auto")
        if not image:
            found["hessian"] = HessianCertifier()
    else:
        found["split"] = IntervalCertifier(splits=4 if image else 8)
    return found


def tightness(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Median of certified / attacked radius, and processor time of a row, for each way to bound."""
    found = []
    for entry, model, x in cases:
        attacked = MinimumNorm(L2(4.0))(model, Gradient(), x, k=K).radius
        entry |= {"rows": len(x), "attacked": round(float(attacked.median()), 5)}
        entry |= {"certified": {}, "ratio": {}, "ms_per_row": {}}
        for title, certifier in ways(entry).items():
            start = time.process_time()
            radius = certifier(model, Gradient(), x, k=K).radius
            taken = time.process_time() - start
            ratio = radius / attacked
            if bool((ratio >= 1).any()):
                raise SystemExit(f"{entry}: {title} is beaten by the attack")
            entry["certified"][title] = round(float(radius.median()), 6)
            entry["ratio"][title] = round(float(ratio.median()), 4)
            entry["ms_per_row"][title] = round(1e3 * taken / len(x), 2)
        found.append(entry)
        print(entry, flush=True)
    return found
