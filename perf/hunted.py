"""The networks that perf/hunt.py looks for counter-examples in: one for each seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

import table_networks as tables
from r2et.certify import Certifier, HessianCertifier, IntervalCertifier
from r2et.data import Data, load
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients, SmoothGrad
from r2et.models import MLP, smooth
from r2et.region import L2, Linf, NormBall
from r2et.train import fit

ACTIVATIONS: tuple[type[nn.Module], ...] = (
    *(nn.ReLU, nn.LeakyReLU, nn.Softplus, nn.Tanh),
    *(nn.Sigmoid, nn.ELU, nn.SiLU, nn.GELU),
)
# Nineteen, so that every kind meets every explanation and region that a seed chooses.
KINDS = (
    *("mlp", "plane", "odd", "residual", "trained", "branches", "cnn", "plane", "mlp", "trained"),
    *("normed", "binned", "periodic", "ensemble", "gated", "embedded", "attention", "clipped"),
    "pieces",
)
# Whose Hessians are bounded, where their activation is smooth.
SMOOTH_KINDS = (
    "mlp",
    "plane",
    "odd",
    "residual",
    "trained",
    "branches",
    "cnn",
    "normed",
    "periodic",
)
RECIPES = ("certified", "r2et", "vanilla")
ROWS = {
    **{"mlp": 1000, "plane": 1200, "residual": 800, "trained": 1500, "cnn": 100},
    **{"branches": 1000, "odd": 800, "normed": 600, "binned": 800, "periodic": 600, "gated": 600},
    **{"ensemble": 500, "embedded": 600, "attention": 300, "clipped": 800, "pieces": 500},
}


Certified: TypeAlias = Gradient | GradientTimesInput | IntegratedGradients | SmoothGrad


class Draw:
    """Whole numbers and choices that a seed fixes."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=self.generator))

    def one_of(self, *values: object) -> object:
        return values[self(0, len(values) - 1)]


@dataclass(frozen=True)
class Case:
    """A network, what is explained of it, and who certifies it at which rows."""

    kind: str
    title: str
    model: nn.Module
    x: Tensor
    k: int
    explainer: Certified
    certifier: IntervalCertifier
    region: NormBall  # of radius 1: what distances are measured in
    also: Certifier | None  # Prop. 4.5, where the network is smooth


class Residual(nn.Module):
    """x + f(x) twice around the same layers' shapes, with BatchNorm that has seen other rows."""

    def __init__(self, features: int, width: int, classes: int, layer: type[nn.Module]) -> None:
        super().__init__()
        self.into = nn.Linear(features, width)
        self.norms = nn.ModuleList([nn.BatchNorm1d(width), nn.BatchNorm1d(width, affine=False)])
        self.middle = nn.Linear(width, width, bias=False)
        self.layer = layer()
        self.out = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        z = self.into(x)
        for norm in self.norms:
            z = z + 0.5 * self.middle(self.layer(norm(z)))
        out: Tensor = self.out(self.layer(z))
        return out


class Branches(nn.Module):
    """Many first layers added up, as an ensemble has them, beside a steep smooth hinge."""

    def __init__(self, features: int, width: int, classes: int, layer: type[nn.Module]) -> None:
        super().__init__()
        self.first = nn.ModuleList(nn.Linear(features, width) for _ in range(12))
        self.layer = layer()
        self.steep = smooth(nn.Sequential(nn.Linear(features, width), nn.LeakyReLU(20.0)), 2.0)
        self.out, self.last = nn.Linear(width, classes), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        z = self.first[0](x)
        for branch in self.first[1:]:
            z = z + branch(x)
        out: Tensor = self.out(self.layer(z)) + self.last(self.steep(x) / 20)
        return out


