"""From a network to its list of steps, by watching one forward pass."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from r2et.certify.activation import activation
from r2et.certify.calls import MAKERS, Call
from r2et.certify.steps import Join, Kind, Program, Reshape, Step
from r2et.errors import InputError, require
from r2et.models.piecewise_linear import SoftHinge

SUPPORTED = (
    "Linear, Conv2d, BatchNorm, average and max pooling, Flatten, sums, ReLU, LeakyReLU, "
    "Softplus, SoftHinge, Tanh, Sigmoid, ELU, SiLU and GELU"
)
# Read, not computed: what a forward may ask of a tensor without changing it.
LOOKS = {"__get__", "size", "dim", "ndimension", "numel", "is_floating_point", "__len__", "stride"}
SAME = {"contiguous", "clone", "dropout", "feature_dropout", "alpha_dropout", "dropout2d"}
VIEWS = {"reshape", "flatten", "squeeze"}  # may give back what they were given, unchanged
RANDOM = {
    *("rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "random"),
    *("bernoulli", "normal", "uniform", "exponential", "cauchy", "geometric", "log_normal"),
    *("multinomial", "poisson", "binomial", "trunc_normal"),
}
# As torch calls them: method, function, operator, in-place.
ALIASES = {
    "__add__": "add",
    "__radd__": "add",
    "__iadd__": "add",
    "__sub__": "sub",
    "__rsub__": "rsub",
    "__isub__": "sub",
    "__mul__": "mul",
    "__rmul__": "mul",
    "__imul__": "mul",
    "__truediv__": "div",
    "__itruediv__": "div",
    "true_divide": "div",
    "__neg__": "neg",
    "negative": "neg",
    "view": "reshape",
}


def trace(where: str, model: nn.Module, x: Tensor) -> Program:
    """The steps of model(x), which must be in eval mode; rows must not influence each other."""
    for name, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            what = "without backward hooks, which may change its gradient"
            require(False, where, "model", what, f"one on {name or 'the model'}")
    rows = x[:1].detach().expand(2, *x.shape[1:]).clone()
    recorder = Recorder(where, model, rows)
    drawn = random_state(x)
    # As the explanation runs it, so that a no_grad inside it shows.
    with torch.enable_grad(), leaves(model, recorder), recorder:
        out = model(rows)
    recorder.hidden = 0
    if not torch.equal(drawn, random_state(x)):
        recorder.refuse("random numbers")
    good = isinstance(out, Tensor) and id(out) in recorder.values
    if not good:
        recorder.refuse("an output that its steps do not lead to")
    if out.ndim == 1:
        recorder.add(Reshape((), (1,)), (recorder.values[id(out)],), out := out[:, None])
    require(out.ndim == 2, where, "model", "one that returns logits of shape (B, C)", out)
    width = sum(t[0].numel() for t in recorder.kept if id(t) in recorder.values)
    steps = tuple(recorder.steps)
    made = recorder.values[id(out)]
    return Program(steps, made, recorder.derived, width, out.shape[1])


def random_state(x: Tensor) -> Tensor:
    """The state of the generator that layers on x's device draw from."""
    return torch.cuda.get_rng_state(x.device) if x.is_cuda else torch.get_rng_state()


