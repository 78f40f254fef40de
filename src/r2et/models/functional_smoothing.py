"""Activations that a forward calls as functions, softened while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeGuard

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from r2et.errors import InputError, require
from r2et.models.piecewise_linear import (
    Hinge,
    clip,
    floor,
    hard_sigmoid,
    leaky,
    overwrite,
    relu,
    soft_prelu,
    soft_shrink,
)

Arguments = dict[str, Any]


def _clamp(given: Arguments) -> Hinge | None:
    """clamp(min=0) is a ReLU, clamp(0, 6) a ReLU6; others guard a root or a division, and stay."""
    low, high = (_number(given.get(name)) for name in ("min", "max"))
    if isinstance(low, Tensor) or low != 0 or isinstance(high, Tensor):
        return None
    return relu() if high is None else clip(0.0, high)


def _number(bound: Any) -> Any:
    """A bound given as a tensor of one number is that number, unless it is learned."""
    one = isinstance(bound, Tensor) and bound.numel() == 1 and not bound.requires_grad
    return bound.item() if one else bound


def _threshold(given: Arguments) -> Hinge:
    where, value = given["threshold"], given["value"]
    expected = "one whose Threshold has value = threshold (any other jumps)"
    require(where == value, "smooth", "model", expected, f"threshold {where}, value {value}")
    return floor(where)


# name: (the arguments after x, in order; the Hinge they make, None to leave the call alone)
FUNCTIONS: dict[str, tuple[tuple[str, ...], Callable[[Arguments], Hinge | None]]] = {
    "relu": (("inplace",), lambda _: relu()),
    "relu6": (("inplace",), lambda _: clip(0.0, 6.0)),
    "leaky_relu": (("negative_slope",), lambda given: leaky(given.get("negative_slope", 0.01))),
    "hardtanh": (
        ("min_val", "max_val"),
        lambda given: clip(given.get("min_val", -1.0), given.get("max_val", 1.0)),
    ),
    "hardsigmoid": ((), lambda _: hard_sigmoid()),
    "hardswish": ((), lambda _: hard_sigmoid(gated=True)),
    "softshrink": (("lambd",), lambda given: soft_shrink(given.get("lambd", 0.5))),
    "threshold": (("threshold", "value"), _threshold),
    "clamp": (("min", "max"), _clamp),
    "clip": (("min", "max"), _clamp),
    "clamp_min": (("min",), _clamp),
}
REFUSED = {
    "rrelu": "which draws its slopes at random (use leaky_relu)",
    "hardshrink": "which jumps (use softshrink)",
}
# As torch calls them: relu_ works in place, _threshold is F.threshold.
NAMES = {
    form: name
    for name in (*FUNCTIONS, *REFUSED, "prelu")
    for form in (name, f"{name}_", f"_{name}")
}


class Softened(TorchFunctionMode):
    """While active, every ReLU-like call of torch gives its softplus_rho version.

    This sees what runs, however it was reached: torch.relu, F.relu, x.relu(), x.clamp(min=0), an
    alias, a ReLU module kept in a plain list. It cannot see torch.where, torch.maximum, nor
    what compiled or scripted code does inside.
    """

    def __init__(self, rho: float) -> None:
        super().__init__()
        self.rho = rho

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Arguments | None = None
    ) -> Any:
        del types
        given = dict(kwargs or {})
        called = getattr(func, "__name__", "")
        name = NAMES.get(called)
        if name is None:
            return func(*args, **given)
        x = args[0] if args else given.get("input")
        if not _activation(x):
            return func(*args, **given)
        if name in REFUSED or given.get("out") is not None:
            reason = REFUSED.get(name, "with out=, which autograd cannot follow")
            refused = f"{name}, {reason}, in {_caller()}"
            raise InputError(f"smooth: model must be one that can be made smooth, got {refused}.")
        if name == "prelu":
            return soft_prelu(x, args[1] if len(args) > 1 else given["weight"], self.rho)
        order, make = FUNCTIONS[name]
        arguments = {**dict(zip(order, args[1:], strict=False)), **given}
        hinge = make(arguments)
        if hinge is None:
            return func(*args, **given)
        if called.endswith("_") or arguments.get("inplace"):
            return overwrite(x, hinge.smooth(x.clone(), self.rho))
        return hinge.smooth(x, self.rho)


class Watched(TorchFunctionMode):
    """While active, notes how far every ReLU-like call's input is from its kinks.

    seen: x - kink for each call, of a module or a function, and each of its kinks. Sees what
    Softened does, and changes nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Arguments | None = None
    ) -> Any:
        del types
        given = dict(kwargs or {})
        name = NAMES.get(getattr(func, "__name__", ""), "")
        x = args[0] if args else given.get("input")
        if (name in FUNCTIONS or name == "prelu") and _activation(x):
            # A new tensor each: a call in place overwrites what it is given.
            self.seen += [x - kink for kink in _kinks(name, args, given)]
        return func(*args, **given)


def _activation(x: Any) -> TypeGuard[Tensor]:
    """A clamp of whole numbers is an index, one of a weight a constraint: not activations."""
    return isinstance(x, Tensor) and x.is_floating_point() and not isinstance(x, nn.Parameter)


def _kinks(name: str, args: tuple[Any, ...], given: Arguments) -> list[float]:
    if name == "prelu":
        return [0.0]
    order, make = FUNCTIONS[name]
    arguments = {**dict(zip(order, args[1:], strict=False)), **given}
    if name == "threshold":  # one that jumps has its place too
        return [arguments["threshold"]]
    hinge = make(arguments)
    return [] if hinge is None else [kink for _, kink in hinge.kinks]


def _caller() -> str:
    """The class of the nearest module of the user's own whose code is running."""
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and not type(owner).__module__.startswith("torch."):
            return f"{type(owner).__name__}.{frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "a function"
