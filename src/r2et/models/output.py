"""How a model's output is read: logits, the predicted class, the log-odds of a class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from r2et.checks import all_finite, check_model_input
from r2et.errors import InputError, R2ETError, RowError, first_line, require, row_numbers

# Input numbers per forward pass when `chunk` is not given: 9000 rows of a table, 85 small images.
CHUNK_NUMBERS = 2**18
OUT_OF_MEMORY: type[BaseException] = getattr(
    torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError
)  # torch 2.4 knows only the second


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Run a model as it is deployed (eval mode), and give every submodule its own mode back."""
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


def logits(model: nn.Module, x: Tensor, where: str = "logits") -> Tensor:
    """The model's output as (B, C) logits; C = 1 stands for the log-odds of class 1 of two."""
    try:
        # A copy: a model may begin with an operation in place.
        out: Tensor = model(x.clone())
    except OUT_OF_MEMORY:
        raise
    except Exception as error:
        if isinstance(error, R2ETError):
            raise
        accept = f"a callable that takes x, {str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
        raise InputError(
            f"{where}: model must be {accept}, got {type(error).__name__}: {first_line(error)}."
        ) from error
    expected = "one that returns a tensor of logits (wrap it in a module that takes them out)"
    require(isinstance(out, Tensor), where, "model", expected, out)
    if out.ndim == 0 and len(x) == 1:  # squeezed: one logit of one row
        out = out[None]
    lost = out.ndim == 1 and len(x) == 1 < len(out)
    out = out[:, None] if out.ndim == 1 else out
    is_valid = out.ndim == 2 and len(out) == len(x) and out.shape[1] > 0 and out.is_floating_point()
    expected = f"one that returns logits of shape ({len(x)}, C)"
    expected += ", also for one row (a squeeze takes its dimension away)" if lost else ""
    require(is_valid, where, "model", expected, out)
    if not all_finite(out):
        rows = (~torch.isfinite(out)).any(1).nonzero().flatten()
        sentence = f"{where}: model must be one with finite logits, got NaN or inf"
        raise RowError(sentence, int(rows[0]))
    return out


def batched_logits(model: nn.Module, x: Tensor, where: str = "batched_logits") -> Tensor:
    """(B, C) logits in eval mode, without a graph, on the CPU, in bounded memory."""
    rows = max(1, CHUNK_NUMBERS // x[0].numel())
    device = next((p.device for p in model.parameters()), x.device)
    parts = []
    with undisturbed(model), torch.no_grad():
        for start in range(0, len(x), rows):
            with row_numbers(start.__add__):
                parts.append(logits(model, x[start : start + rows].to(device), where).cpu())
    return torch.cat(parts)


def classes(out: Tensor) -> Tensor:
    """(B, C) logits -> (B,) predicted classes; a tie goes to the lower index."""
    if out.shape[1] == 1:
        return (out[:, 0] > 0).long()
    if out.shape[1] == 2:
        return (out[:, 1] > out[:, 0]).long()
    # argmax does not promise which of two equal logits it takes.
    index = torch.arange(out.shape[1], device=out.device)
    return torch.where(out == out.amax(1, keepdim=True), index, out.shape[1]).amin(1)


def target_rows(where: str, target: Tensor | int | None, x: Tensor) -> Tensor | None:
    """A given target as (B,) whole numbers on x's device; one number serves all rows."""
    if target is None:
        return None
    if isinstance(target, int):
        require(abs(target) < 2**62, where, "target", "a class index", target)
        target = torch.full((len(x),), target, device=x.device)
    require(isinstance(target, Tensor), where, "target", "a tensor of class indices", target)
    whole = target.dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
    require(whole, where, "target", "a tensor of whole numbers", target)
    require(target.shape == (len(x),), where, "target", f"of shape ({len(x)},)", target)
    require(target.device == x.device, where, "target", f"on {x.device}", target)
    return target.long()


def target_classes(where: str, target: Tensor | None, out: Tensor) -> Tensor:
    """(B,) classes that (B, C) logits have, by default the predicted ones."""
    if target is None:
        return classes(out.detach())
    count = max(out.shape[1], 2)
    low, high = int(target.min()), int(target.max())
    wrong = low if low < 0 else high
    require(low >= 0 and high < count, where, "target", f"in 0..{count - 1}", wrong)
    return target


def class_logit(out: Tensor, target: Tensor) -> Tensor:
    """(B,) logit of the target class; of a single logit z, z for class 1 and -z for class 0."""
    if out.shape[1] == 1:
        return torch.where(target == 1, out[:, 0], -out[:, 0])
    return out.gather(1, target[:, None])[:, 0]


def log_odds(out: Tensor, target: Tensor) -> Tensor:
    """(B,) log(p / (1 - p)) of the target class: its logit minus the others' log-sum-exp.

    Never formed from p, which rounds to 1 on confident rows.
    """
    if out.shape[1] == 1:
        return class_logit(out, target)
    if out.shape[1] == 2:  # the same number, by two operations that differentiate cheaply
        odds = out[:, 1] - out[:, 0]
        return torch.where(target == 1, odds, -odds)
    others = out.scatter(1, target[:, None], float("-inf")).logsumexp(1)
    return class_logit(out, target) - others


def predict(model: nn.Module, x: Tensor) -> Tensor:
    """(B,) predicted classes, from the model in eval mode, without a gradient."""
    check_model_input("predict", model, x)
    with undisturbed(model), torch.no_grad():
        return classes(logits(model, x, "predict"))
