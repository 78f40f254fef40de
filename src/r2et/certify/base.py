"""What every certifier is, and what it gives: a radius for each row, and what it rests on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn

from r2et.certify.search.bisection import largest_radius
from r2et.config import Configurable
from r2et.errors import InputError, require
from r2et.explain import Explainer


class ReasonProof(NamedTuple):
    """What is proved of each of a row's top k by itself.

    ranked: (B, k) the clean top k, best first.
    stays: radius (A,), rows (A,) -> (A, n) bool, which are proved to stay in the top k.
    limit, tolerance: of the search; a limit of None where there is one region, of radius 1.
    """

    ranked: Tensor
    stays: Callable[[Tensor, Tensor], Tensor]
    limit: float | None
    tolerance: float


class ScoreIntervals(NamedTuple):
    """Proved bounds of signed scores of B rows over a region.

    low, high: (B, n) float64.
    above: (B, n, n) bool, score i stays above score j throughout.
    """

    low: Tensor
    high: Tensor
    above: Tensor

    def joined(self, other: ScoreIntervals) -> ScoreIntervals:
        """Bounds over both of two regions."""
        low, high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        return ScoreIntervals(low, high, self.above & other.above)


@dataclass(frozen=True, eq=False)
class Certificate:
    """radius: (B,) float64: within it, in the certifier's norm, no change of x changes the top k.

    A radius of 0 proves nothing. sound: whether this is a proof; if not, it is an estimate.
    method: how it was found, with the settings. assumptions: what the proof rests on. notes: what
    could not be proved and why, in sentences.
    """

    radius: Tensor
    sound: bool
    method: str
    assumptions: str
    precision: Callable[[float], Tensor] = field(repr=False)
    reasons: ReasonProof | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    def precision_at(self, radius: float) -> Tensor:
        """(B,) proved lower bound of P@k for all changes of this size; 1 within `self.radius`."""
        _check_radius("precision_at", radius)
        return self.precision(radius)

    def stays_at(self, radius: float) -> Tensor:
        """(B, n) bool: which of the clean top k are proved to stay in it for changes of this size.

        False for all that are not in the clean top k.
        """
        _check_radius("stays_at", radius)
        proof = self._reasons("stays_at")
        rows = torch.arange(len(self.radius), device=self.radius.device)
        return proof.stays(torch.full_like(self.radius, radius), rows)

    @cached_property
    def reason_radius(self) -> Tensor:
        """(B, k) float64: up to where each of the clean top k, best first, is proved to stay in it.

        None is below the row's own radius. Searched for when first asked: about k certificates.
        """
        proof = self._reasons("reason_radius")
        count, k = proof.ranked.shape
        row = torch.arange(count, device=self.radius.device).repeat_interleave(k)
        feature = proof.ranked.flatten()

        def proved(radius: Tensor, which: Tensor) -> Tensor:
            # A row once for all of its reasons that are asked of the same radius.
            asked = torch.stack([row[which].double(), radius], 1)
            once, place = torch.unique(asked, dim=0, return_inverse=True)
            stays = proof.stays(once[:, 1].contiguous(), once[:, 0].long())
            return stays[place, feature[which]]

        known = self.radius.repeat_interleave(k)
        if proof.limit is None:
            every = torch.arange(count * k, device=known.device)
            return proved(torch.ones_like(known), every).double().view(count, k)
        # From nothing where the row has no radius of its own.
        radius = largest_radius(proved, count * k, proof.limit, proof.tolerance, known.device)
        return torch.maximum(radius * (1 - 1e-6), known).view(count, k)

    def _reasons(self, where: str) -> ReasonProof:
        if self.reasons is None:
            raise InputError(f"{where}: certificate must be one that knows reasons, got {self}.")
        return self.reasons


def _check_radius(where: str, radius: object) -> None:
    is_valid = isinstance(radius, int | float) and 0 <= radius < math.inf
    require(is_valid, where, "radius", "0 or more and finite", radius)


class Certifier(Configurable, ABC):
    """Looks for the largest ball around each row in which its top k cannot change."""

    @abstractmethod
    def __call__(
        self,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        *,
        k: int,
        target: Tensor | int | None = None,
    ) -> Certificate:
        """Certify the top k of each row of x (B, ...); target: the class explained, everywhere in
        the ball, by default the one predicted at x.
        """
