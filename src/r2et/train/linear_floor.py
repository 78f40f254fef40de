"""What a network made for a table must not be clearly below: a logistic regression of its rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn

from r2et.data import Data
from r2et.metrics import auc_of_logits
from r2et.models import MLP, HingeMLP, TableMLP
from r2et.models.output import batched_logits
from r2et.models.weights import copied_weights
from r2et.train.defaults import linear_start
from r2et.train.loop import Loop
from r2et.train.trial_measures import NORMAL, auc_drop, can_tell

WARNING = "fit: the trained network is clearly below a logistic regression of the same rows"
DEAR = 0.01  # of AUC: what the papers let a penalty cost
STRAIGHT_ABOVE_0 = ("leaky_relu", "relu")

Weights: TypeAlias = dict[str, Tensor]


def linear_weights(network: nn.Module, data: Data, weights: Tensor | None) -> Weights | None:
    """Weights with which a network made for a table is a logistic regression of its training rows.

    A HingeMLP and a TableMLP begin at one, and are it where their hidden units are silent. An MLP
    of (leaky) ReLUs is one where a unit for each class is positive for all rows. The gradient is
    the same everywhere, so that every top k of it is proved. None for other networks.
    weights: (rows,) what training rows count for.
    """
    if isinstance(network, HingeMLP | TableMLP):
        last = "last." if isinstance(network, HingeMLP) else f"linears.{len(network.linears) - 1}."
        own = copied_weights(network)
        return {n: torch.zeros_like(w) if n.startswith(last) else w for n, w in own.items()}
    if not isinstance(network, MLP) or network.settings["activation"] not in STRAIGHT_ABOVE_0:
        return None
    classes, widths = network.settings["classes"], network.settings["widths"]
    # A smoothed copy has other activations than its settings say.
    kinks = all(isinstance(m, nn.Linear | nn.LeakyReLU | nn.ReLU) for m in network.layers)
    if not kinks or not widths or min(widths) < classes:
        return None
    start = linear_start(data, classes, weights)
    return _carried(network, start.weight, start.bias)


def _carried(network: MLP, weight: Tensor, bias: Tensor) -> Weights:
    """Weights of an MLP that carry logits weight @ x + bias (classes, n) through its layers.

    Lifted by so much that the units are positive for all features in -1..2, where rows from 0 to 1
    are and far around them; what is added is taken off at the end.
    """
    classes = len(bias)
    lift = float((2 * weight.abs().sum(1) + bias.abs()).max()) + 1.0
    own = {name: torch.zeros_like(w) for name, w in copied_weights(network).items()}
    linears = [name for name, m in network.named_modules() if isinstance(m, nn.Linear)]
    own[f"{linears[0]}.weight"][:classes] = weight.to(own[f"{linears[0]}.weight"])
    own[f"{linears[0]}.bias"][:classes] = (bias + lift).to(own[f"{linears[0]}.bias"])
    for name in linears[1:]:
        own[f"{name}.weight"][:classes, :classes] = torch.eye(classes)
    own[f"{linears[-1]}.bias"][:classes] = -lift
    return own


def keep_above(loop: Loop, linear: Weights) -> bool:
    """Keep the linear function, as epoch 0, where what the loop kept is clearly below it.

    Clearly: the 95 % interval of the difference of their validation AUCs leaves out 0. An MLP does
    not begin at the linear function and has to earn its place: there a drop of more than 0.01 that
    is beyond one standard error is enough. Never where the validation rows are too few to tell.
    """
    model, val = loop.model, loop.data.val
    y = val.y.cpu()
    if not can_tell(y):
        return False
    logits = []
    for weights in (linear, loop.kept):
        model.load_state_dict(weights)
        logits.append(batched_logits(model, val.x))
    drop, half_width = auc_drop(logits[0], logits[1], y)
    allowed = max(half_width / NORMAL, DEAR) if isinstance(model, MLP) else half_width
    if drop <= allowed:
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
