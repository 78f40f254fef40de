"""Concepts: the activations of a layer, by default of the last hidden one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from r2et.errors import InputError, require
from r2et.explain.base import Explainer
from r2et.explain.reduce import Reduction
from r2et.models.output import logits


@final
@dataclass(frozen=True, kw_only=True)
class Concept(Explainer):
    """I_i = activation of neuron i of a layer, a map's mean over its positions (Sec. 6, ROCT).

    layer: a name as in model.named_modules(), whose output is taken; by default the input of the
    last Linear layer (512 concepts in a ResNet18). The target plays no part.
    """

    layer: str | None = None
    reduce: Reduction = "signed"

    def __post_init__(self) -> None:
        super().__post_init__()
        good = self.reduce in ("signed", "abs")
        require(good, "Concept", "reduce", "signed or abs", self.reduce)

    def attribute(
        self,
        model: nn.Module,
        x: Tensor,
        target: Tensor | None,  # noqa: ARG002
        *,
        create_graph: bool,
    ) -> Tensor:
        seen: list[Any] = []
        if self.layer is None:
            handle = _last_linear(model).register_forward_pre_hook(
                lambda _, inputs: seen.append(inputs[0])
            )
        else:
            handle = find_layer("Concept", model, self.layer).register_forward_hook(
                lambda _, __, output: seen.append(output)
            )
        try:
            with torch.set_grad_enabled(create_graph):
                logits(model, x, "Concept")
        finally:
            handle.remove()
        require(len(seen) == 1, "Concept", "layer", "one that runs once", f"{len(seen)} runs")
        taken = seen[0]
        good = isinstance(taken, Tensor) and taken.ndim >= 2 and len(taken) == len(x)
        require(good, "Concept", "layer", f"one whose activation is ({len(x)}, C, ...)", taken)
        activation: Tensor = taken
        return activation.flatten(2).mean(2) if activation.ndim > 2 else activation


def _last_linear(model: nn.Module) -> nn.Module:
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise InputError(
            "Concept: layer must be given for a model without a Linear layer, got None."
        )
    return linear[-1]


def find_layer(where: str, model: nn.Module, name: str) -> nn.Module:
    """A submodule by its name in named_modules()."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    names = ", ".join(n for n in modules if n)
    require(name in modules and name != "", where, "layer", f"one of {names}", name)
    return modules[name]
