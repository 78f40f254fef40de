"""How each call of torch is read as a step of a network."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from r2et.certify.activation import activation
from r2et.certify.steps import Average, Conv, Dense, Join, Kind, MaxPool, Reshape, Scale

LOWEST_THRESHOLD = 15.0  # of a Softplus: where torch goes over to the identity


class Watcher(Protocol):
    """Who knows which tensors depend on x and which are weights (see Recorder)."""

    values: dict[int, int]
    derived: bool

    def refuse(self, found: str) -> None: ...

    def constant(self, value: Any, name: str) -> Tensor | float: ...


class Call:
    """One call of torch as it is read: its arguments by name or place, and one row's shapes."""

    def __init__(
        self,
        recorder: Watcher,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        before: tuple[int, ...],
        after: tuple[int, ...],
    ) -> None:
        self.recorder, self.name, self.args, self.kwargs = recorder, name, args, kwargs
        self.before, self.after = before, after

    def get(self, place: int, name: str, default: Any = None) -> Any:
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[place] if len(self.args) > place else default

    def weight(self, place: int, name: str) -> Any:
        value = self.get(place, name)
        return None if value is None else self.recorder.constant(value, self.name)

    def moving(self, value: Any) -> bool:
        return isinstance(value, Tensor) and id(value) in self.recorder.values

    def refuse(self, found: str) -> None:
        self.recorder.refuse(f"{self.name} {found}")


def _linear(call: Call) -> Kind:
    weight = call.weight(1, "weight")
    return Dense(weight, call.weight(2, "bias"))


def _conv(call: Call) -> Kind:
    padding = call.get(4, "padding", 0)
    if isinstance(padding, str):
        if padding == "valid":
            padding = 0
        else:
            call.refuse(f"with padding {padding!r} (give a number)")
    weight = call.weight(1, "weight")
    return Conv(
        weight,
        call.weight(2, "bias"),
        pair(call.get(3, "stride", 1)),
        pair(padding),
        pair(call.get(5, "dilation", 1)),
        int(call.get(6, "groups", 1)),
        call.before,
    )


def _batch_norm(call: Call) -> Kind:
    mean, var = call.weight(1, "running_mean"), call.weight(2, "running_var")
    training = call.get(5, "training", False)
    if mean is None or var is None or training:
        call.refuse("by the batch's own statistics")
    weight, bias = call.weight(3, "weight"), call.weight(4, "bias")
    factor = (var + call.get(7, "eps", 1e-5)).rsqrt()
    factor = factor if weight is None else factor * weight
    offset = -mean * factor
    size = offset.abs()
    if bias is not None:
        offset, size = offset + bias, size + bias.abs()
    shape = (-1, *[1] * (len(call.before) - 1))
    call.recorder.derived = True
    return Scale(factor.view(shape), offset.view(shape), size.view(shape))


def _reshape(call: Call) -> Kind:
    return Reshape(call.before, call.after)


def _add(call: Call) -> Kind:
    return _sum(call, 1.0)


def _sub(call: Call) -> Kind:
    return _sum(call, -1.0)


def _check_alpha(call: Call) -> None:
    alpha = call.get(2, "alpha", 1)
    if isinstance(alpha, Tensor) or alpha != 1:
        call.refuse("with alpha")


def _rsub(call: Call) -> Kind:
    _check_alpha(call)
    return _scaled(call, -1.0, call.get(1, "other"))


def _sum(call: Call, sign: float) -> Kind:
    a, b = call.get(0, "input"), call.get(1, "other")
    _check_alpha(call)
    if call.moving(a) and call.moving(b):
        if a.shape != b.shape:
            call.refuse("of two shapes")
        return Join((1.0, sign))
    if call.moving(a):
        return _scaled(call, 1.0, b, sign)
    return _scaled(call, sign, a)


def _scaled(call: Call, factor: float, other: Any, sign: float = 1.0) -> Kind:
    """factor * v + sign * other."""
    one = next(a for a in (*call.args, *call.kwargs.values()) if call.moving(a))
    offset = _over_row(call, one, other)
    return Scale(one.new_tensor(factor), sign * offset)


def _over_row(call: Call, like: Tensor, value: Any) -> Tensor:
    """A number or a weight as it broadcasts over one row."""
    given = call.recorder.constant(value, call.name)
    found = given if isinstance(given, Tensor) else like.new_tensor(given)
    if isinstance(given, Tensor):
        call.recorder.derived = True  # what is made of it below is not the weight itself
    if found.ndim == like.ndim:
        if found.shape[0] != 1:
            call.refuse("with a weight for each row")
        found = found[0]
    if found.ndim > like.ndim or call.after != tuple(like.shape[1:]):
        call.refuse("that changes the shape")
    return found


def _mul(call: Call) -> Kind:
    a, b = call.get(0, "input"), call.get(1, "other")
    if call.moving(a) and call.moving(b):
        call.refuse("of two values that depend on x")
    return Scale(_over_row(call, a, b) if call.moving(a) else _over_row(call, b, a))


