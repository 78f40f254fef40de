"""What a network that starts at a logistic regression must not be clearly below: that itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from r2et.metrics import auc_of_logits
from r2et.models import HingeMLP
from r2et.models.output import batched_logits
from r2et.models.weights import copied_weights
from r2et.train.loop import Loop
from r2et.train.trial_measures import auc_drop

WARNING = "fit: the trained network is clearly below the logistic regression that it starts at"


def linear_weights(network: nn.Module) -> dict[str, Tensor] | None:
    """Weights of a HingeMLP whose hidden units are silent: the linear function it starts at.

    Its gradient is the same everywhere, so that every top k is proved. None for other networks.
    """
    if not isinstance(network, HingeMLP):
        return None
    weights = copied_weights(network)
    silent = {"last.weight", "last.bias"}
    return {n: torch.zeros_like(w) if n in silent else w for n, w in weights.items()}


def keep_above(loop: Loop, linear: dict[str, Tensor]) -> bool:
    """Keep the linear function, as epoch 0, where what the loop kept is clearly below it.

    Clearly: the 95 % interval of the difference of their validation AUCs leaves out 0.
    """
    model, val = loop.model, loop.data.val
    y = val.y.cpu()
    if len(torch.unique(y)) < 2:
        return False
    logits = []
    for weights in (linear, loop.kept):
        model.load_state_dict(weights)
        logits.append(batched_logits(model, val.x))
    drop, half_width = auc_drop(logits[0], logits[1], y)
    if drop <= half_width:
        return False
    reached, auc = (auc_of_logits(out, y) for out in reversed(logits))
    loop.kept, loop.state.kept_epoch, loop.state.kept_auc = linear, 0, auc
    warnings.warn(
        f"{WARNING}, by validation AUC {reached:.4f} to {auc:.4f}: that is what is kept. Its "
        "explanations never move, and are the same for everybody.",
        stacklevel=3,
    )
    return True


@contextmanager
def without_warning() -> Iterator[None]:
    """For trainings that nobody is given."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=WARNING)
        yield
