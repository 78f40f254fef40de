"""Piecewise-linear functions as sums of ReLUs, and their smooth versions."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

# Where softplus goes over into x itself: exp(-40) is below half an ulp of 40, in float64 too.
LINEAR_ABOVE = 40.0


def softplus(x: Tensor, rho: float) -> Tensor:
    """log(1 + exp(rho x)) / rho: above relu(x) by at most log(2) / rho, at x = 0."""
    return F.softplus(x, beta=rho, threshold=LINEAR_ABOVE)


@dataclass(frozen=True)
class Hinge:
    """y = offset + slope x + sum of weight * relu(x - kink); times x when gated.

    kinks: (weight, kink) pairs. Every continuous piecewise-linear function has this form.
    """

    kinks: tuple[tuple[float, float], ...]
    slope: float = 0.0
    offset: float = 0.0
    gated: bool = False

    def smooth(self, x: Tensor, rho: float) -> Tensor:
        """The same with softplus_rho for relu; off by at most sum of |weight| * log(2) / rho."""
        # Most have one kink, at 0, of weight 1, and no more: nothing is computed for what is 0.
        out = self.slope * x + self.offset if self.slope or self.offset else None
        for weight, kink in self.kinks:
            part = softplus(x - kink if kink else x, rho)
            part = part if weight == 1 else weight * part
            out = part if out is None else out + part
        assert out is not None
        return out * x if self.gated else out


def relu() -> Hinge:
    return Hinge(((1.0, 0.0),))


def leaky(slope: float) -> Hinge:
    return Hinge(((1.0 - slope, 0.0),), slope=slope)


def clip(low: float, high: float) -> Hinge:
    """min(max(x, low), high), which is Hardtanh, and ReLU6 for 0 and 6."""
    return Hinge(((1.0, low), (-1.0, high)), offset=low)


def floor(low: float) -> Hinge:
    """max(x, low)."""
    return Hinge(((1.0, low),), offset=low)


def hard_sigmoid(*, gated: bool = False) -> Hinge:
    """clip(x + 3, 0, 6) / 6; times x it is Hardswish."""
    return Hinge(((1 / 6, -3.0), (-1 / 6, 3.0)), gated=gated)


def soft_shrink(size: float) -> Hinge:
    """x moved towards 0 by size, and 0 within it."""
    return Hinge(((1.0, size), (-1.0, -size)), slope=1.0, offset=size)


class SoftHinge(nn.Module):
    """A Hinge with softplus_rho for relu; in place where the original was."""

    def __init__(self, hinge: Hinge, rho: float, *, inplace: bool = False) -> None:
        super().__init__()
        self.hinge = hinge
        self.rho = rho
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        if self.inplace:
            return overwrite(x, self.hinge.smooth(x.clone(), self.rho))
        return self.hinge.smooth(x, self.rho)

    def extra_repr(self) -> str:
        return f"{self.hinge}, rho={self.rho}, inplace={self.inplace}"


class SoftMagnitude(nn.Module):
    """x tanh(rho x / 2) for |x|: 0 at 0, never above |x|, and off by at most 0.56 / rho.

    The sum of two softplus would be off by 2 log(2) / rho either at 0 or everywhere else, and a
    degree adds that up over all edges that are not there.
    """

    def __init__(self, rho: float) -> None:
        super().__init__()
        self.rho = rho

    def forward(self, x: Tensor) -> Tensor:
        return x * (x * (self.rho / 2)).tanh()

    def extra_repr(self) -> str:
        return f"rho={self.rho}"


class SoftPReLU(nn.Module):
    """w x + (1 - w) softplus_rho(x), with the learned slopes w of a PReLU, one or one a channel."""

    def __init__(self, weight: nn.Parameter, rho: float) -> None:
        super().__init__()
        self.weight = weight
        self.rho = rho

    def forward(self, x: Tensor) -> Tensor:
        return soft_prelu(x, self.weight, self.rho)

    def extra_repr(self) -> str:
        return f"num_parameters={self.weight.numel()}, rho={self.rho}"


def soft_prelu(x: Tensor, weight: Tensor, rho: float) -> Tensor:
    """PReLU with softplus_rho for relu; x: (B, C, ...), weight: (C,) or (1,)."""
    slope = weight.view(-1, *[1] * (x.ndim - 2)) if weight.numel() > 1 else weight
    return slope * x + (1 - slope) * softplus(x, rho)


def overwrite(x: Tensor, new: Tensor) -> Tensor:
    """Put new values into x, which others may hold: what follows an in-place ReLU sees them.

    new must come from a clone of x, or x would no longer be what its derivative was taken at.
    """
    return x.copy_(new)


def rho_of(model: nn.Module) -> float | None:
    """The rho of a smooth copy, None for any other network."""
    for module in model.modules():
        if isinstance(module, nn.Softplus) and module.threshold == LINEAR_ABOVE:
            return float(module.beta)
        rho = getattr(module, "rho", None)
        if isinstance(rho, float):
            return rho
    return None
