"""Loss and penalty of one batch, in one forward pass where that is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from r2et.penalty import Penalty
from r2et.penalty.adversarial import row_losses
from r2et.train.distributed import Distributed
from r2et.train.recipe import Recipe

TRIALS = 4  # passes in train mode, in which what is random shows itself


class Terms(NamedTuple):
    """What one batch adds up to: the total to go down, and its parts, as numbers."""

    total: Tensor
    loss: Tensor
    penalty: Tensor | None


class TrainingStep(nn.Module):
    """A model together with its recipe: (batch) -> Terms.

    A module, since data-parallel training sees only what happens inside a module's forward.
    """

    def __init__(
        self, model: nn.Module, recipe: Recipe, distributed: Distributed, shared: bool
    ) -> None:
        super().__init__()
        self.model, self.recipe, self.distributed, self.shared = model, recipe, distributed, shared

    def forward(
        self,
        x: Tensor,
        y: Tensor,
        share: float,
        penalised: bool,
        warmth: float,
        radius: float | None,
        order: Tensor | None,
        noise: Tensor | None,
        weights: Tensor | None = None,
        shares: Tensor | None = None,
    ) -> Terms:
        """share: this process's part of the batch, times the number of processes.

        warmth: a factor of the penalty's weight. radius: in the place of the penalty's own.
        weights: (B,) what each row counts for in the loss, 1 on average over all training rows.
        shares: (B, C) what the loss takes for true in the place of y: how likely each class is.
        """
        recipe = self.recipe
        penalty = self._penalty(radius) if penalised else None
        shared = penalty is not None and self.shared
        x = x.requires_grad_() if shared else x
        out = self.model(x.clone() if shared else x)  # a copy: it may begin by working in place
        true = y if shares is None else shares
        if weights is None:
            loss = row_losses(out[:, None] if out.ndim == 1 else out, true, "mean")
        else:
            loss = (weights * row_losses(out[:, None] if out.ndim == 1 else out, true)).mean()
        loss = share * loss if share != 1 else loss
        kept = recipe.loss_weight * loss if recipe.active and recipe.loss_weight != 1 else loss
        if penalty is None or not bool(loss.detach().isfinite()):
            return Terms(kept, loss.detach(), None)
        target = y if penalty.of_labels else None
        rows = penalty(self.model, x, target, out=out if shared else None, order=order, noise=noise)
        value = share * rows.mean() if share != 1 else rows.mean()
        assert recipe.weight is not None  # a prepared recipe's never is
        weight = recipe.weight * recipe.every * warmth
        if recipe.adaptive:
            weight = weight * self._balance(loss, value)
        return Terms(kept + weight * value, loss.detach(), value.detach())

    def _penalty(self, radius: float | None) -> Penalty:
        penalty = self.recipe.penalty
        assert penalty is not None
        return penalty if radius is None else replace(penalty, radius=radius)  # type: ignore[call-arg]

    def _balance(self, loss: Tensor, penalty: Tensor) -> float:
        """|(loss + 1) / penalty| of the whole batch, a constant (the authors' adaptive weight)."""
        both = self.distributed.mean(torch.stack([loss.detach(), penalty.detach()]))
        loss_now, penalty_now = (float(v) for v in both)
        return abs((loss_now + 1) / penalty_now) if penalty_now else 0.0


def resting_modules(model: nn.Module, retrain: bool) -> list[nn.Module]:
    """Parts of a network that stay in eval mode while it trains.

    What the caller holds in eval mode inside a network that trains; and, of a retraining, batch
    normalisation: rankings are those of the deployed network, with the statistics that it has. A
    loss that goes by each batch's own would let a penalty ruin the deployed network unseen.
    """
    held = [m for m in model.modules() if model.training and not m.training]
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    return held + [m for m in norms if retrain and m not in held]


def alike_in_both_modes(model: nn.Module, x: Tensor, resting: Sequence[nn.Module] = ()) -> bool:
    """Whether train and eval mode give the same output at x, so that one pass can serve both.

    Dropout and batch normalisation do not, unless they are among those that rest in eval mode.
    Leaves no trace: not in x, buffers, random numbers.
    """
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    modes = [(module, module.training) for module in model.modules()]
    devices = [x.device] if x.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        try:
            deployed = model.eval()(x.clone())
            model.train()
            for module in resting:
                module.training = False
            trained = [model(x.clone()) for _ in range(TRIALS)]
        finally:
            for module, mode in modes:
                module.training = mode
            for name, value in model.named_buffers():
                value.copy_(buffers[name])
    return all(torch.equal(one, deployed) for one in trained)
