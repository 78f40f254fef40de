"""Modules behind `torch.compile`: what they were made of, which can be traced and differentiated.

A compiled module computes the same but is no longer open to a tracer, and its backward pass cannot
be differentiated again, as attacks need; so the original is used, which shares its weights.
"""

from __future__ import annotations

import copy

from torch import nn

ORIGINAL = "_orig_mod"  # where torch.compile keeps it


def is_compiled(model: nn.Module) -> bool:
    """Whether the module itself, or one within it, was compiled."""
    return any(_wrapped(m) is not None or _in_place(m) for m in model.modules())


def original_module(model: nn.Module) -> nn.Module:
    """The module that was compiled, with the same weights; of others the module itself."""
    if not isinstance(model, nn.Module) or not is_compiled(model):
        return model
    inner = _wrapped(model)
    if inner is not None:
        return original_module(inner)
    # Copied without depth: parameters are shared, and what was compiled in place stays behind.
    bare = copy.copy(model)
    bare._modules = {
        name: None if child is None else original_module(child)
        for name, child in model._modules.items()
    }
    return bare


def _wrapped(model: nn.Module) -> nn.Module | None:
    inner = model._modules.get(ORIGINAL)
    return inner if type(model).__name__ == "OptimizedModule" else None


def _in_place(model: nn.Module) -> bool:
    return getattr(model, "_compiled_call_impl", None) is not None
