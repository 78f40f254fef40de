"""The curves of activations: each with its derivatives, its turning points and its rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from r2et.certify.operators.curve import Curve, Function


def piecewise(slope: float) -> Curve:
    """z for z > 0, slope * z otherwise: ReLU for slope 0."""

    def first(z: Tensor) -> Tensor:
        return torch.where(z > 0, z.new_tensor(1.0), z.new_tensor(slope))

    return Curve(
        "relu" if slope == 0 else "leaky_relu",
        (lambda z: F.leaky_relu(z, slope), first, torch.zeros_like, torch.zeros_like),
        ((0.0,) if slope < 0 else (), (), (), ()),
        kink=0.0,
        left=(0.0, slope, 0.0, 0.0),
        right=(0.0, 1.0, 0.0, 0.0),
        derivative_ulps=0.0 if slope == 0 else abs(slope),
        piecewise_linear=True,
    )


def softplus(
    beta: float = 1.0, weight: float = 1.0, slope: float = 0.0, threshold: float = 40.0
) -> Curve:
    """slope z + weight log(1 + exp(beta z)) / beta; torch takes z itself for beta z > threshold."""

    def s(z: Tensor) -> Tensor:
        return torch.sigmoid(beta * z)

    def bend(z: Tensor) -> Tensor:
        p = s(z)
        return weight * beta * p * (1 - p)

    def third(z: Tensor) -> Tensor:
        p = s(z)
        return weight * beta**2 * p * (1 - p) * (1 - 2 * p)

    value_turns: tuple[float, ...] = ()
    if slope and weight and 0 < -slope / weight < 1:
        share = -slope / weight
        value_turns = (math.log(share / (1 - share)) / beta,)
    inflection = math.log(2 + math.sqrt(3)) / beta
    return Curve(
        "softplus",
        (
            lambda z: slope * z + weight * F.softplus(z, beta=beta, threshold=40.0),
            lambda z: slope + weight * s(z),
            bend,
            third,
        ),
        (value_turns, (), (0.0,), (-inflection, inflection)),
        # Both terms may be large where their sum is not.
        derivative_ulps=8.0 * (1 + abs(slope) + abs(weight)) * max(1.0, 1 / beta),
        value_terms=1 + abs(slope) + abs(weight),
        formula_jump=abs(weight) * math.exp(-threshold) * max(1.0, 1 / beta),
    )


def tanh() -> Curve:
    def third(z: Tensor) -> Tensor:
        t2 = torch.tanh(z).square()
        return (1 - t2) * (6 * t2 - 2)

    bend = math.atanh(math.sqrt(1 / 3))
    outer = math.atanh(math.sqrt(2 / 3))
    return Curve(
        "tanh",
        (
            torch.tanh,
            lambda z: 1 - torch.tanh(z).square(),
            lambda z: -2 * torch.tanh(z) * (1 - torch.tanh(z).square()),
            third,
        ),
        ((), (0.0,), (-bend, bend), (-outer, 0.0, outer)),
    )


def sigmoid() -> Curve:
    def bend(z: Tensor) -> Tensor:
        p = torch.sigmoid(z)
        return p * (1 - p) * (1 - 2 * p)

    def third(z: Tensor) -> Tensor:
        p = torch.sigmoid(z)
        return p * (1 - p) * (1 - 6 * p + 6 * p * p)

    inner = math.log(2 + math.sqrt(3))
    share = (1 + math.sqrt(2 / 3)) / 2  # a root of 1 - 12 p + 12 p^2
    outer = math.log(share / (1 - share))
    return Curve(
        "sigmoid",
        (torch.sigmoid, lambda z: torch.sigmoid(z) * torch.sigmoid(-z), bend, third),
        ((), (0.0,), (-inner, inner), (-outer, 0.0, outer)),
    )


def elu(alpha: float, scale: float = 1.0, rate: float = 1.0) -> Curve:
    """scale times: z for z > 0, alpha (exp(rate z) - 1) otherwise; SELU and CELU are such."""

    def tail(z: Tensor, order: int) -> Tensor:
        return scale * alpha * rate**order * (rate * z.clamp(max=0.0)).exp()

    left = [scale * alpha * rate**order for order in (1, 2, 3)]
    return Curve(
        "elu",
        (
            lambda z: scale * torch.where(z > 0, z, alpha * torch.expm1(rate * z.clamp(max=0.0))),
            lambda z: torch.where(z > 0, scale, tail(z, 1)),
            lambda z: torch.where(z > 0, 0.0, tail(z, 2)),
            lambda z: torch.where(z > 0, 0.0, tail(z, 3)),
        ),
        ((0.0,) if alpha * rate < 0 else (), (), (), ()),
        kink=0.0,
        left=(0.0, *left),
        right=(0.0, scale, 0.0, 0.0),
        # In place, the derivative is what it made of z, plus alpha.
        derivative_ulps=8.0 * abs(scale) * max(1.0, abs(alpha * rate), abs(rate)),
        value_terms=max(1.0, abs(scale), abs(scale * alpha * rate)),
    )


def silu() -> Curve:
    def parts(z: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.sigmoid(z)
        return p, p * torch.sigmoid(-z)

    def first(z: Tensor) -> Tensor:
        p, q = parts(z)
        return p + z * q

    def second(z: Tensor) -> Tensor:
        p, q = parts(z)
        return q * (2 + z * (1 - 2 * p))

    def third(z: Tensor) -> Tensor:
        p, q = parts(z)
        return q * (3 * (1 - 2 * p) + z * (1 - 6 * q))

    def fourth(z: Tensor) -> Tensor:
        p, q = parts(z)
        return q * (4 * (1 - 6 * q) + z * (1 - 2 * p) * (1 - 12 * q))

    curves = (F.silu, first, second, third)
    turns = tuple(roots(f) for f in (first, second, third, fourth))
    return Curve("silu", curves, turns, derivative_ulps_per_z=8.0)


def gelu(approximate: str = "none") -> Curve:
    """z Phi(z), or its approximation by tanh."""
    if approximate == "tanh":
        return _tanh_gelu()

    def normal(z: Tensor) -> Tensor:
        return torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def cumulative(z: Tensor) -> Tensor:
        share: Tensor = torch.special.ndtr(z)
        return share

    def first(z: Tensor) -> Tensor:
        return cumulative(z) + z * normal(z)

    def second(z: Tensor) -> Tensor:
        return (2 - z * z) * normal(z)

    def third(z: Tensor) -> Tensor:
        return (z**3 - 4 * z) * normal(z)

    def fourth(z: Tensor) -> Tensor:
        return (-(z**4) + 7 * z * z - 4) * normal(z)

    curves = (lambda z: z * cumulative(z), first, second, third)
    turns = tuple(roots(f) for f in (first, second, third, fourth))
    return Curve("gelu", curves, turns, derivative_ulps_per_z=8.0)


def _tanh_gelu() -> Curve:
    root = math.sqrt(2 / math.pi)

    def parts(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """t = tanh(v), v', v'', 1 - t^2 for v = root (z + 0.044715 z^3)."""
        t = torch.tanh(root * (z + 0.044715 * z**3))
        return t, root * (1 + 3 * 0.044715 * z * z), root * 6 * 0.044715 * z, 1 - t * t

    third_v = root * 6 * 0.044715

    def tanh_derivatives(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        t, v1, v2, q = parts(z)
        first = q * v1
        second = q * (v2 - 2 * t * v1**2)
        third = q * (third_v - 6 * t * v1 * v2 + (6 * t * t - 2) * v1**3)
        return t, first, second, third

    def value(z: Tensor) -> Tensor:
        return F.gelu(z, approximate="tanh")

    def first(z: Tensor) -> Tensor:
        t, t1, _, _ = tanh_derivatives(z)
        return (1 + t + z * t1) / 2

    def second(z: Tensor) -> Tensor:
        _, t1, t2, _ = tanh_derivatives(z)
        return t1 + z * t2 / 2

    def third(z: Tensor) -> Tensor:
        _, _, t2, t3 = tanh_derivatives(z)
        return (3 * t2 + z * t3) / 2

    def fourth(z: Tensor) -> Tensor:
        with torch.enable_grad():
            point = z.detach().requires_grad_()
            slope: Tensor = torch.autograd.grad(third(point).sum(), point)[0]
        return slope

    turns = tuple(roots(f) for f in (first, second, third, fourth))
    return Curve("gelu", (value, first, second, third), turns, derivative_ulps_per_z=8.0)


def mish() -> Curve:
    """z tanh(softplus(z))."""

    def first(z: Tensor) -> Tensor:
        t = torch.tanh(F.softplus(z, threshold=40.0))
        return t + z * (1 - t * t) * torch.sigmoid(z)

    second = _slope_of(first)
    third = _slope_of(second)
    turns = tuple(roots(f) for f in (first, second, third, _slope_of(third)))
    return Curve("mish", (F.mish, first, second, third), turns, derivative_ulps_per_z=16.0)


def _slope_of(curve: Function) -> Function:
    """The derivative, by automatic differentiation, itself differentiable."""

    def slope(z: Tensor) -> Tensor:
        with torch.enable_grad():
            point = z if z.requires_grad else z.detach().requires_grad_()
            value = curve(point)
            (made,) = torch.autograd.grad(value.sum(), point, create_graph=True)
        return made if z.requires_grad else made.detach()

    return slope


def roots(curve: Function, reach: float = 12.0, steps: int = 24001) -> tuple[float, ...]:
    """Where a curve changes sign within -reach..reach, by bisection from a grid."""
    grid = torch.linspace(-reach, reach, steps, dtype=torch.float64) + 1.23e-5
    sign = curve(grid).sign()
    change = (sign[:-1] * sign[1:] < 0).nonzero().flatten()
    low, high = grid[change], grid[change + 1]
    start = curve(low).sign()
    for _ in range(60):
        middle = (low + high) / 2
        same = curve(middle).sign() == start
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return tuple(((low + high) / 2).tolist())


CURVES: dict[str, Callable[..., Curve]] = {
    "relu": piecewise,
    "leaky_relu": piecewise,
    "softplus": softplus,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "elu": elu,
    "silu": silu,
    "gelu": gelu,
    "mish": mish,
}


@cache
def curve(name: str, *settings: float | str) -> Curve:
    """One of CURVES, made once for each of its settings."""
    return replace(CURVES[name](*settings), settings=settings)
