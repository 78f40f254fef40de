"""The balls of two norms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.region.norm_ball import NormBall


@dataclass(frozen=True)
class L2(NormBall):
    """The Euclidean ball: ||(x_adv - x) / scale||_2 <= radius.

    Args:
        radius: in units of `scale`.
        bounds: (low, high), each a number or one number per feature; None: no limits.
        frozen: indices of features that stay, as x.flatten(1) numbers them.
        scale: one number per feature, the change that counts as 1; None: 1 for all.
    """

    def _norm(self, move: Tensor) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(move, dim=1)
        return norm

    def _dual(self, slope: Tensor) -> Tensor:
        return slope / self._norm(slope).clamp(min=torch.finfo(slope.dtype).tiny)[:, None]

    def _shrink(self, size: Tensor, room: Tensor | None) -> Tensor:
        if room is None:
            # In float64: the square of a far point overflows in float32.
            norm = self._norm(size.double())[:, None]
            return size * (self.radius / norm.clamp(min=self.radius)).to(size.dtype)
        return torch.minimum(size * _capped_factor(size, room, self.radius), room)

    def _uniform(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        direction = torch.randn(shape, generator=generator, dtype=torch.float64)
        direction /= torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
        share = torch.rand(shape[:-1], generator=generator, dtype=torch.float64)
        return direction * (self.radius * share ** (1 / shape[-1]))[..., None]


@dataclass(frozen=True)
class Linf(NormBall):
    """The box: max |x_adv - x| / scale <= radius; its settings are those of L2."""

    def _norm(self, move: Tensor) -> Tensor:
        return move.abs().amax(dim=1)

    def _dual(self, slope: Tensor) -> Tensor:
        return slope.sign()

    def _shrink(self, size: Tensor, room: Tensor | None) -> Tensor:
        size = size if room is None else torch.minimum(size, room)
        return size.clamp(max=self.radius)

    def _uniform(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        points = torch.rand(shape, generator=generator, dtype=torch.float64)
        return (2 * points - 1) * self.radius


def _capped_factor(size: Tensor, room: Tensor, radius: float) -> Tensor:
    """(B, 1) factor c <= 1 with ||min(c * size, room)|| = radius, or 1 where that norm is smaller.

    The projection onto ball and box shrinks all coordinates alike and stops each at its room
    (Karush-Kuhn-Tucker). The squared norm grows with c and changes its form only where a
    coordinate reaches its room, so sorting those places gives c in closed form.
    """
    a = size.double()
    b = torch.where(a > 0, room.double(), 0.0)
    reach, order = torch.where(a > 0, b / a, math.inf).sort(dim=1)
    stopped = b.gather(1, order).square().cumsum(1)
    moving = a.gather(1, order).square().flip(1).cumsum(1).flip(1)  # this coordinate and later
    later = torch.cat([moving[:, 1:], torch.zeros_like(moving[:, :1])], 1)
    norm2_at = stopped + torch.where(later > 0, reach.square() * later, 0.0)
    count = (norm2_at <= radius**2).sum(1, keepdim=True)  # coordinates that reach their room
    before = torch.cat([torch.zeros_like(stopped[:, :1]), stopped], 1).gather(1, count)
    rest = torch.cat([moving, torch.zeros_like(moving[:, :1])], 1).gather(1, count)
    factor = ((radius**2 - before).clamp(min=0) / rest).sqrt()
    return torch.where(rest > 0, factor, 1.0).clamp(max=1.0).to(size.dtype)
