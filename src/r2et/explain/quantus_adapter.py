"""Our explanations, as the functions that Quantus takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from r2et.errors import InputError, require
from r2et.explain.base import Explainer

ExplainFunction: TypeAlias = Callable[..., NDArray[Any]]

WHERE = "quantus_explain"


def quantus_explain(explainer: Explainer) -> ExplainFunction:
    """This explanation as Quantus' explain_func: (model, inputs, targets, **kwargs) -> array.

    Inputs (B, ...) and targets (B,) are arrays; so is the result, in the inputs' shape, with one
    channel where scores are sums over channels. kwargs, which Quantus fills with settings of its
    own, change nothing: the explainer has its settings.
    """
    is_valid = isinstance(explainer, Explainer)
    require(is_valid, WHERE, "explainer", "an Explainer of r2et.explain", explainer)

    def explain(
        model: nn.Module,
        inputs: ArrayLike | Tensor,
        targets: ArrayLike | Tensor | None = None,
        **kwargs: Any,  # noqa: ARG001
    ) -> NDArray[Any]:
        require(isinstance(model, nn.Module), WHERE, "model", "a torch.nn.Module", model)
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        x = _tensor(inputs, "inputs").to(like.device, like.dtype)
        target = None
        if targets is not None:
            target = _tensor(targets, "targets").to(like.device).long().reshape(-1)
        scores = explainer(model, x, target)
        shape = _shape(tuple(x.shape), scores.shape[1])
        array: NDArray[Any] = scores.reshape(shape).cpu().numpy()
        return array

    return explain


def _tensor(values: ArrayLike | Tensor, name: str) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach()
    try:
        return torch.from_numpy(np.array(values))
    except (TypeError, ValueError) as error:
        raise InputError(f"{WHERE}: {name} must be numbers, got {type(values)}.") from error


def _shape(shape: tuple[int, ...], scores: int) -> tuple[int, ...]:
    """The inputs' shape, or that with one channel, whichever has room for the scores."""
    single = (shape[0], 1, *shape[2:])
    fitting = next((s for s in (shape, single) if math.prod(s[1:]) == scores), None)
    expected = "one with a score for each entry, or for each pixel, of the inputs"
    require(fitting is not None, WHERE, "explainer", expected, f"{scores} scores for {shape[1:]}")
    assert fitting is not None
    return fitting
