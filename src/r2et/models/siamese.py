"""Networks that say whether two inputs are of one class (B.1.5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor, nn

from r2et.checks import check_input
from r2et.errors import require
from r2et.models.network import Network, check_counts

NORM_FLOOR = 1e-6
DAMPED = 3.0  # standard deviations of a feature count as one: Adam's steps are as much smaller
SURE = 3.0  # what SiameseMLP's cosine is multiplied by before training


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """a.b / (|a| |b|) of (B, d) rows, with |a| = sqrt(a.a + 1e-12); returns (B,).

    The floor under the root makes it infinitely differentiable, at a = 0 as well, where the usual
    clamped norm has a kink and a second derivative of 0/0.
    """
    squares = (a.square().sum(1) + NORM_FLOOR**2) * (b.square().sum(1) + NORM_FLOOR**2)
    return (a * b).sum(1) / squares.sqrt()


class Siamese(Network, ABC):
    """f(x_s, x_t) = linear(cos(emb(x_s), emb(x_t))) (56), and cls(emb(x)) for one input.

    pair: (B, 2, ...), two inputs of one kind. Returns (B, 2) logits; class 1 says "same class".
    The loss of the pair alone leaves the single-input classifier at its initial weights: train
    `classifier` afterwards on `embed`, or on all `predictions` at once.
    """

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        check_counts(type(self).__name__, classes=classes)
        self.classifier = nn.Linear(dimension, classes)
        self.compare = nn.Linear(1, 2)
        # Alike means same from the first step on: a random sign would have to be unlearned.
        with torch.no_grad():
            self.compare.weight.copy_(torch.tensor([[-1.0], [1.0]]))
            self.compare.bias.zero_()

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """(B, ...) single inputs -> (B, d) embeddings."""

    def forward(self, pair: Tensor) -> Tensor:
        first, second = self._embed_both(pair)
        return self._same(first, second)

    def single(self, x: Tensor) -> Tensor:
        """(B, ...) single inputs -> (B, classes) logits, f^CL of B.1.5."""
        out: Tensor = self.classifier(self.embed(x))
        return out

    def predictions(self, pair: Tensor) -> list[Tensor]:
        """Logits of the pair, of its first and of its second input: the S = 3 of B.2.3."""
        first, second = self._embed_both(pair)
        return [self._same(first, second), self.classifier(first), self.classifier(second)]

    def _embed_both(self, pair: Tensor) -> tuple[Tensor, Tensor]:
        is_valid = pair.ndim >= 3 and pair.shape[1] == 2
        require(is_valid, type(self).__name__, "x", "pairs of shape (B, 2, ...)", pair)
        both = self.embed(pair.flatten(0, 1)).view(len(pair), 2, -1)
        return both[:, 0], both[:, 1]

    def _same(self, first: Tensor, second: Tensor) -> Tensor:
        out: Tensor = self.compare(cosine(first, second)[:, None])
        return out


@final
class SiameseCNN(Siamese):
    """The papers' network for pairs of digits (B.1.1).

    pair: (B, 2, 28, 28) or (B, 2, 1, 28, 28). Two unpadded 3*3 convolutions (8 and 16 channels)
    with max-pools of 2 and 3 take 28 to 26, 13, 11 and 3; the 16 * 3 * 3 = 144 numbers go through
    linear layers of 64, 32 and 10.

    Args:
        classes: of the single-input classifier.
    """

    def __init__(self, *, classes: int = 2) -> None:
        super().__init__(10, classes)
        self.settings = {"classes": classes}
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(3),
            nn.Flatten(),
            nn.Linear(144, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 10),
        )

    def embed(self, x: Tensor) -> Tensor:
        """(B, 28, 28) or (B, 1, 28, 28) images -> (B, 10) embeddings."""
        is_valid = x.shape[1:] in ((28, 28), (1, 28, 28))
        require(
            is_valid,
            "SiameseCNN",
            "an image",
            "of shape (28, 28) or (1, 28, 28)",
            tuple(x.shape[1:]),
        )
        out: Tensor = self.layers(x.reshape(-1, 1, 28, 28))
        return out


@final
class SiameseMLP(Siamese):
    """One layer of tanh units that sees all features at once, each as its distance from the usual.

    emb(x) = tanh(W (x - mean) / (3 deviation) + b). For pairs of rows whose features have a scale
    and a meaning of their own, such as the edges of brain networks: what tells people apart there
    is small beside what all have in common, and spread over thousands of edges.

    pair: (B, 2, features). Returns (B, 2) logits.

    Args:
        features: of one of the two.
        width: units, the size of the embedding.
        classes: of the single-input classifier.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: int, width: int = 16, *, classes: int = 2) -> None:
        check_counts("SiameseMLP", features=features, width=width)
        super().__init__(width, classes)
        self.settings = {"features": features, "width": width, "classes": classes}
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))
        self.linear = nn.Linear(features, width)
        self.activation = nn.Tanh()
        with torch.no_grad():
            nn.init.normal_(self.linear.weight, std=features**-0.5)
            self.linear.bias.zero_()
            self.compare.weight.mul_(SURE)

    @classmethod
    def fitted(cls, x: Tensor, width: int = 16, *, classes: int = 2) -> SiameseMLP:
        """One that knows mean and deviation of each feature in the training pairs x (B, 2, n).

        A feature that never changes has deviation 1.
        """
        check_input("SiameseMLP.fitted", x)
        is_valid = x.ndim == 3 and x.shape[1] == 2
        require(is_valid, "SiameseMLP.fitted", "x", "pairs of shape (B, 2, features)", x)
        network = cls(x.shape[2], width, classes=classes)
        deviation, mean = torch.std_mean(x.detach().cpu().flatten(0, 1), 0, correction=0)
        network.mean.copy_(mean)
        network.deviation.copy_(torch.where(deviation > 0, deviation, 1.0))
        return network

    def embed(self, x: Tensor) -> Tensor:
        """(B, features) rows -> (B, width) embeddings."""
        features = self.settings["features"]
        is_valid = x.ndim == 2 and x.shape[1] == features
        require(is_valid, "SiameseMLP", "x", f"pairs of {features} features each", x)
        apart = (x - self.mean) / (DAMPED * self.deviation)
        out: Tensor = self.activation(self.linear(apart))
        return out
