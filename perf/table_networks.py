"""Networks for tables in their usual forms, small: what certificates are to cover."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PiecewiseLinear(nn.Module):
    """Numbers in bins, clamp((x - b) / w, 0, 1) of each, beside one-hot columns; then an MLP."""

    def __init__(
        self, numbers: int = 3, others: int = 2, bins: int = 3, width: int = 10, classes: int = 2
    ) -> None:
        super().__init__()
        self.numbers = numbers
        edges = torch.linspace(-2, 2, bins + 1).repeat(numbers, 1)
        self.register_buffer("start", edges[:, :-1])
        self.register_buffer("width", edges[:, 1:] - edges[:, :-1])
        inputs = numbers * bins + others
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x: Tensor) -> Tensor:
        bins = (x[:, : self.numbers, None] - self.start) / self.width
        return self.net(torch.cat([bins.clamp(0, 1).flatten(1), x[:, self.numbers :]], 1))


class LayerNormMLP(nn.Sequential):
    """Linear, LayerNorm, activation, twice."""

    def __init__(
        self,
        features: int = 5,
        width: int = 12,
        act: type[nn.Module] = nn.Tanh,
        classes: int = 2,
    ) -> None:
        super().__init__(
            *(nn.Linear(features, width), nn.LayerNorm(width), act()),
            *(nn.Linear(width, 8), nn.LayerNorm(8, elementwise_affine=False), act()),
            nn.Linear(8, classes),
        )


class Embeddings(nn.Module):
    """Columns of categories, embedded, beside numbers; then an MLP. The first 3 are numbers."""

    def __init__(self, sizes: tuple[int, ...] = (4, 3), width: int = 12, classes: int = 2) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 2) for size in sizes)
        self.register_buffer("offsets", torch.zeros(len(sizes), dtype=torch.long))
        inputs = 3 + 2 * len(sizes)
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, classes))

    def forward(self, x: Tensor) -> Tensor:
        category = x[:, 3:].long().clamp(0, 2) + self.offsets
        parts = [table(category[:, i]) for i, table in enumerate(self.tables)]
        return self.net(torch.cat([x[:, :3], *parts], 1))


class Scaling(nn.Module):
    """A learned factor for each feature."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale[None]


