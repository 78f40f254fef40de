"""What every penalty is: frozen settings that turn a model and a batch into one number per row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from r2et.checks import check_k, check_model_input
from r2et.config import Configurable
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.models.output import target_rows, undisturbed
from r2et.penalty.explained_batch import ExplainedBatch


@dataclass(frozen=True, kw_only=True)
class Penalty(Configurable, ABC):
    """What to add to a loss: model, x (B, ...) -> (B,), differentiable in the model's weights.

    Args:
        explainer: the explanation that is to hold still. The papers', and the default, is the
            gradient of the class's probability; its curvature does not vanish on piecewise-linear
            networks.
    """

    explainer: Explainer = field(default=Gradient(of="probability"))

    # Whether `target` means the true classes, as in a loss, rather than the explained ones.
    of_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        where = type(self).__name__
        is_valid = isinstance(self.explainer, Explainer) and self.explainer.differentiable
        require(is_valid, where, "explainer", "an Explainer that has a graph", self.explainer)

    @property
    def usual_weight(self) -> float | None:
        """What to multiply it by beside a cross entropy, where that follows from its settings."""
        return None

    @property
    def random(self) -> bool:
        """Whether rows need random directions: see `noise`."""
        return False

    @property
    def of_reasons(self) -> bool:
        """Whether it is of contributions of a table's columns, over changes of its rows."""
        return False

    def __call__(
        self,
        model: nn.Module,
        x: Tensor,
        target: Tensor | int | None = None,
        *,
        out: Tensor | None = None,
        order: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Penalty (B,) at x (B, ...).

        Args:
            model: to be trained.
            x: (B, ...) inputs.
            target: (B,) explained classes, by default the predicted ones. Where the penalty is a
                loss, the true classes; the predicted are explained.
            out: the model's logits at x, computed with x requiring a gradient; they spare a forward
                pass, and serve only a model that behaves alike in train and eval mode.
            order: (B, n) the ranking to preserve, by default the model's own at this moment.
            noise: (B, ...) standard normal numbers where the method is random, by default from
                torch's generator.
        """
        where = type(self).__name__
        check_model_input(where, model, x)
        fixed = target_rows(where, target, x)
        for name, given in (("noise", noise), ("order", order), ("out", out)):
            is_valid = given is None or (
                isinstance(given, Tensor) and given.shape[:1] == x.shape[:1]
            )
            require(is_valid, where, name, f"a tensor of {len(x)} rows", given)
        whole = order is None or order.dtype in (torch.int32, torch.int64)
        require(whole, where, "order", "a tensor of whole numbers, int32 or int64", order)
        if out is not None:
            expected = "logits computed from x after x.requires_grad_()"
            require(out.requires_grad and x.requires_grad, where, "out", expected, out)
        as_deployed = undisturbed(model) if out is None else nullcontext()
        with as_deployed, torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            explained, labels = (None, fixed) if self.of_labels else (fixed, None)
            batch = ExplainedBatch(
                where, self.explainer, model, x, explained, out, order, noise, labels
            )
            return self.rows(batch)

    @abstractmethod
    def rows(self, batch: ExplainedBatch) -> Tensor:
        """(B,) from what the batch shows of the model at x."""


@dataclass(frozen=True, kw_only=True)
class RankingPenalty(Penalty):
    """A penalty on the top k of a ranking; settings beside this one are those of Penalty.

    Args:
        k: how many features are to keep their places above the rest.
    """

    k: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = type(self.k) is int and self.k > 0
        require(whole, type(self).__name__, "k", "a positive whole number", self.k)

    def rows(self, batch: ExplainedBatch) -> Tensor:
        check_k(type(self).__name__, self.k, batch.scores.shape[1])
        return self.ranked_rows(batch)

    @abstractmethod
    def ranked_rows(self, batch: ExplainedBatch) -> Tensor:
        """(B,), k known to fit."""


def check_positive(where: str, *, zero: bool = False, **numbers: float) -> None:
    """Settings that are finite numbers above 0, or not below it."""
    for name, value in numbers.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        is_valid = number and math.isfinite(value) and (value > 0 or (zero and value == 0))
        require(is_valid, where, name, "0 or a positive number" if zero else "positive", value)
