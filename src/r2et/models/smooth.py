"""Twice differentiable copies of networks with kinks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from r2et.errors import InputError, describe, first_line, require
from r2et.models import piecewise_linear
from r2et.models.functional_smoothing import FUNCTIONS, Softened
from r2et.models.gcn import Magnitude
from r2et.models.piecewise_linear import Hinge, SoftHinge, SoftMagnitude, SoftPReLU

MODULES: dict[type[nn.Module], Callable[[Any], Hinge | None]] = {
    nn.ReLU: lambda _: piecewise_linear.relu(),
    nn.ReLU6: lambda _: piecewise_linear.clip(0.0, 6.0),
    nn.LeakyReLU: lambda module: piecewise_linear.leaky(module.negative_slope),
    nn.Hardtanh: lambda module: piecewise_linear.clip(module.min_val, module.max_val),
    nn.Hardsigmoid: lambda _: piecewise_linear.hard_sigmoid(),
    nn.Hardswish: lambda _: piecewise_linear.hard_sigmoid(gated=True),
    nn.Softshrink: lambda module: piecewise_linear.soft_shrink(module.lambd),
    nn.Threshold: lambda module: FUNCTIONS["threshold"][1](vars(module)),
}
REFUSED: dict[type[nn.Module], str] = {
    nn.RReLU: "which draws its slopes at random (use LeakyReLU)",
    nn.Hardshrink: "which jumps (use Softshrink)",
}
# Modules from here call no activation but through another module, except the callers.
KNOWN = ("torch.nn.", "r2et.models.", "torch_geometric.nn.dense.linear")
CALLERS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
# Beyond, float32 has no number for rho or for 1 / rho.
MOST = 1e30
RHO = "a positive number, 1e-30 to 1e30"
RECURRENT = (nn.RNNBase, nn.RNNCellBase)


def smooth(model: nn.Module, rho: float, *, share: bool = False) -> nn.Module:
    """A copy with softplus_rho(x) = log(1 + exp(rho x)) / rho for every ReLU (SP, Sec. 6).

    Leaky ones keep their slope: s x + (1 - s) softplus_rho(x); ReLU6, Hardtanh, PReLU and the
    like follow from how they are made of ReLUs. As rho grows the copy goes to the model, by at
    most log(2) / rho at each activation. The copy has the model's class, names and state_dict.

    A ReLU called as a function (F.relu, x.relu(), x.clamp(min=0)) is replaced while the copy's
    forward runs. Max-pooling and other choices among inputs (max, abs, sort) stay as they are:
    the copy then still has kinks, where two inputs tie. ELU and SELU stay too. RReLU, Hardshrink,
    a Threshold that jumps, an RNN with built-in ReLU and scripted code are refused by name.

    share: use the model's own parameters and buffers, so that the copy follows its training, its
    loading of other weights and its moves to another device or kind of numbers; otherwise they
    are copied. A smooth copy of a smooth copy keeps the first rho.
    """
    number = isinstance(rho, int | float) and not isinstance(rho, bool)
    require(number and 1 / MOST <= rho <= MOST, "smooth", "rho", RHO, rho)
    require(isinstance(model, nn.Module), "smooth", "model", "an nn.Module", type(model).__name__)
    duplicate = _copy(model, share=share)
    done: dict[nn.Module, nn.Module] = {}  # a module in two places stays one module
    for name, module in duplicate.named_modules():
        done[module] = _replacement(name or "itself", module, float(rho))
    for module in list(done):
        for name, child in module._modules.items():
            if child is not None:
                module._modules[name] = done[child]
    out = done[duplicate]
    if any(_may_call(module) for module in out.modules()):
        # In the instance, not around it, so that class, names and state_dict stay.
        vars(out)["forward"] = partial(_forward, out.forward, float(rho))
        vars(out)["_replicate_for_data_parallel"] = partial(_replica, out)
    return out


def _copy(model: nn.Module, *, share: bool) -> nn.Module:
    memo: dict[int, Any] = {}
    for module in model.modules():
        for value in vars(module).values():
            if isinstance(value, Tensor) and value.grad_fn is not None:
                memo[id(value)] = value.detach()  # an activation kept from the last forward
    if share:
        memo |= {id(t): t for t in [*model.parameters(), *model.buffers()]}
    try:
        duplicate = copy.deepcopy(model, memo)
    except (RuntimeError, TypeError, AttributeError) as error:
        expected, reason = "one that copy.deepcopy can copy", describe(first_line(error))
        raise InputError(f"smooth: model must be {expected}, got the error: {reason}.") from error
    if share:
        for original, copied in zip(model.modules(), duplicate.modules(), strict=True):
            # The tables, not only the tensors: a model that moves or loads puts others into them.
            for table in ("_parameters", "_buffers"):
                vars(copied)[table] = vars(original)[table]
            if isinstance(copied, nn.RNNBase):
                copied.register_forward_pre_hook(_look_up)
    return duplicate


def _look_up(module: nn.Module, *_: Any) -> None:
    """An RNN keeps a second list of its weights, which only its own methods renew."""
    names = getattr(module, "_flat_weights_names", [])
    vars(module)["_flat_weights"] = [getattr(module, name, None) for name in names]


def _replacement(name: str, module: nn.Module, rho: float) -> nn.Module:
    """What stands for this module in the smooth copy: often itself."""
    kind = next((k for k in type(module).__mro__ if k in (*MODULES, *REFUSED, nn.PReLU)), None)
    reason = "" if kind is None else REFUSED.get(kind, "")
    if isinstance(module, torch.jit.ScriptModule):
        reason = "which is compiled, so that its ReLUs cannot be seen (give the Python module)"
    if getattr(module, "nonlinearity", "") == "relu" and isinstance(module, RECURRENT):
        reason = "whose ReLU is built in (use nonlinearity='tanh')"
    if reason:
        refused = f"{type(module).__name__} ({name}), {reason}"
        raise InputError(f"smooth: model must be one that can be made smooth, got {refused}.")
    if isinstance(module, Magnitude):
        return _like(module, SoftMagnitude(rho))
    if kind is None or _code(type(module)) is not _code(kind):
        return module  # if it is a ReLU with a forward of its own, it is caught as a function
    if isinstance(module, nn.PReLU):
        learned = module._parameters.get("weight")
        return module if learned is None else _like(module, SoftPReLU(learned, rho))
    made = MODULES[kind](module)
    assert made is not None
    inplace = bool(getattr(module, "inplace", False))
    if kind is nn.ReLU and not inplace:
        # torch's own class: whoever reads networks layer by layer knows it.
        return _like(module, nn.Softplus(beta=rho, threshold=piecewise_linear.LINEAR_ABOVE))
    return _like(module, SoftHinge(made, rho, inplace=inplace))


def _like(old: nn.Module, new: nn.Module) -> nn.Module:
    """The new module in the old one's mode, with its parameters and its hooks."""
    hooks = {name: value for name, value in vars(old).items() if "hook" in name}
    vars(new).update(hooks, training=old.training, _parameters=vars(old)["_parameters"])
    return new


def _code(kind: type) -> Any:
    return getattr(kind, "forward", None)


def _may_call(module: nn.Module) -> bool:
    """Whether a module's forward is code that may call an activation as a function."""
    known = type(module).__module__.startswith(KNOWN)
    return not known or isinstance(module, (*CALLERS, *MODULES, nn.PReLU))


def _forward(forward: Callable[..., Any], rho: float, *args: Any, **kwargs: Any) -> Any:
    with Softened(rho):
        return forward(*args, **kwargs)


def _replica(module: nn.Module) -> nn.Module:
    """One of DataParallel's, whose forward must run on its own parameters, not on the copy's."""
    replicate: Callable[[nn.Module], nn.Module] = type(module)._replicate_for_data_parallel
    replica = replicate(module)
    vars(replica)["forward"] = _rebound(vars(module)["forward"], module, replica)
    return replica


def _rebound(call: Any, old: nn.Module, new: nn.Module) -> Any:
    """The same call on another module, through the layers that smooth has put around it."""
    if isinstance(call, partial):
        return partial(call.func, *(_rebound(value, old, new) for value in call.args))
    if isinstance(call, MethodType) and call.__self__ is old:
        return MethodType(call.__func__, new)
    return call
