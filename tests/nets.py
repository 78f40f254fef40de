"""Small networks that tests share: some with exact answers, some of every shape users bring."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from r2et.explain import Explainer
from r2et.models import MLP


class Quadratic(nn.Module):
    """One logit x'Ax/2 + b'x: gradient Ax + b and Hessian A, exactly."""

    def __init__(self, a: Tensor, b: Tensor):
        super().__init__()
        self.a, self.b = nn.Parameter(a), nn.Parameter(b)

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.a * x).sum(1, keepdim=True) / 2 + x @ self.b[:, None]


def quadratic(n: int = 6, seed: int = 0, dtype=torch.float64) -> Quadratic:
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(n, n, generator=generator, dtype=dtype)
    return Quadratic((root + root.T) / 2, torch.randn(n, generator=generator, dtype=dtype))


class ResidualNet(nn.Module):
    """Convolutions, batch normalisation, a residual sum, dropout: what a ResNet is made of."""

    def __init__(self, channels: int, act: type[nn.Module], classes: int = 3):
        super().__init__()
        self.stem = nn.Conv2d(channels, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.block = nn.Sequential(
            nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6), act(), nn.Conv2d(6, 6, 1)
        )
        self.act = act()
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(6, classes)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.norm(self.stem(x)))
        y = self.act(y + self.block(y))
        return self.head(self.drop(y.mean((2, 3))))


class Siamese(nn.Module):
    """A pair (B, 2, ...) -> two logits from the similarity of two embeddings."""

    def __init__(self, features: int):
        super().__init__()
        self.embed = nn.Sequential(nn.Flatten(), nn.Linear(features, 8), nn.Tanh())
        self.head = nn.Linear(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.embed(x[:, 0]), self.embed(x[:, 1])
        return self.head(nn.functional.cosine_similarity(a, b)[:, None])


class GraphNet(nn.Module):
    """Adjacency (B, N, N) -> logits: two rounds of A X W, mean over nodes."""

    def __init__(self, nodes: int):
        super().__init__()
        self.one, self.two = nn.Linear(nodes, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.two((x @ torch.tanh(self.one(x))).mean(1))


def mlp(n: int = 6, act: str = "leaky_relu", classes: int = 3) -> nn.Module:
    return MLP(n, (16, 8), classes=classes, activation=act)


def cnn(act: type[nn.Module] = nn.ReLU) -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3), act(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 3))


def make(build, seed: int = 0, dtype=torch.float32) -> nn.Module:
    """Build a network with weights that do not depend on what ran before, in eval mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build().to(dtype).eval()


def randn(*shape: int, seed: int = 0, dtype=torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Scored(Explainer):
    """Scores that are any function of x, whatever the model: objectives with exact answers."""

    function: Callable[[Tensor], Tensor]
    reduce: str = "signed"

    def attribute(self, model, x, target, *, create_graph):  # noqa: ARG002
        return self.function(x)
