"""How fast an explanation changes: norms of H(x), the Jacobian of the raw attribution."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import torch
from torch import Tensor

from r2et.errors import require
from r2et.explain import Explainer
from r2et.explain.path_gradients import PathExplainer
from r2et.penalty.base import Penalty, check_positive
from r2et.penalty.explained_batch import ExplainedBatch

By: TypeAlias = Literal["difference", "product"]
FLAT = 0.9  # share of rows without any curvature from which on a penalty is called idle


@final
@dataclass(frozen=True, kw_only=True)
class EstimatedHessian(Penalty):
    """Est-H: ||H(x) v|| along v = sign(I) / ||sign(I)|| (Sec. 4.2, B.1.1).

    Explanations without x's shape (concepts) take a random v.

    Args:
        explainer: the explanation that is to hold still.
        by: "difference", (I(x + step v) - I(x)) / step as in the papers, or "product", an exact
            Hessian-vector product.
        step: the length of the difference.
    """

    by: By = "difference"
    step: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_curvature("EstimatedHessian", self.by, self.step)

    @property
    def random(self) -> bool:
        return draws_direction(self.explainer)

    def rows(self, batch: ExplainedBatch) -> Tensor:
        curvature = along(batch, direction(batch), self.by, self.step)
        warn_if_flat(batch.where, curvature)
        return curvature


@final
@dataclass(frozen=True, kw_only=True)
class ExactHessian(Penalty):
    """Exact-H: the Frobenius norm of H(x); n backward passes, for tables."""

    def rows(self, batch: ExplainedBatch) -> Tensor:
        curvature = safe_norm(jacobian(batch.raw, batch.x))
        warn_if_flat(batch.where, curvature)
        return curvature


@final
@dataclass(frozen=True, kw_only=True)
class SSR(Penalty):
    """SSR: the size of H(x)'s eigenvalue that is largest in size, by power iteration.

    It is ||H v||, which is right for any v in the space of the eigenvalues l and -l, and never too
    large. v is held constant, which leaves the eigenvalue's derivative exact.

    Args:
        explainer: the explanation that is to hold still.
        steps: of the power iteration.
    """

    steps: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = type(self.steps) is int and self.steps > 0
        require(is_valid, "SSR", "steps", "a positive whole number", self.steps)

    def rows(self, batch: ExplainedBatch) -> Tensor:
        # One start for all: a row's eigenvalue does not depend on its batch.
        numbers = torch.Generator().manual_seed(0)
        start = torch.randn(batch.x[0].shape, generator=numbers).to(batch.x)
        v = unit(start.expand_as(batch.x))
        for _ in range(self.steps):
            v = unit(product(batch, v, create_graph=False))
        curvature = safe_norm(product(batch, v))
        warn_if_flat(batch.where, curvature)
        return curvature


def direction(batch: ExplainedBatch) -> Tensor:
    """Unit directions (B, ...): along the signs of the attribution, or random ones."""
    like = batch.raw.detach()
    return unit(like.sign() if like.shape == batch.x.shape else batch.noise)


def draws_direction(explainer: Explainer) -> bool:
    """Whether `direction` may be a random one: only some explanations surely have x's shape."""
    return not isinstance(explainer, PathExplainer)


def along(batch: ExplainedBatch, v: Tensor, by: By, step: float) -> Tensor:
    """||H(x) v|| (B,), by a finite difference of length `step` or by a product."""
    if by == "product":
        return safe_norm(product(batch, v))
    return safe_norm(batch.raw_at(batch.x.detach() + step * v) - batch.raw) / step


def product(batch: ExplainedBatch, v: Tensor, *, create_graph: bool = True) -> Tensor:
    """v' H(x), which is H(x) v for a gradient's symmetric H: (B, ...) -> (B, ...)."""
    same = batch.raw.shape == v.shape
    expected = "one with x's shape for an exact product (or take by='difference')"
    require(same, batch.where, "explainer", expected, type(batch.explainer).__name__)
    # Without a graph to x there is no curvature: a piecewise-linear network's log-odds.
    (hessian_v,) = torch.autograd.grad(
        (batch.raw * v).sum(),
        batch.x,
        create_graph=create_graph,
        retain_graph=True,
        allow_unused=True,
        materialize_grads=True,
    )
    return hessian_v


def jacobian(values: Tensor, x: Tensor) -> Tensor:
    """Derivatives of values (B, ...) by x (B, ...), rows apart: (B, n, n')."""
    flat = values.flatten(1)
    one_each = torch.eye(flat.shape[1], dtype=flat.dtype, device=flat.device)
    (derivatives,) = torch.autograd.grad(
        flat,
        x,
        grad_outputs=one_each[:, None].expand(-1, *flat.shape),
        is_grads_batched=True,
        create_graph=True,
        allow_unused=True,
        materialize_grads=True,
    )
    return derivatives.flatten(2).movedim(0, 1)


def unit(v: Tensor) -> Tensor:
    """Rows (B, ...) scaled to length 1; a row of zeros stays."""
    norm: Tensor = torch.linalg.vector_norm(v.flatten(1), dim=1)
    norm = norm.clamp(min=torch.finfo(v.dtype).tiny)
    return v / norm.view(-1, *[1] * (v.ndim - 1))


def safe_norm(rows: Tensor) -> Tensor:
    """Euclidean norms (B,) of rows (B, ...), with derivative 0 at 0."""
    norm: Tensor = torch.linalg.vector_norm(rows.flatten(1), dim=1)
    return norm


def check_curvature(where: str, by: str, step: float) -> None:
    """The settings of a curvature term."""
    require(by in ("difference", "product"), where, "by", "difference or product", by)
    check_positive(where, step=step)


def warn_if_flat(where: str, curvature: Tensor) -> None:
    """Say so when there is nothing to penalise."""
    if float((curvature.detach() == 0).sum()) >= FLAT * len(curvature):
        warnings.warn(
            f"{where}: the curvature is exactly 0 in {FLAT:.0%} of the rows or more, so the penalty"
            " does nothing. A piecewise-linear network's log-odds has none: explain the probability"
            " (Gradient(of='probability')) or train a smooth network (r2et.models.smooth).",
            stacklevel=5,
        )
