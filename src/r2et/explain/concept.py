"""Concepts: the activations of a layer, by default of the last hidden one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from r2et.errors import InputError, require
from r2et.explain.base import Explainer
from r2et.explain.reductions import Reduction
from r2et.models.output import logits


@final
@dataclass(frozen=True, kw_only=True)
class Concept(Explainer):
    """I_i = activation of neuron i of a layer, a map's mean over its positions (Sec. 6, ROCT).

    The target plays no part. Settings beside these are those of Explainer.

    Args:
        layer: a name as in model.named_modules(), whose output is taken; by default the input of
            the Linear layer that runs last (512 concepts in a ResNet18).
        reduce: "signed" or "abs".
    """

    layer: str | None = None
    reduce: Reduction = "signed"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = self.reduce in ("signed", "abs")
        require(is_valid, "Concept", "reduce", "signed or abs", self.reduce)

    def attribute(
        self,
        model: nn.Module,
        x: Tensor,
        target: Tensor | None,  # noqa: ARG002
        *,
        create_graph: bool,
    ) -> Tensor:
        seen: list[tuple[nn.Module, Any]] = []
        watched: list[nn.Module]
        if self.layer is None:
            watched = [m for m in model.modules() if isinstance(m, nn.Linear)]
            if not watched:
                raise InputError(
                    "Concept: layer must be given for a model without a Linear layer, got None."
                )
        else:
            watched = [find_layer("Concept", model, self.layer)]
        handles: list[RemovableHandle] = []
        try:
            for module in watched:
                # Clones: an activation in place may follow.
                if self.layer is None:
                    note = _note_input(seen)
                    handles.append(module.register_forward_pre_hook(note))
                else:
                    handles.append(module.register_forward_hook(_note_output(seen)))
            with torch.set_grad_enabled(create_graph):
                logits(model, x, "Concept")
        finally:
            for handle in handles:
                handle.remove()
        once = len(seen) > 0 if self.layer is None else len(seen) == 1
        require(once, "Concept", "layer", "one that runs once", f"{len(seen)} runs")
        module, taken = seen[-1]  # of all Linear layers, the one that ran last
        is_valid = isinstance(taken, Tensor) and taken.ndim >= 2 and len(taken) == len(x)
        require(is_valid, "Concept", "layer", f"one whose activation is ({len(x)}, C, ...)", taken)
        activation: Tensor = taken
        if isinstance(module, nn.Linear | nn.LayerNorm):  # their features come last
            activation = activation.movedim(-1, 1)
        return activation.flatten(2).mean(2) if activation.ndim > 2 else activation


def _note_input(seen: list[tuple[nn.Module, Any]]) -> Callable[[nn.Module, Any], None]:
    return lambda module, inputs: seen.append((module, inputs[0].clone()))


def _note_output(seen: list[tuple[nn.Module, Any]]) -> Callable[[nn.Module, Any, Any], None]:
    def note(module: nn.Module, _: Any, output: Any) -> None:
        seen.append((module, output.clone() if isinstance(output, Tensor) else output))

    return note


def find_layer(where: str, model: nn.Module, name: str) -> nn.Module:
    """A submodule by its name in named_modules()."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    names = ", ".join(n for n in modules if n)
    require(name in modules and name != "", where, "layer", f"one of {names}", name)
    return modules[name]