@contextmanager
def leaves(model: nn.Module, recorder: Recorder) -> Iterator[None]:
    """While active, a SoftHinge is one step and not the sum that its forward writes.

    Unless hooks or a forward of its own make something else of it.
    """
    handles = []

    def enter(module: nn.Module, args: tuple[Any, ...]) -> None:
        del module, args
        recorder.hidden += 1

    def leave(module: nn.Module, args: tuple[Any, ...], out: Tensor) -> None:
        recorder.hinge(module, args[0], out)
        recorder.hidden -= 1

    for module in model.modules():
        hooked = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
        if type(module) is SoftHinge and not hooked:
            handles += [
                module.register_forward_pre_hook(enter),
                module.register_forward_hook(leave),
            ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class Recorder(TorchFunctionMode):
    """Writes down what is done to x, and refuses by name what it does not know."""

    def __init__(self, where: str, model: nn.Module, x: Tensor) -> None:
        super().__init__()
        self.where = where
        self.steps: list[Step] = []
        self.values: dict[int, int] = {id(x): 0}
        self.kept: list[Any] = [x]  # alive, so that an id means one tensor only
        self.fixed = {id(t) for t in (*model.parameters(), *model.buffers())}
        self.derived = False
        self.hidden = 0
        self.rows = len(x)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        if self.hidden:
            return func(*args, **kwargs)
        called = getattr(func, "__name__", str(func))
        if func is torch.batch_norm:  # its arguments stand in another order
            self.refuse("torch.batch_norm (call torch.nn.functional.batch_norm)")
        name = called if called.startswith("__") else called.rstrip("_").lstrip("_")
        name = ALIASES.get(name, name)
        given = [a for a in flat((args, kwargs)) if isinstance(a, Tensor)]
        moving = [a for a in given if id(a) in self.values]
        if not moving:
            out = func(*args, **kwargs)
            self._note_fixed(name, given, out)
            return out
        if called == "__get__" or name in LOOKS:
            return self._look(func, args, kwargs)
        if not torch.is_grad_enabled():
            self.refuse(f"{name} without a gradient (no_grad)")
        if torch.is_autocast_enabled(moving[0].device.type):
            self.refuse(f"{name} under autocast")
        if kwargs.get("out") is not None:
            self.refuse(f"{name} with out=")
        sources = [self.values[id(a)] for a in moving]
        first = args[0] if args else kwargs.get("input")
        whole = tuple(first.shape[1:]) if isinstance(first, Tensor) else ()
        aliases = {id(t) for t in moving}
        out = func(*args, **kwargs)
        if not isinstance(out, Tensor) or out.ndim == 0 or len(out) != self.rows:
            self.refuse(f"{name}, whose result is not one value per row")
        if id(out) in aliases and name not in SAME | VIEWS:
            self._check_unshared(out, name)
        maker = MAKERS.get(name)
        if maker is None and name not in SAME:
            self.refuse(name)
        if name in SAME:
            if name.endswith(("dropout", "dropout2d")) and kwargs.get("training", True):
                p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
                training = kwargs.get("training", args[2] if len(args) > 2 else True)
                if training and p:
                    self.refuse(f"{name} in train mode")
            self.values[id(out)] = sources[0]
            self.kept.append(out)
            return out
        assert maker is not None
        call = Call(self, name, args, kwargs, whole, tuple(out.shape[1:]))
        kind = maker(call)
        self.add(kind, tuple(sources), out)
        return out

    def add(self, kind: Kind, sources: tuple[int, ...], out: Tensor) -> None:
        """One more step, that makes `out`."""
        if isinstance(kind, Join) and len(sources) == 1:
            sources = sources * 2  # y + y
        self.steps.append(Step(kind, sources))
        self.values[id(out)] = len(self.steps)
        self.kept.append(out)

    def hinge(self, module: nn.Module, x: Tensor, out: Tensor) -> None:
        """A SoftHinge of one kink at 0 is a softplus and a slope."""
        assert isinstance(module, SoftHinge)
        form = module.hinge
        simple = len(form.kinks) == 1 and form.kinks[0][1] == 0 and not form.gated
        if not simple or form.offset or id(x) not in self.values:
            self.refuse("SoftHinge with other than one kink, at 0")
        if out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            self._check_unshared(out, "SoftHinge")
        kind = activation("softplus", module.rho, form.kinks[0][0], form.slope)
        self.add(kind, (self.values[id(x)],), out)

    def _note_fixed(self, name: str, given: list[Tensor], out: Any) -> None:
        """What is made of weights alone is a weight; what is made of unknown tensors, unknown."""
        if name in RANDOM:
            self.refuse(f"{name}, a random number")
        if isinstance(out, Tensor) and all(id(a) in self.fixed for a in given):
            if id(out) not in self.fixed and given:
                self.derived = True
            self.fixed.add(id(out))
            self.kept.append(out)

    def _look(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        if any(isinstance(part, Tensor) for part in flat(out)):
            name = getattr(getattr(func, "__self__", None), "__name__", "an attribute")
            self.refuse(f".{name}, a tensor that leaves the network's steps")
        return out

    def _check_unshared(self, out: Tensor, name: str) -> None:
        """An in-place step may not change another value that shares its memory."""
        place = out.untyped_storage().data_ptr()
        for other in self.kept:
            shared = isinstance(other, Tensor) and other is not out
            if shared and other.untyped_storage().data_ptr() == place:
                self.refuse(f"{name} in place, on a tensor that has other views")

    def refuse(self, found: str) -> None:
        """Raise InputError that names the step."""
        text = f"{self.where}: model must be made of {SUPPORTED}, got {found}, in {caller()}."
        raise InputError(text)

    def constant(self, value: Any, name: str) -> Tensor | float:
        """A number or a weight; any other tensor comes from steps that were not seen."""
        if isinstance(value, Tensor) and id(value) not in self.fixed:
            self.refuse(f"{name} with a tensor that is no weight of the model")
        good = isinstance(value, Tensor | int | float)
        if not good:
            self.refuse(f"{name} with {type(value).__name__}")
        found: Tensor | float = value
        return found


def flat(value: Any) -> Iterator[Any]:
    """The leaves of nested arguments."""
    if isinstance(value, tuple | list):
        for part in value:
            yield from flat(part)
    elif isinstance(value, dict):
        yield from flat(list(value.values()))
    else:
        yield value


def caller() -> str:
    """The class of the nearest module whose code is running."""
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module):
            return type(owner).__name__
        frame = frame.f_back  # type: ignore[assignment]
    return "a function"
