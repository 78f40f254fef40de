"""What a model's last operation is: logits, or probabilities made of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from r2et.errors import require
from r2et.models.output import logits, undisturbed

# By the names that autograd gives to operations, without "Backward" and what follows it.
PROBABILITIES = {"Sigmoid": "sigmoid", "Softmax": "softmax"}
LOGARITHMS = {"LogSoftmax": "softmax", "LogSigmoid": "sigmoid"}  # of them; exp undoes it
# What hands values on as they are, in another shape, type or order, or some of them.
HANDED_ON = frozenset(
    [
        "View",
        "UnsafeView",
        "ReshapeAlias",
        "Squeeze",
        "Unsqueeze",
        "Expand",
        "Alias",
        "Clone",
        "ToCopy",
        "T",
        "Transpose",
        "Permute",
        "Movedim",
        "Flip",
        "Select",
        "Slice",
        "Narrow",
        "Index",
        "IndexSelect",
        "Gather",
        "Split",
        "Unbind",
    ]
)
JOINED = frozenset({"Cat", "Stack"})
COMPLEMENT = frozenset({"Rsub"})  # 1 - p, beside p
DEEPEST = 32  # operations between the last one and what made the values


def check_logits(where: str, model: nn.Module, x: Tensor) -> None:
    """Refuse a model that ends in a sigmoid or softmax: as logits its output is squashed twice.

    By the operation and not by the values: logits may lie in 0..1 by chance.
    """
    with undisturbed(model), torch.enable_grad():
        out = logits(model, x.detach().clone().requires_grad_(), where)
    last = squashed(out.grad_fn)
    expected = "one that returns logits"
    got = f"probabilities: it ends in a {last} (audit it without that layer)"
    require(last is None, where, "model", expected, got)


def squashed(node: Any, depth: int = DEEPEST) -> str | None:
    """What made probabilities of the values that an autograd node returns; None if nothing did."""
    name = _name(node)
    if name in PROBABILITIES:
        return PROBABILITIES[name]
    before = [] if node is None or not depth else [part for part, _ in node.next_functions]
    if name == "Exp" and before:
        return LOGARITHMS.get(_name(before[0]))
    if name in HANDED_ON and before:
        return squashed(before[0], depth - 1)
    if name in JOINED and before:
        made_by = [squashed(_complemented(part), depth - 1) for part in before]
        return made_by[0] if all(made_by) else None
    return None


def _complemented(node: Any) -> Any:
    return node.next_functions[0][0] if _name(node) in COMPLEMENT else node


def _name(node: Any) -> str:
    return "" if node is None else str(node.name()).partition("Backward")[0]