def _div(call: Call) -> Kind:
    a, b = call.get(0, "input"), call.get(1, "other")
    if not call.moving(a) or call.moving(b) or call.get(2, "rounding_mode") is not None:
        call.refuse("by a value that depends on x")
    return Scale(1 / _over_row(call, a, b))


def _neg(call: Call) -> Kind:
    return Scale(call.get(0, "input").new_tensor(-1.0))


def _mean(call: Call) -> Kind:
    dims = call.get(1, "dim")
    if dims is None:
        call.refuse("over all rows")
    if call.kwargs.get("dtype") is not None:
        call.refuse("with a dtype")
    keep = bool(call.get(2, "keepdim", False))
    dims = [dims] if isinstance(dims, int) else list(dims)
    rank = len(call.before) + 1
    dims = [d % rank for d in dims]
    if 0 in dims:
        call.refuse("over rows")
    count = math.prod(call.before[d - 1] for d in dims)
    return Average(lambda v: v.mean(dims, keepdim=keep), call.before, count, 1)


def _pooled(call: Call) -> Kind:
    function = getattr(torch.nn.functional, call.name)
    rest, kwargs = call.args[1:], {k: v for k, v in call.kwargs.items() if k != "input"}
    if (call.get(6, "divisor_override") or 1) < 0:
        call.refuse("with a negative divisor")
    count = math.ceil(math.prod(call.before) / max(1, math.prod(call.after)))
    kernel = call.get(1, "kernel_size", None) if call.name == "avg_pool2d" else None
    terms = math.prod(pair(kernel)) if kernel is not None else 4 * count
    return Average(lambda v: function(v, *rest, **kwargs), call.before, terms, terms)


def _max_pool(call: Call) -> Kind:
    kernel = pair(call.get(1, "kernel_size"))
    stride = call.get(2, "stride", None)
    stride = kernel if stride is None or stride == [] else pair(stride)
    padding, dilation = pair(call.get(3, "padding", 0)), pair(call.get(4, "dilation", 1))
    if dilation != (1, 1) or len(call.before) != 3:
        call.refuse("with dilation or of other than (B, C, H, W)")
    sizes = zip(call.before[1:], kernel, stride, padding, strict=True)
    expected = tuple((n + 2 * p - k) // s + 1 for n, k, s, p in sizes)
    if expected != call.after[1:]:
        call.refuse("with ceil_mode")
    return MaxPool(kernel, stride, padding, call.before)


def _leaky(call: Call) -> Kind:
    return activation("leaky_relu", float(call.get(1, "negative_slope", 0.01)))


def _softplus(call: Call) -> Kind:
    beta, threshold = float(call.get(1, "beta", 1)), float(call.get(2, "threshold", 20))
    # Up to the threshold torch takes exp(beta z), which must not overflow.
    most = math.floor(math.log(torch.finfo(call.get(0, "input").dtype).max)) - 1
    if not beta > 0 or not LOWEST_THRESHOLD <= threshold <= most:
        found = f"with beta {beta:g} and threshold {threshold:g}"
        call.refuse(f"{found} (beta above 0, threshold in {LOWEST_THRESHOLD:g}..{most})")
    return activation("softplus", beta, 1.0, 0.0, threshold)


def _elu(call: Call) -> Kind:
    extra = [a for a in call.args[2:] if not isinstance(a, bool)]
    if extra or {"scale", "input_scale"} & call.kwargs.keys():
        call.refuse("with a scale")
    return activation("elu", float(call.get(1, "alpha", 1.0)))


MAKERS: dict[str, Callable[[Call], Kind]] = {
    "linear": _linear,
    "conv2d": _conv,
    "batch_norm": _batch_norm,
    "flatten": _reshape,
    "reshape": _reshape,
    "squeeze": _reshape,
    "unsqueeze": _reshape,
    "add": _add,
    "sub": _sub,
    "subtract": _sub,
    "rsub": _rsub,
    "mul": _mul,
    "multiply": _mul,
    "div": _div,
    "divide": _div,
    "neg": _neg,
    "mean": _mean,
    "avg_pool2d": _pooled,
    "adaptive_avg_pool2d": _pooled,
    "max_pool2d": _max_pool,
    "relu": lambda _: activation("relu", 0.0),
    "leaky_relu": _leaky,
    "softplus": _softplus,
    "tanh": lambda _: activation("tanh"),
    "sigmoid": lambda _: activation("sigmoid"),
    "elu": _elu,
    "silu": lambda _: activation("silu"),
    "gelu": lambda call: activation("gelu", str(call.get(1, "approximate", "none"))),
}


def pair(value: Any) -> tuple[int, int]:
    """One number for both directions, or one for each."""
    if isinstance(value, int):
        return value, value
    numbers = [int(v) for v in value]
    return (numbers[0], numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