class NTKLinear(nn.Module):
    """x W / sqrt(inputs) + 0.1 b."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))
        self.bias = nn.Parameter(torch.randn(1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return x.shape[-1] ** -0.5 * (x @ self.weight) + 0.1 * self.bias


class PeriodicEmbedding(nn.Module):
    """Of each number: itself, beside a linear layer of cos(2 pi w x + b)."""

    def __init__(self, features: int, hidden: int = 4, size: int = 3) -> None:
        super().__init__()
        self.w = nn.Parameter(0.1 * torch.randn(features, 1, hidden))
        self.b = nn.Parameter(torch.pi * (2 * torch.rand(features, 1, hidden) - 1))
        self.v = nn.Parameter(torch.randn(features, hidden, size - 1) / 2)
        self.c = nn.Parameter(torch.randn(features, 1, size - 1) / 4)

    def forward(self, x: Tensor) -> Tensor:
        by_feature = x.transpose(-1, -2).unsqueeze(-1)  # (features, B, 1)
        wave = torch.cos(2 * torch.pi * torch.bmm(by_feature, self.w) + self.b)
        made = torch.bmm(wave, self.v) + self.c
        return torch.cat([x.unsqueeze(-1), made.transpose(-2, -3)], -1).reshape(len(x), -1)


class RealMLP(nn.Sequential):
    """Periodic embeddings, scaling, layers in NTK form."""

    def __init__(self, act: type[nn.Module], features: int = 4, classes: int = 2) -> None:
        super().__init__(
            *(PeriodicEmbedding(features), Scaling(3 * features)),
            *(NTKLinear(3 * features, 12), act(), NTKLinear(12, 8), act(), NTKLinear(8, classes)),
        )


class Ensemble(nn.Module):
    """Members that share weights and differ by rank-1 adapters; their mean.

    mean: of "logits", of "probabilities" (its log), of these "held above 0", with
        a little of the logits, or of "log" probabilities, by logsumexp.
    """

    def __init__(
        self,
        mean: str = "logits",
        features: int = 4,
        members: int = 3,
        width: int = 8,
        classes: int = 2,
    ) -> None:
        super().__init__()
        self.mean, self.members = mean, members
        draw = lambda *size: nn.Parameter(torch.randn(members, *size))  # noqa: E731
        self.first, self.second = (
            nn.Linear(features, width, bias=False),
            nn.Linear(width, width, bias=False),
        )
        self.r1, self.s1, self.b1 = draw(features), draw(width), draw(width)
        self.r2, self.b2 = draw(width), draw(width)
        self.head, self.bias = draw(width, classes), draw(classes)

    def forward(self, x: Tensor) -> Tensor:
        z = x[:, None].expand(-1, self.members, -1)
        z = torch.relu(self.first(z * self.r1) * self.s1 + self.b1)
        z = torch.relu(self.second(z * self.r2) + self.b2)
        z = (z.unsqueeze(-2) @ self.head).squeeze(-2) + self.bias
        if self.mean == "probabilities":
            return z.softmax(-1).mean(1).log()
        if self.mean == "held above 0":
            return z.softmax(-1).mean(1).clamp(min=1e-5).log() + 0.1 * z.mean(1)
        return z.log_softmax(-1).logsumexp(1) if self.mean == "log" else z.mean(1)


class EinsumEnsemble(nn.Module):
    """The same with a matrix for each member: by einsum, then by baddbmm with members first."""

    def __init__(
        self, members: int = 3, features: int = 4, width: int = 6, classes: int = 2
    ) -> None:
        super().__init__()
        draw = lambda *size: nn.Parameter(torch.randn(members, *size))  # noqa: E731
        self.first, self.second = draw(features, width), draw(width, classes)
        self.bias = draw(1, classes)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.tanh(torch.einsum("bf,kfo->bko", x, self.first))
        return torch.baddbmm(self.bias, z.transpose(0, 1), self.second).transpose(0, 1).mean(1)


class GatedResidual(nn.Module):
    """z + GLU(z), then z + a silu(b) of two halves."""

    def __init__(self, features: int = 5, width: int = 6, classes: int = 2) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(features, width), nn.Linear(width, classes)
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        z = self.into(x)
        z = z + F.glu(self.gates[0](z), 1)
        a, b = self.gates[1](z).chunk(2, 1)
        return self.out(z + a * F.silu(b))


class Attention(nn.Module):
    """A token for each feature and one of its own, one head, a residual: as an FT-Transformer."""

    def __init__(self, features: int = 3, size: int = 4, classes: int = 2) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.randn(features, size)) for _ in range(2))
        self.token = nn.Parameter(torch.randn(size))
        self.norm = nn.LayerNorm(size)
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))
        self.out = nn.Linear(size, classes)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x[..., None] * self.weight + self.bias
        z = torch.cat([self.token.expand(len(x), 1, -1), tokens], 1)
        n = self.norm(z)
        shares = (self.q(n) @ self.k(n).transpose(1, 2) / n.shape[-1] ** 0.5).softmax(-1)
        return self.out((z + shares @ self.v(n))[:, 0])


class Pieces(nn.Module):
    """Stacked, split, taken by number, padded, divided, squared, and put together again."""

    def __init__(self, features: int = 4, classes: int = 2) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(features, 6), nn.Linear(6, 6)
        self.out = nn.Linear(9, classes)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.tanh(self.one(x))
        a, b, c = torch.stack([z, self.two(z), z.square()], 1).unbind(1)
        d = F.pad(a[:, [0, 2, 2, 5]], (1, 1)) / (1.5 + b.exp())
        e, f = d.split([2, 4], 1)
        g = torch.sqrt(1 + c.index_select(1, torch.tensor([1, 1, 3]))) * e[:, :1]
        return self.out(torch.cat([f, torch.sin(e), g], 1))


class Clipped(nn.Module):
    """Clamps by numbers, by tensors, on one side, of x and of layers."""

    def __init__(self, features: int = 5, classes: int = 3) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(features, 6), nn.Linear(6, 6)
        self.out, self.beside = nn.Linear(6, classes), nn.Linear(features, classes)
        self.register_buffer("low", torch.linspace(-0.3, 0.2, 6))
        self.register_buffer("high", torch.linspace(0.2, 1.3, 6))

    def forward(self, x: Tensor) -> Tensor:
        z = self.a(x.clamp(-1.0, 1.1))
        z = torch.clamp(z, self.low, torch.maximum(self.low, self.high)) + 0.5 * z.clamp(max=0.3)
        z = self.b(z).clamp(min=0.0) + F.hardtanh(self.b(z), -0.2, 0.4)
        return self.out(F.relu6(20 * z)) + self.beside(x)


def one_layer(act: nn.Module, features: int = 4, width: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(features, width), act, nn.Linear(width, 2))


# By name: how it is made, and how many features it has.
NETWORKS = {
    "layer norm": (LayerNormMLP, 5),
    "embeddings": (Embeddings, 5),
    "piecewise-linear": (PiecewiseLinear, 5),
    "real mlp, selu": (lambda: RealMLP(nn.SELU), 4),
    "real mlp, mish": (lambda: RealMLP(nn.Mish), 4),
    "ensemble": (Ensemble, 4),
    "ensemble, probabilities": (lambda: Ensemble("probabilities"), 4),
    "ensemble, log": (lambda: Ensemble("log"), 4),
    "ensemble by einsum": (EinsumEnsemble, 4),
    "gated residual": (GatedResidual, 5),
    "attention": (Attention, 3),
    "pieces": (Pieces, 4),
    "prelu": (lambda: one_layer(nn.PReLU(8)), 4),
    "hardswish": (lambda: one_layer(nn.Hardswish()), 4),
    "hardsigmoid": (lambda: one_layer(nn.Hardsigmoid()), 4),
    "celu": (lambda: one_layer(nn.CELU(2.0)), 4),
    "rms norm": (lambda: nn.Sequential(nn.Linear(4, 8), nn.RMSNorm(8), one_layer(nn.Tanh(), 8)), 4),
}


def rows(name: str, count: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Inputs for one of NETWORKS; a category is the middle of its cell, so that it may move."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(count, NETWORKS[name][1], generator=generator, dtype=dtype)
    if name == "embeddings":
        x[:, 3:] = torch.randint(3, (count, 2), generator=generator).to(dtype) + 0.5
    return x