class HalfGradient(torch.autograd.Function):
    """tanh, whose backward pass gives half of its gradient."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        out = torch.tanh(z)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        return 0.5 * gradient * (1 - out * out)


class Odd(nn.Module):
    """Gates, slices, repeated numbers, a transpose, a function with a backward pass of its own, a
    branch without a gradient, a hook: what only a trace of the backward pass shows.
    """

    def __init__(self, features: int, width: int, classes: int, layer: type[nn.Module]) -> None:
        super().__init__()
        self.first, self.gate = nn.Linear(features, 2 * width), nn.Linear(features, width)
        self.copies = nn.Linear(6, width)
        self.layer, self.width = layer(), width
        self.middle, self.out = nn.Linear(width, 2 * width), nn.Linear(2 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        z = self.layer(a[:, : self.width]) * torch.sigmoid(self.gate(x))
        z = z + 0.3 * HalfGradient.apply(a[:, self.width :])  # type: ignore[no-untyped-call]
        pair = x[:, :2].unsqueeze(2).expand(-1, -1, 3).flatten(1)
        z = z + 0.2 * self.layer(self.copies(pair))
        with torch.no_grad():
            aside = torch.tanh(a[:, : self.width])
        z = self.middle(z - 0.1 * aside).view(-1, 2, self.width).transpose(1, 2).reshape(len(x), -1)
        if z.requires_grad:
            z.register_hook(lambda gradient: 1.5 * gradient)
        out: Tensor = self.out(self.layer(z))
        return out


def cnn(draw: Draw, layer: type[nn.Module]) -> tuple[nn.Module, tuple[int, ...]]:
    """Strides, paddings, dilations, groups and pools, all small."""
    channels, size = draw(1, 2), draw(4, 5)
    wide, groups = 2 * draw(1, 2), draw(1, 2)
    first = nn.Conv2d(channels, wide, 3, padding=draw(0, 1), bias=bool(draw(0, 1)))
    second = nn.Conv2d(wide, wide, 2, padding=1, dilation=draw(1, 2), groups=groups)
    pool = draw.one_of(
        nn.MaxPool2d(2), nn.AvgPool2d(2, 1), nn.AvgPool2d(2, padding=1), nn.AdaptiveAvgPool2d(2)
    )
    assert isinstance(pool, nn.Module)
    body = nn.Sequential(first, layer(), nn.BatchNorm2d(wide), second, layer(), pool, nn.Flatten())
    shape = (channels, size, size)
    features = body.eval()(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(*body, nn.Linear(features, draw(2, 4))), shape


@cache
def data(name: str) -> Data:
    return load(name)


def trained(draw: Draw, seed: int, layer: type[nn.Module]) -> tuple[str, nn.Module, Tensor]:
    """A few epochs of a recipe on a table."""
    table = data(("compas", "bank", "adult")[seed // 5 % 3])
    name = {nn.LeakyReLU: "leaky_relu"}.get(layer, layer.__name__.lower())
    widths = (32,) if draw(0, 1) else (16, 16)
    recipe = RECIPES[seed // 10 % 3]
    model = MLP(len(table.names), widths, activation=name)
    radius = (0.1, 0.3)[draw(0, 1)]
    found = fit(model, table, recipe, k=8, radius=radius, epochs=2, seed=seed, progress=False)
    start = draw(0, max(0, len(table.test.x) - ROWS["trained"]))
    return f"{recipe}, {table.name}", found.model, table.test.x[start : start + ROWS["trained"]]


def table(
    draw: Draw, kind: str, features: int, classes: int, layer: type[nn.Module]
) -> tuple[nn.Module, int]:
    """A network for tables, and how many features it takes."""
    few = min(features, 12)
    if kind == "normed":
        return tables.LayerNormMLP(few, draw(4, 16), layer, classes), few
    if kind == "binned":
        numbers = max(2, few // 2)
        others = few - numbers
        return tables.PiecewiseLinear(numbers, others, draw(2, 6), draw(6, 16), classes), few
    if kind == "periodic":
        layers: dict[int, type[nn.Module]] = {0: nn.SELU, 1: nn.Mish}
        return tables.RealMLP(layers.get(draw(0, 2), layer), few, classes), few
    if kind == "gated":
        return tables.GatedResidual(few, draw(4, 10), classes), few
    if kind == "embedded":
        return tables.Embeddings((4, 3, 5), draw(6, 16), classes), 6
    if kind == "attention":
        return tables.Attention(min(few, 6), draw(3, 5), classes), min(few, 6)
    if kind == "clipped":
        return tables.Clipped(few, classes), few
    if kind == "pieces":
        return tables.Pieces(few, classes), few
    mean = draw.one_of("logits", "held above 0", "log")
    members = draw(2, 5)
    if mean == "logits" and draw(0, 1):
        return tables.EinsumEnsemble(members, few, draw(4, 8), classes), few
    return tables.Ensemble(str(mean), few, members, draw(4, 8), max(2, classes)), few


def case(seed: int) -> Case:
    """All choices made by the seed alone."""
    draw, kind = Draw(seed), KINDS[seed % len(KINDS)]
    torch.manual_seed(seed)
    layer = ACTIVATIONS[(seed + seed // 10) % len(ACTIVATIONS)]
    classes, count = draw(1, 4), ROWS[kind]
    title, shape = layer.__name__, (draw(2, 3) if kind == "plane" else draw(4, 50),)
    if kind == "trained":
        which, model, x = trained(draw, seed, layer)
        title = f"{title}, {which}"
    else:
        if kind == "cnn":
            model, shape = cnn(draw, layer)
        elif kind == "residual":
            model = Residual(shape[0], draw(4, 16), classes, layer)
        elif kind == "odd":
            model = Odd(shape[0], draw(4, 8), classes, layer)
        elif kind == "branches":
            model = Branches(shape[0], draw(4, 8), classes, layer)
        elif kind in ("mlp", "plane"):
            model = mlp(draw, shape[0], classes, layer)
        else:
            model, features = table(draw, kind, shape[0], classes, layer)
            shape = (features,)
        _stir(model, draw)
        x = torch.randn(count, *shape, generator=draw.generator)
        if kind == "embedded":
            # The middle of a category's cell, so that it may move a little.
            x[:, 3:] = torch.randint(3, (count, 3), generator=draw.generator) + 0.5
    if seed % 11 == 10:
        model, x = model.double(), x.double()
    model = model.eval().requires_grad_(False)
    explainer, region, scores = explained(draw, seed, x), moved(draw, seed, x), x[0].numel()
    if kind == "embedded":
        explainer, region = _standing(draw, x, explainer, region)
    if explainer.groups is not None:
        scores = scores - sum(len(group) - 1 for group in explainer.groups)
    plain = region.scale is None and region.bounds is None and not region.frozen
    certifier = IntervalCertifier(
        norm="linf" if isinstance(region, Linf) else "l2",
        region=None if plain else region,
        limit=3.0,
        relaxation="interval" if seed % 9 == 8 else "auto",
        splits=8 if seed % 7 == 3 and kind != "cnn" else None,
    )
    smooth_layer = layer in (nn.Softplus, nn.Tanh, nn.Sigmoid, nn.ELU, nn.SiLU, nn.GELU)
    pooled = any(isinstance(part, nn.MaxPool2d) for part in model.modules())
    also = None
    if (
        kind in SMOOTH_KINDS
        and smooth_layer
        and not pooled
        and x[0].numel() <= 20
        and plain
        and seed % 3 == 0
    ):
        also = HessianCertifier(norm=certifier.norm, limit=3.0)
    k = draw(1, scores - 1)
    if kind == "embedded":  # of the others the gradient is 0: they tie
        k = min(k, 3)
    return Case(kind, title, model, x, k, explainer, certifier, region, also)


def explained(draw: Draw, seed: int, x: Tensor) -> Certified:
    """The gradient for every third seed, else anything that is certified, of columns or not."""
    reduce: Any = "signed" if draw(0, 2) == 0 else "abs"
    of: Any = draw.one_of("log_odds", "log_odds", "logit", "probability", "loss")
    n = x[0].numel()
    if seed % 3 == 0:
        return Gradient(reduce=reduce, of=of)
    groups = None
    if draw(0, 1) and n > 3:  # columns of two and three features, some on their own
        order = torch.randperm(n, generator=draw.generator).tolist()
        size = draw(2, 3)
        groups = [order[i : i + size] for i in range(0, n - 2, 2 * size) if i + size <= n - 1]
    settings: dict[str, Any] = {"reduce": reduce, "groups": groups or None}
    # Features of 0 have no contribution from a baseline of 0, and tie.
    centred = bool(draw(0, 1)) or bool((x == 0).any())
    baseline: Any = x.double().flatten(1).mean(0).tolist() if centred else 0.0
    several: Any = "logit" if of == "logit" else "log_odds"
    kind = seed // 3 % 4
    if kind == 0:
        return Gradient(of=of, **settings)
    if kind == 1:
        return GradientTimesInput(of=of, baseline=baseline, **settings)
    if kind == 2:
        rule: Any = draw.one_of("midpoint", "gauss_legendre", "trapezoid", "left")
        points = draw(2, 5)
        return IntegratedGradients(
            of=several, baseline=baseline, points=points, rule=rule, **settings
        )
    sigma = (0.01, 0.1, 0.5)[draw(0, 2)]
    return SmoothGrad(of=several, samples=draw(2, 4), sigma=sigma, seed=seed, **settings)


def moved(draw: Draw, seed: int, x: Tensor) -> NormBall:
    """A plain ball for two seeds of four, else one with scales, frozen features and bounds."""
    ball = Linf if draw(0, 2) == 0 else L2
    if seed % 4 < 2:
        return ball(1.0)
    n = x[0].numel()
    scale = (0.3 + 1.7 * torch.rand(n, generator=draw.generator, dtype=torch.float64)).tolist()
    frozen = [i for i in range(n) if draw(0, 5) == 0][: n - 1]
    flat = x.flatten(1)
    bounds = (flat.amin(0).tolist(), flat.amax(0).tolist()) if seed % 4 == 3 else None
    return ball(1.0, scale=scale, frozen=frozen, bounds=bounds)


def _standing(
    draw: Draw, x: Tensor, explainer: Certified, region: NormBall
) -> tuple[Certified, NormBall]:
    """An explanation at x alone; columns of categories that stand still, or cells to move in."""
    if not explainer.as_sum(x).at_x_alone:
        shared = {n: getattr(explainer, n) for n in ("reduce", "of", "groups")}
        explainer = Gradient(**shared)
    if draw(0, 1):
        x[:, 3:] -= 0.5  # whole numbers
        region = replace(region, bounds=None, frozen=sorted({*region.frozen, 3, 4, 5}))
    return explainer, region


def mlp(draw: Draw, features: int, classes: int, layer: type[nn.Module]) -> nn.Module:
    """1 to 4 hidden layers of 4 to 24 units."""
    sizes = [features, *(draw(4, 24) for _ in range(draw(1, 4)))]
    parts: list[nn.Module] = []
    for a, b in pairwise(sizes):
        parts += [nn.Linear(a, b, bias=draw(0, 4) > 0), layer()]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], classes))


def _stir(model: nn.Module, draw: Draw) -> None:
    """Weights of any size up to three times the usual, and statistics of other rows."""
    for part in model.modules():
        for name, tensor in (*part.named_parameters(recurse=False), *part.named_buffers()):
            if name.endswith("running_mean"):
                tensor.normal_(generator=draw.generator)
            elif name.endswith("running_var"):
                tensor.uniform_(0.3, 3.0, generator=draw.generator)
            elif tensor.is_floating_point():
                tensor.data *= 1 + 2 * float(torch.rand(1, generator=draw.generator))
